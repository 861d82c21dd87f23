"""A run takes its configuration apart: planted causes are found, and the sweep's own figures stay its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, in_process
from fakes import conditions_of, plan_of

from loaderbench.conclusion import conclude
from loaderbench.environment import cpus_allotted
from loaderbench.session.isolation import plan_isolation
from loaderbench.store import read_run
from loaderbench.suite import Suite

TARGETS = """
import time
import torch
from torch.utils.data import Dataset

class Slow(Dataset):
    def __init__(self, s=0.004): self.s = s
    def __len__(self): return 256
    def __getitem__(self, index):
        time.sleep(self.s)
        return torch.zeros(3), index

class Heavy(Slow):  # computes in Python alone
    def __getitem__(self, index):
        end = time.thread_time() + 0.003
        while time.thread_time() < end: pass
        return torch.zeros(3), index

def slow(): return Slow()
def heavy(): return Heavy()
def sleeps(batch): time.sleep(0.02)
def burns(batch, s):  # takes CPU time that the workers want, too
    end = time.thread_time() + s
    while time.thread_time() < end: pass
"""

SUITE = """
dataset: {{kind: target, target: "lb_ladder_targets:{dataset}"}}
loader: {{batch_size: 8}}
sweep: {{num_workers: {workers}}}
consumer: {consumer}
measure: {{rounds: {rounds}, seconds: 0.2, verify: false}}
"""


def run(place: Path, dataset: str, consumer: str, workers: str = "[1]", rounds: int = 3) -> dict[str, Any]:
    """A run of targets through the command, as it was written."""
    place.mkdir(exist_ok=True)
    (place / "lb_ladder_targets.py").write_text(TARGETS)
    kind = consumer if consumer.startswith("{") else f'{{kind: target, target: "lb_ladder_targets:{consumer}"}}'
    (place / "s.yaml").write_text(SUITE.format(dataset=dataset, consumer=kind, workers=workers, rounds=rounds))
    result = in_process("run", "s.yaml", "--out", "r", cwd=place)
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads((place / "r" / "run.json").read_text())
    return {**found, "stdout": result.stdout, "stderr": result.stderr}


@pytest.fixture(scope="module")
def sleepy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A loader of 32 ms a batch and a step of 20 ms, neither of which needs a CPU."""
    place = tmp_path_factory.mktemp("sleepy")
    return place / "r", run(place, "slow", "sleeps")


