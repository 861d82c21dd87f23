"""A real adaptive run through the command: slow configurations are dropped, the others meet in a final, all is said."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import in_process

from loaderbench.conclusion import conclude
from loaderbench.store import read_run

pytestmark = [pytest.mark.slow, pytest.mark.timed]

UNSTEADY = """\
import os
import random
import time
import torch

class Unsteady(torch.utils.data.Dataset):
    \"\"\"Each process takes a little longer or shorter than the others.\"\"\"

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.002 * random.Random(os.getpid()).uniform(0.7, 1.3))
        return torch.zeros(4), 0

def make():
    return Unsteady()
"""

SUITE = """\
name: unsteady
dataset: {kind: target, target: "unsteady:make"}
loader: {batch_size: 8}
sweep: {num_workers: [0, 1, 6], prefetch_factor: [2, 4]}
consumer: {kind: none}
measure: {rounds: 3, seconds: 0.1, strategy: adaptive, verify: false}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep in which six workers are several times as fast as one, and two configurations have six."""
    place = tmp_path_factory.mktemp("adaptive")
    (place / "unsteady.py").write_text(UNSTEADY)
    (place / "s.yaml").write_text(SUITE)
    result = in_process("run", "s.yaml", "--out", "run", "--progress", "plain", cwd=place)
    assert result.returncode == 0, result.stderr
    (place / "stderr").write_text(result.stderr)
    return place


@pytest.fixture(scope="module")
def run(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run" / "run.json").read_text())
    return found


def test_slow_configurations_get_fewer_rounds_and_the_baseline_keeps_all(run: dict[str, Any]) -> None:
    rounds = Counter((t["config"]["num_workers"], t["role"]) for t in run["trials"])
    assert run["complete"]
    assert rounds[0, "sweep"] == rounds[0, "twin"] == 3
    assert rounds[1, "sweep"] < 6
    assert rounds[6, "sweep"] > 3
    assert run["best"]["config"]["num_workers"] == 6
    assert run["best"]["gain"]["est"] > 1


def test_each_drop_has_its_round_and_the_ratio_that_decided(run: dict[str, Any]) -> None:
    assert sum(one["config"]["num_workers"] == 1 for one in run["dropped"]) == 2
    for one in run["dropped"]:
        assert one["rounds"] in (1, 2)
        assert one["than"]["num_workers"] == 6
        assert one["ratio"]["hi"] < 1
        own = next(found for found in run["configurations"] if found["config"] == one["config"])
        assert len(own["trials"]) == one["rounds"]


def test_a_final_is_held_or_says_why_not_and_its_trials_are_no_part_of_the_sweep(run: dict[str, Any]) -> None:
    finals = [trial for trial in run["trials"] if trial["role"] == "final"]
    swept = {id_ for found in run["configurations"] for id_ in found["trials"]}
    assert swept.isdisjoint(trial["id"] for trial in finals)
    if run["final"] is None:
        assert run["not_measured"]["final"]
        assert not finals
    else:
        assert {one["num_workers"] for one in run["final"]["finalists"]} == {6}
        assert {trial["config"]["num_workers"] for trial in finals} == {6}
    assert run["prediction"] is None
    assert run["not_measured"]["prediction"]


def test_the_page_and_the_terminal_say_what_was_dropped(folder: Path) -> None:
    page, said = (folder / "run" / "report.html").read_text(), (folder / "stderr").read_text()
    assert "Dropped configs" in page
    assert "Adaptive sweep of 5 configs: dropped" in page
    assert "up to 15 trials (5 configs, adaptive: 3 rounds at most)" in said
    assert "[Sweep 1] " in said


def test_it_is_concluded_again_to_the_same(folder: Path) -> None:
    record = read_run(folder / "run")
    again = conclude(record)
    assert (again.best, again.dropped, again.final) == (record.best, record.dropped, record.final)


def test_it_resumes_after_an_interruption_and_decides_the_same(folder: Path, tmp_path: Path) -> None:
    """The whole sweep is on the disk, so a resumed one measures none of it again."""
    place = tmp_path / "again"
    shutil.copytree(folder, place)
    saved = json.loads((place / "run" / "run.json").read_text())
    (place / "run" / "run.json").write_text(json.dumps({**saved, "complete": False}))
    result = in_process("run", "s.yaml", "--resume", "run", "-q", cwd=place)
    assert result.returncode == 0, result.stderr
    resumed = json.loads((place / "run" / "run.json").read_text())
    assert resumed["dropped"] == saved["dropped"]
    started = [
        {t["id"]: t["started_at"] for t in one["trials"] if t["role"] in ("sweep", "twin")} for one in (saved, resumed)
    ]
    assert started[0] == started[1]
