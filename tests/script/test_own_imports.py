"""Modules that loaderbench imports in a script's process are not the script's files of the same name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from loaderbench.script.own_imports import note_path, own_imports

OURS, THEIRS = "ours = True\n", "ours = False\n"
NAME = "lb_of_two_folders"


@pytest.fixture
def script_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Both have the module, and the script's folder comes first once it has begun."""
    library, script = tmp_path / "library", tmp_path / "script"
    for folder, text in ((library, OURS), (script, THEIRS)):
        folder.mkdir()
        (folder / f"{NAME}.py").write_text(text)
    monkeypatch.syspath_prepend(library)
    note_path()
    monkeypatch.syspath_prepend(script)
    yield script
    sys.modules.pop(NAME, None)


@pytest.mark.usefixtures("script_folder")
def test_our_import_finds_the_library_and_the_script_s_own_its_file() -> None:
    with own_imports():
        assert import_module(NAME).ours
    assert not import_module(NAME).ours


def test_a_module_that_the_script_has_no_file_of_stays(script_folder: Path) -> None:
    (script_folder / f"{NAME}.py").unlink()
    with own_imports():
        found = import_module(NAME)
    assert sys.modules[NAME] is found


@pytest.mark.usefixtures("script_folder")
def test_another_thread_imports_as_before() -> None:
    with own_imports():
        thread = threading.Thread(target=import_module, args=(NAME,))
        thread.start()
        thread.join()
    assert not sys.modules[NAME].ours


@pytest.mark.usefixtures("script_folder")
def test_nothing_is_left_on_the_path_of_finders() -> None:
    before = list(sys.meta_path)
    with pytest.raises(ModuleNotFoundError), own_imports():
        import_module("lb_nowhere")
    assert sys.meta_path == before