def rung(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(rung for rung in found["isolation"]["runs"] if rung["name"] == name)


def test_the_ceiling_of_a_step_is_its_own_time(sleepy: tuple[Path, dict[str, Any]]) -> None:
    _, found = sleepy
    ceiling = found["ceiling"]
    assert ceiling["basis"] == "cached batches replayed, 3 rounds"
    assert 8 / 0.04 < ceiling["samples_per_s"] < 8 / 0.02
    assert (
        ceiling["samples_per_s_interval"]["lo"] <= ceiling["samples_per_s"] <= ceiling["samples_per_s_interval"]["hi"]
    )
    assert ceiling["headspace"] == pytest.approx(
        1 - found["best"]["samples_per_s"]["est"] / ceiling["samples_per_s"], abs=1e-6
    )


def test_a_loader_and_a_step_that_only_sleep_do_not_disturb_each_other(sleepy: tuple[Path, dict[str, Any]]) -> None:
    _, found = sleepy
    host, warm, whole = (rung(found, name)["time_s"]["est"] for name in ("replay_host", "loader_warm", "end_to_end"))
    assert host < warm
    assert found["isolation"]["interference_s"]["lo"] < 0.3 * whole  # 0.38 if one waited for the other


def test_the_rungs_stay_out_of_the_sweep(sleepy: tuple[Path, dict[str, Any]]) -> None:
    folder, found = sleepy
    roles = Counter(trial["role"] for trial in found["trials"])
    assert roles == {"sweep": 3, "twin": 3, "isolation": 6}
    assert {trial["isolation"] for trial in found["trials"] if trial["role"] != "isolation"} == {None}
    assert [len(configuration["trials"]) for configuration in found["configurations"]] == [3]
    lines = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    apart = [line for line in lines if line["role"] == "isolation"]
    assert len(lines) == 12
    assert sorted(line["isolation"] for line in apart) == ["loader_warm"] * 3 + ["replay_host"] * 3
    assert len({line["id"] for line in lines}) == 12
    assert {trial["id"] for trial in found["trials"]} == {line["id"] for line in lines}


def test_progress_counts_the_rungs_and_the_terminal_tells_them(sleepy: tuple[Path, dict[str, Any]]) -> None:
    folder, found = sleepy
    assert "up to 6 isolation runs" in found["stderr"]
    assert "[Isolation runs 6/6] num_workers=1, " in found["stderr"]
    shown = in_process("show", folder, "-v", cwd=folder).stdout
    assert "cached batches in host memory" in shown
    assert "Ceiling: " in shown


def test_what_is_not_measured_has_its_reason(sleepy: tuple[Path, dict[str, Any]]) -> None:
    _, found = sleepy
    assert "a target reads" in rung(found, "loader_cold")["not_measured"]["time_s"]
    assert found["isolation"]["fetch_s"] is None
    assert "a target reads" in found["isolation"]["not_measured"]["fetch_s"]
    assert found["contention"] == []


def test_a_saved_run_is_concluded_again_from_its_rungs(sleepy: tuple[Path, dict[str, Any]]) -> None:
    saved = read_run(sleepy[0])
    again = conclude(saved)
    assert saved.isolation is not None
    assert (again.isolation, again.ceiling, again.contention) == (saved.isolation, saved.ceiling, saved.contention)


CORES = int(cpus_allotted())


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.skipif(CORES > 4, reason="one step among many cores disturbs little")
def test_a_step_that_takes_the_workers_cores_is_interference(tmp_path: Path) -> None:
    """The workers alone fill all cores, the step needs one of them for as long as they need for a batch."""
    step_s = 8 * 0.003 / CORES
    consumer = f'{{kind: target, target: "lb_ladder_targets:burns", args: {{s: {step_s}}}}}'
    found = run(tmp_path, "heavy", consumer, workers=f"[{CORES}]", rounds=2)
    host, warm, whole = (rung(found, name)["time_s"]["est"] for name in ("replay_host", "loader_warm", "end_to_end"))
    assert whole > max(host, warm)
    assert found["isolation"]["interference_s"]["est"] > 0.1 * whole


@pytest.mark.slow
def test_an_emulated_accelerator_is_not_replayed_to(cli: Cli, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        f"dataset: {{root: '{photos}'}}\nloader: {{shuffle: true}}\nsweep: {{batch_size: [2], num_workers: [1, 2]}}\n"
        "consumer: {kind: emulated, demand: 100000}\nmeasure: {rounds: 1, seconds: 0.1, verify: false}\n"
    )
    assert cli("run", "s.yaml", "--out", "r").returncode == 0
    found = json.loads((tmp_path / "r" / "run.json").read_text())
    assert "and its ceiling is the target" in rung(found, "replay_host")["not_measured"]["time_s"]
    assert found["ceiling"]["samples_per_s"] == 100_000
    assert found["isolation"]["interference_s"] is not None
    workers = [one["workers"] for one in found["contention"]]
    assert workers == [1, 2]
    assert found["contention"][1]["cpu_ratio"]["est"] > 0.3
    cold = rung(found, "loader_cold")
    assert cold["time_s"] or "too few for a steady state" in cold["not_measured"]["time_s"]
    assert (found["isolation"]["fetch_s"] is None) == (cold["time_s"] is None)


def test_one_round_has_rungs_without_intervals(tmp_path: Path) -> None:
    found = run(tmp_path, "slow", "sleeps", rounds=1)
    assert found["isolation"]["rounds"] == 1
    assert rung(found, "replay_host")["time_s"]["lo"] is None
    assert found["ceiling"]["basis"] == "cached batches replayed, 1 round"
    assert found["ceiling"]["samples_per_s_interval"] is None


def test_a_step_that_breaks_when_replayed_costs_its_rung_alone(tmp_path: Path) -> None:
    place = tmp_path / "p"
    place.mkdir()
    (place / "mine.py").write_text(
        "import torch\n\ndef make(): return ([torch.zeros(4, 3), n] for n in range(10**7))\n"
        "def step():\n    seen = set()\n"
        "    def take(batch):\n        assert batch[1] not in seen, 'met again'\n        seen.add(batch[1])\n"
        "    return take\n"
    )
    (place / "s.yaml").write_text(
        "dataset: {kind: target, target: 'mine:make'}\nconsumer: {kind: target, target: 'mine:step'}\n"
        "measure: {rounds: 2, seconds: 0.1, verify: false}\n"
    )
    result = in_process("run", "s.yaml", "--out", "r", cwd=place)
    found = json.loads((place / "r" / "run.json").read_text())
    assert result.returncode == 0, result.stderr
    assert found["complete"] is True
    assert found["ceiling"] is None
    assert "met again" in found["not_measured"]["ceiling"]
    assert len(rung(found, "replay_host")["trials"]) == 1  # it would fail again
    assert len(rung(found, "loader_warm")["trials"]) == 2


def test_a_budget_without_room_for_the_ladder_leaves_it_out(tmp_path: Path) -> None:
    (tmp_path / "lb_ladder_targets.py").write_text(TARGETS)
    consumer = '{kind: target, target: "lb_ladder_targets:sleeps"}'
    (tmp_path / "s.yaml").write_text(SUITE.format(dataset="slow", consumer=consumer, workers="[1]", rounds=1))
    result = in_process("run", "s.yaml", "--out", "r", "--budget", "4s", "--seconds", "1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "r" / "run.json").read_text())
    assert found["complete"] is True
    assert found["isolation"] is None
    assert found["not_measured"]["isolation"] == "the budget of 4 s left no time for isolation runs"
    assert found["not_measured"]["ceiling"].endswith(found["not_measured"]["isolation"])


@pytest.mark.slow
def test_a_signal_while_parts_are_taken_away_keeps_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "lb_ladder_targets.py").write_text(TARGETS)
    consumer = '{kind: target, target: "lb_ladder_targets:sleeps"}'
    (tmp_path / "s.yaml").write_text(SUITE.format(dataset="slow", consumer=consumer, workers="[1]", rounds=2))
    command = [sys.executable, "-u", "-m", "loaderbench", "run", "s.yaml", "--out", "r", "-v", "--progress", "plain"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("[Isolation runs 1/"):
            os.kill(running.pid, signal.SIGINT)
            break
    running.communicate(timeout=60)
    assert running.returncode == 130
    found = json.loads((tmp_path / "r" / "run.json").read_text())
    assert found["complete"] is False
    roles = Counter(trial["role"] for trial in found["trials"])
    assert roles["sweep"] == 2
    assert 1 <= roles["isolation"] < 4
    assert "the sweep is complete" in found["notes"][0]


def test_the_loader_alone_reads_warm_and_cold_from_as_many_files() -> None:
    suite = Suite.model_validate(
        {"sweep": {"batch_size": [4], "num_workers": [2]}, "consumer": {"kind": "none"}, "measure": {"seconds": 1}}
    )
    from loaderbench.records import Trial

    trials = [
        Trial(role="sweep", id=f"r{n}", config={"batch_size": 4, "num_workers": 2}, round=n, status="completed",
              samples_per_s=100.0, data_wait_share=1.0, samples=80, batches=20, samples_per_epoch=20_000)
        for n in (1, 2, 3)
    ]  # fmt: skip
    baseline = {"batch_size": 4, "num_workers": 2}
    assert plan_of(suite).baseline == baseline
    planned = plan_isolation(conditions_of(suite, 20_000), trials[0].config, trials)
    assert [trial.round for trial in planned.trials] == [1, 1, 2, 2, 3, 3]
    assert 200 < (planned.files or 0) < 2_000
    shorter = [replace(trial, samples_per_epoch=30) for trial in trials]
    few = plan_isolation(conditions_of(suite, 30), trials[0].config, shorter)
    assert not few.trials
    assert "30 files = 7 batches, workers prefetch 4" in few.left_out["loader_cold"]
    assert "loader alone" in few.left_out["loader_warm"]
