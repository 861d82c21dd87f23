"""The axis `format`, through the command: copies are written before anything is timed, and trials read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Cli

SUITE = """\
name: formats
dataset: {{root: {root}}}
loader: {{batch_size: 4, num_workers: {workers}}}
sweep: {{format: [files, tar, zip]}}
consumer: {{kind: none}}
measure: {{rounds: 1, seconds: 0.1, verify: false, cache: {cache}}}
"""


@pytest.mark.parametrize(("workers", "cache"), [(0, "warm"), (2, "cold")])
def test_each_format_is_measured(cli: Cli, tmp_path: Path, photos: Path, workers: int, cache: str) -> None:
    (tmp_path / "formats.yaml").write_text(SUITE.format(root=photos, workers=workers, cache=cache))
    caches = tmp_path / "cache"
    done = cli("run", "formats.yaml", "--out", "run", LOADERBENCH_CACHE=str(caches))
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    trials = {trial["config"]["format"]: trial for trial in run["trials"] if trial["role"] == "sweep"}
    assert {name: trial["status"] for name, trial in trials.items()} == dict.fromkeys(
        ("files", "tar", "zip"), "completed"
    )
    for name in ("tar", "zip"):
        assert {"read", "decode", "transform"} <= trials[name]["stages"].keys()
        assert "read/reader" in trials[name]["stage_parts"]
    assert [(copy["format"], copy["samples"]) for copy in run["copies"]] == [("tar", 24), ("zip", 24)]
    assert all(copy["stored_bytes"] > copy["source_bytes"] > 0 for copy in run["copies"])
    assert "Writing files as tar: 24 of 24" in done.stderr
    page = (tmp_path / "run" / "report.html").read_text()
    assert run["copies"][0]["checksum"] in page

    again = cli("run", "formats.yaml", "--out", "again", LOADERBENCH_CACHE=str(caches))
    assert "Writing" not in again.stderr
    assert json.loads((tmp_path / "again" / "run.json").read_text())["copies"] == run["copies"]


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
