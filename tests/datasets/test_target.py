"""A target is looked up beside the suite first, and takes the axes it has parameters for."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loaderbench.datasets import DatasetOrder, Target
from loaderbench.errors import MissingError
from loaderbench.targets import call_target, find_target


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "lb_target_mod.py").write_text(
        "class Made:\n    @staticmethod\n    def deep(): return 1\n\nnumber = 3\n"
    )
    (tmp_path / "lb_target_broken.py").write_text("import no_such_module_at_all\n")
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in [name for name in sys.modules if name.startswith("lb_target_")]:
        del sys.modules[name]  # of a folder of its own each


def test_a_function_or_an_attribute_s_attribute_is_found(folder: Path) -> None:
    assert find_target("lb_target_mod:Made.deep", folder)() == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lb_no_such:f", "no module lb_no_such next to"),
        ("lb_target_mod:nothing", "has no nothing"),
        ("lb_target_mod:number", "expected a callable, got int"),
    ],
)
def test_a_missing_target_is_one_line(folder: Path, name: str, words: str) -> None:
    with pytest.raises(MissingError, match=words):
        find_target(name, folder)


def test_what_lies_beside_the_suite_comes_before_the_rest_of_the_path(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for place in (folder, other):
        (place / "lb_target_twice.py").write_text(f"def f(): return {place.name!r}\n")
    sys.path[:0] = [str(other), str(folder)]
    assert find_target("lb_target_twice:f", folder)() == folder.name


def test_a_module_that_hides_the_one_beside_the_suite_is_named(folder: Path) -> None:
    (folder / "queue.py").write_text("def make(): return []\n")
    with pytest.raises(MissingError, match=r"queue\.py hides the module queue next to the suite"):
        find_target("queue:make", folder)


def test_what_the_target_s_module_raises_passes_through(folder: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        find_target("lb_target_broken:f", folder)


def test_a_target_receives_the_axes_it_has_parameters_for() -> None:
    def make(root: str, batch_size: int) -> tuple[str, int]:
        return root, batch_size

    found, taken = call_target(make, {"root": "r"}, {"batch_size": 8, "num_workers": 2})
    assert (found, taken) == (("r", 8), {"batch_size"})


def test_a_target_with_keyword_arguments_receives_all() -> None:
    found, taken = call_target(lambda **given: given, {}, {"batch_size": 8, "num_workers": 2})
    assert found == {"batch_size": 8, "num_workers": 2}
    assert taken == {"batch_size", "num_workers"}


def test_a_target_without_a_signature_receives_its_own_arguments_alone() -> None:
    assert call_target(dict, {"a": 1}, {"num_workers": 2}) == ({"a": 1}, set())


def test_a_package_that_hides_a_folder_next_to_the_suite_is_named(folder: Path) -> None:
    (folder / "xml").mkdir()
    (folder / "xml" / "mine.py").write_text("def make(): return []\n")
    with pytest.raises(MissingError, match=r"hides the folder xml next to the suite; add xml/__init__\.py"):
        find_target("xml.mine:make", folder)


def test_the_target_can_be_an_axis(folder: Path) -> None:
    (folder / "lb_target_two.py").write_text("def a(n): return ['a', n]\ndef b(n): return ['b', n]\n")
    dataset = Target(kind="target", target="lb_target_two:a", args={"n": 1})
    built = dataset.build(DatasetOrder((), {"target": "lb_target_two:b", "n": 2, "num_workers": 0}, folder))
    assert built.source == ["b", 2]
    assert built.arguments == {"n": 2, "num_workers": 0}
    assert built.taken == {"n"}
    assert dataset.targets({"target": ["lb_target_two:b", "lb_target_two:c"]}) == ["lb_target_two:b", "lb_target_two:c"]
    assert dataset.targets({}) == ["lb_target_two:a"]
