"""Where the recordings of a script go."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from saved_recordings import saved_at

from loaderbench.errors import UsageError
from loaderbench.script.run_folders import make_run_folder, write_run_folders


def test_a_folder_that_the_script_has_written_to_gets_the_run_in_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = make_run_folder("train", tmp_path / "out")
    (folder / "checkpoint.pt").touch()
    (found,) = write_run_folders(saved_at([6]), folder)
    assert found.folder == folder / "loaderbench"
    (line,) = (found.folder / "trials.jsonl").read_text().splitlines()
    assert json.loads(line) == json.loads((found.folder / "run.json").read_text())["trials"][0]


def test_commands_that_start_together_have_a_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: make_run_folder("train", None), range(16)))
    assert len(set(found)) == 16


@pytest.mark.parametrize("kind", ["file", "link"])
def test_without_a_place_for_reports_it_is_one_line(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "file":
        Path("reports").touch()
    else:
        Path("reports").symlink_to("gone")
    with pytest.raises(UsageError, match=r"^reports/train-.*: cannot write: "):
        make_run_folder("train", None)
