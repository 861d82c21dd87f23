"""A process works in the folder of its version, and imports that version's modules or none."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from loaderbench.runner.placed import Place, installed_copies


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """The working tree, with an environment of Python in it, and a checkout that lacks one of its folders."""
    home, checkout = tmp_path / "home", tmp_path / "checkout"
    for folder in (home / "src", home / "new", home / ".venv/lib/site-packages", checkout / "src"):
        folder.mkdir(parents=True)
    for tree in (home, checkout):
        (tree / "src" / "lb_placed.py").write_text(f"WHERE = {str(tree)!r}\n")
    (home / "new" / "lb_placed_new.py").write_text("")
    return home, checkout


@pytest.fixture
def _restored() -> Iterator[None]:
    folder, path, finders = Path.cwd(), list(sys.path), list(sys.meta_path)
    yield
    os.chdir(folder)
    sys.path[:], sys.meta_path[:] = path, finders
    for name in [name for name in sys.modules if name.startswith(("lb_placed", "__editable__"))]:
        del sys.modules[name]


def test_folders_to_import_from_become_those_of_the_version(trees: tuple[Path, Path]) -> None:
    home, checkout = trees
    place = Place(checkout, checkout, home, home)
    entries = [str(home), str(home / "src"), str(home / "new"), str(home / ".venv/lib/site-packages"), "/usr/lib"]
    assert list(place.moved(entries)) == [str(checkout), str(checkout / "src"), entries[3], "/usr/lib"]
    assert list(Place(home, home, home, checkout).moved(entries)) == entries


@pytest.mark.usefixtures("_restored")
def test_a_process_imports_the_modules_of_its_version_and_refuses_the_other(trees: tuple[Path, Path]) -> None:
    home, checkout = trees
    sys.path.insert(0, str(home / "src"))
    Place(checkout, checkout, home, home).enter()
    assert Path.cwd() == checkout
    import lb_placed

    assert str(checkout) == lb_placed.WHERE
    sys.path.append(str(home / "new"))  # as a script may do
    with pytest.raises(ImportError, match=r"lb_placed_new would be .*, which belongs to the other version"):
        import lb_placed_new  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        import lb_placed_of_none  # noqa: F401


@pytest.mark.usefixtures("_restored")
def test_a_package_installed_from_the_working_tree_becomes_that_of_the_version(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, checkout = trees
    finder = SimpleNamespace(MAPPING={"lb_placed": str(home / "src" / "lb_placed.py"), "other": "/opt/other"})
    monkeypatch.setitem(sys.modules, "__editable___lb_placed_finder", finder)  # type: ignore[misc]
    Place(checkout, checkout, home, home).enter()
    assert {"lb_placed": str(checkout / "src" / "lb_placed.py"), "other": "/opt/other"} == finder.MAPPING


def test_a_version_inside_the_other_has_its_own_modules(trees: tuple[Path, Path]) -> None:
    home, _ = trees
    inner = home / "old"
    outside, inside = Place(home, home, home, inner), Place(inner, inner, home, home)
    assert outside.is_foreign(str(inner / "data.py"))
    assert not outside.is_foreign(str(home / "data.py"))
    assert inside.is_foreign(str(home / "data.py"))
    assert not inside.is_foreign(str(inner / "data.py"))
    assert not inside.is_foreign(str(home / ".venv/lib/site-packages/torch/__init__.py"))


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize("editable", [False, True])
def test_a_package_installed_as_a_copy_is_refused_for_it_is_the_same_in_both(
    trees: tuple[Path, Path], tmp_path: Path, editable: bool
) -> None:
    home, checkout = trees
    site = tmp_path / "env" / "site-packages"
    info = site / "lb_placed_copy-1.dist-info"
    info.mkdir(parents=True)
    (site / "lb_placed_copy.py").write_text("")
    (info / "METADATA").write_text("Name: lb-placed-copy\nVersion: 1\n")
    (info / "RECORD").write_text("lb_placed_copy.py,,\n")
    (info / "direct_url.json").write_text(json.dumps({"url": home.as_uri(), "dir_info": {"editable": editable}}))
    sys.path.insert(0, str(site))
    assert installed_copies(home) == (frozenset() if editable else {"lb_placed_copy"})
    Place(checkout, checkout, home, home, installed_copies(home)).enter()
    refused = pytest.raises(ImportError, match="an installed copy, the same for both versions; use `pip install -e")
    with nullcontext() if editable else refused:
        importlib.import_module("lb_placed_copy")
