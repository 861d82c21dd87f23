"""Remedies are tried in a real run: what helps is measured and kept, and what does not is said to have been tried."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import in_process

from loaderbench.conclusion import conclude
from loaderbench.records import IDENTICAL
from loaderbench.session import freeing
from loaderbench.store import read_run

pytestmark = pytest.mark.timed  # its loader waits for storage; on busy CPUs the verdict names no cause, or gains shrink

SLEEPY = """\
import time
import torch

class Sleepy(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.002)  # a storage that answers after that long
        return torch.zeros(4), 0

def make():
    return Sleepy()
"""

SUITE = """\
name: sleepy
dataset: {kind: target, target: "sleepy:make"}
loader: {num_workers: 1, batch_size: 8}
consumer: {kind: emulated, demand: 700}  # a gain that it capped would be below 1.5
measure: {rounds: 3, seconds: 0.1}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a loader that waits for its storage, in one worker, with fewer rounds of free stages."""
    place = tmp_path_factory.mktemp("verified")
    (place / "sleepy.py").write_text(SLEEPY)
    (place / "s.yaml").write_text(SUITE)
    with pytest.MonkeyPatch.context() as changed:
        for name in ("FREED_ROUNDS", "MOST_ROUNDS"):
            changed.setattr(freeing, name, 1)
        result = in_process("run", "s.yaml", "--out", "run", "-q", cwd=place)
    assert result.returncode == 0, result.stderr
    return place / "run"


@pytest.fixture(scope="module")
def run(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def remedy_trials(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [trial for trial in run["trials"] if trial["role"] == "remedy"]


def card(run: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(told for told in run["recommendations"] if told["id"] == name)
    return found


def test_the_remedy_of_the_cause_was_tried_and_its_gain_is_measured(run: dict[str, Any]) -> None:
    assert run["verdict"]["limit"] == "storage_latency"
    found = card(run, "workers_beyond_cores")
    assert (found["status"], found["basis"]) == ("open", "measured")
    assert found["gain"]["lo"] > 2
    assert found["change"].keys() == {"num_workers"}
    assert any("Interleaved pairs: " in line for line in found["evidence"])
    assert f"num_workers={found['change']['num_workers']}" in found["snippet"]


def test_pairs_lie_in_rounds_of_their_own_in_shuffled_order(run: dict[str, Any]) -> None:
    trials = remedy_trials(run)
    rounds = [trial["round"] for trial in trials]
    assert rounds == sorted(rounds)
    assert max(rounds) >= 5
    orders = {tuple(t["id"].partition("-")[2] for t in trials if t["round"] == number) for number in set(rounds)}
    assert len(orders) > 1
    swept = {id_ for found in run["configurations"] for id_ in found["trials"]}
    assert {trial["id"] for trial in trials}.isdisjoint(swept)


def test_every_trial_is_on_the_disk_and_in_the_run(folder: Path, run: dict[str, Any]) -> None:
    kept = [json.loads(line)["id"] for line in (folder / "trials.jsonl").read_text().splitlines()]
    assert {trial["id"] for trial in remedy_trials(run)} <= set(kept)


def test_a_saved_run_is_concluded_again_to_the_same_advice(folder: Path) -> None:
    record = read_run(folder)
    again = conclude(record)
    assert again.recommendations == record.recommendations
    assert again.verification == record.verification


def test_the_page_and_the_terminal_tell_what_was_tried(folder: Path) -> None:
    assert "Fixes tried, in order" in (folder / "report.html").read_text()
    shown = in_process("show", folder, cwd=folder)
    assert "Fixes, measured\n 1. Set num_workers=" in shown.stdout


def test_without_verifying_the_remedy_is_advice(folder: Path) -> None:
    measured = read_run(folder)
    untried = tuple(trial for trial in measured.trials if trial.role != "remedy")
    without = conclude(replace(measured, trials=untried, verification=None))
    assert next(one for one in without.recommendations if one.id == "workers_beyond_cores").basis == "heuristic"


@pytest.mark.slow
@pytest.mark.timed  # its loader needs the CPUs
def test_fixes_are_tried_on_a_folder_of_photos_and_what_they_change_of_its_pixels_is_told(
    photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(
        f"dataset: {{root: {photos}}}\nloader: {{batch_size: 4, num_workers: 2, persistent_workers: true}}\n"
        "consumer: {kind: none}\nmeasure: {rounds: 2, seconds: 0.1, budget: 20s}\n"
    )
    for attempt in ("first", "second", "third"):
        result = in_process("run", "s.yaml", "--out", attempt, "-q", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        run = json.loads((tmp_path / attempt / "run.json").read_text())
        if "other programs use CPUs that the loader needs" not in run["verdict"]["headline"]:
            break
    else:
        pytest.skip("other programs held the CPUs during three runs, and a remedy may help only without them")
    assert run["verification"] is not None, run["not_measured"]
    tried = run["verification"]["tried"]
    assert tried
    assert not any(trial["failure"] for trial in remedy_trials(run))
    for one in tried:
        touches = one["change"].keys() & {"decoder", "transform", "presize"}
        if one["psnr_db"] is None:
            assert one["not_measured"]["psnr_db"] == IDENTICAL.why_not, "pixels were not compared"
        else:
            assert touches
            assert one["psnr_db"] > 20
