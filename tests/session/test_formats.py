"""The axis `format`, through the command: copies are written before anything is timed, and trials read them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, in_process

SUITE = """\
name: formats
dataset: {{root: {root}}}
loader: {{batch_size: 4, num_workers: {workers}}}
sweep: {{format: [files, tar, zip]}}
consumer: {{kind: none}}
measure: {{rounds: 1, seconds: 0.1, verify: false, cache: {cache}}}
"""


Made = tuple[Path, "subprocess.CompletedProcess[str]"]


def measured(place: Path, photos: Path, workers: int, cache: str, copies: Path) -> Made:
    """The folder of a run of each format, whose copies are in a folder that runs may share, and what it printed."""
    (place / "formats.yaml").write_text(SUITE.format(root=photos, workers=workers, cache=cache))
    return place / "run", in_process("run", "formats.yaml", "--out", "run", cwd=place, LOADERBENCH_CACHE=str(copies))


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the first run writes its copies."""
    return tmp_path_factory.mktemp("copies") / "cache"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, photos: Path, copies: Path) -> Made:
    """A run of each format without workers, which writes the copies."""
    return measured(tmp_path_factory.mktemp("formats"), photos, 0, "warm", copies)


def run_of(made: Made) -> dict[str, Any]:
    """The run, each of whose formats was measured."""
    folder, done = made
    assert done.returncode == 0, done.stderr
    run: dict[str, Any] = json.loads((folder / "run.json").read_text())
    trials = {trial["config"]["format"]: trial for trial in run["trials"] if trial["role"] == "sweep"}
    assert {name: trial["status"] for name, trial in trials.items()} == dict.fromkeys(
        ("files", "tar", "zip"), "completed"
    )
    for name in ("tar", "zip"):
        assert {"read", "decode", "transform"} <= trials[name]["stages"].keys()
        assert "read/reader" in trials[name]["stage_parts"]
    assert [(copy["format"], copy["samples"]) for copy in run["copies"]] == [("tar", 24), ("zip", 24)]
    assert all(copy["stored_bytes"] > copy["source_bytes"] > 0 for copy in run["copies"])
    assert run["copies"][0]["checksum"] in (folder / "report.html").read_text()
    return run


def test_each_format_is_measured(first: Made) -> None:
    run_of(first)
    assert "Writing files as tar: 24 of 24" in first[1].stderr


def test_a_later_run_reads_the_copies_that_are_there_cold_and_in_workers(
    first: Made, tmp_path: Path, photos: Path, copies: Path
) -> None:
    again = measured(tmp_path, photos, 2, "cold", copies)
    assert run_of(again)["copies"] == run_of(first)["copies"]
    assert "Writing" not in again[1].stderr


def test_a_file_that_cannot_be_copied_ends_the_run_before_its_trials(cli: Cli, tmp_path: Path, photos: Path) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("a file where a folder is needed")
    (tmp_path / "formats.yaml").write_text(SUITE.format(root=photos, workers=0, cache="warm"))
    done = cli("run", "formats.yaml", LOADERBENCH_CACHE=str(blocked))
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1].startswith("loaderbench: format tar: cannot write to ")


def test_an_unknown_format_is_refused(cli: Cli, tmp_path: Path, photos: Path) -> None:
    (tmp_path / "formats.yaml").write_text(SUITE.format(root=photos, workers=0, cache="warm").replace("tar", "tarr"))
    done = cli("run", "formats.yaml")
    assert done.returncode == 2
    assert "did you mean tar?" in done.stderr
