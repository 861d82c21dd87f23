"""Stacks of the user's own loading code: looked at by `run`, and written for speedscope."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli

OWN = """
import time, torch

class Waits(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, index):
        time.sleep(0.004)  # as a slow disk
        return torch.zeros(3, 4, 4), index
"""
SUITE = """
name: own
dataset: {kind: target, target: "lb_own_data:Waits"}
loader: {batch_size: 4, num_workers: 1}
consumer: {kind: none}
measure: {rounds: 2, seconds: 1, verify: false}
"""


@pytest.mark.sleeping
def test_a_run_of_own_code_names_its_line_and_writes_its_stacks(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lb_own_data.py").write_text(OWN)
    (tmp_path / "own.yaml").write_text(SUITE)
    done = cli("run", "own.yaml", "--out", "run", "--speedscope", "stacks.json", "-q")
    assert done.returncode == 0, done.stderr
    line = json.loads((tmp_path / "run/run.json").read_text())["hotspots"][0]
    assert (line["function"], line["file"], line["line"]) == ("Waits.__getitem__", "lb_own_data.py", 7)
    assert line["share"] > 0.8
    written = json.loads((tmp_path / "stacks.json").read_text())
    assert {"name": "Waits.__getitem__", "file": "lb_own_data.py", "line": 7} in written["shared"]["frames"]
    again = cli("export", "run", "--to", "speedscope", "--out", "again.json")
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "again.json").read_text()) == written
    assert "Loading time by call" in (tmp_path / "run/report.html").read_text()


def test_a_run_without_own_code_has_no_stacks_and_says_so(cli: Cli, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        f"name: one\ndataset: {{root: {photos}}}\nloader: {{batch_size: 4}}\nconsumer: {{kind: none}}\n"
        "measure: {rounds: 1, seconds: 0.1, verify: false}\n"
    )
    done = cli("run", "one.yaml", "--out", "run", "--speedscope", "stacks.json", "-q")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "--speedscope stacks.json: no stacks were recorded" in done.stderr
    assert not (tmp_path / "stacks.json").exists()
    refused: Any = cli("export", "run", "--to", "speedscope", "--out", "stacks.json")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_two_results_do_not_share_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(SUITE)
    done = cli("run", "own.yaml", "--speedscope", "same", "--perfetto", "same")
    assert done.returncode == 2
    assert "two results cannot share one file" in done.stderr
