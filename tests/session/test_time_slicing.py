"""A round is measured in time slices where that can be done, and else trial after trial, never half and half."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from loaderbench.environment import describe_machine
from loaderbench.recorder.measure import FEWEST_BATCHES
from loaderbench.records import Config, PlannedTrial, Trial
from loaderbench.runner import TrialRunner, TrialServer
from loaderbench.runner.guard import SessionGuard
from loaderbench.session import time_slicing
from loaderbench.session.inputs import prepare_inputs
from loaderbench.session.listener import Listener
from loaderbench.session.measuring import TrialMeasurer
from loaderbench.session.time_slicing import SlicedRounds
from loaderbench.store import Store
from loaderbench.suite import load_suite

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="time slices are measured on Linux")

TARGETS = """
import fcntl, os, time
from pathlib import Path
import torch

class Work(torch.utils.data.Dataset):
    def __init__(self, turns): self.turns = turns
    def __len__(self): return 100_000
    def __getitem__(self, index):
        for _ in range(self.turns): pass
        return torch.zeros(8)

class Locked(Work):
    def __getitem__(self, index):
        with open("lb.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            found = super().__getitem__(index)
        for _ in range(self.unlocked): pass
        return found

def make(kind="work", turns=20_000, unlocked=0, batch_size=4, num_workers=1):
    if kind == "broken": raise ValueError("nothing to measure here")
    if kind == "locked":
        found = Locked(turns)
        found.unlocked = unlocked
        return found
    if kind == "crowded":
        beside = [pid for pid in os.listdir("/proc") if pid.isdigit() and stopped(pid)]
        if beside: raise MemoryError("there was room for one")
    return [torch.zeros(4, 8)] * 10_000 if kind == "list" else Work(turns)

def stopped(pid):
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return state == "T" and int(parent) == os.getppid()
    except OSError:
        return False
"""
SUITE = """
dataset: {kind: target, target: "lb_paired:make"}
loader: {batch_size: 4, num_workers: 1}
consumer: {kind: none}
measure: {seconds: 0.2}
"""
WORK: Config = {"kind": "work"}

Run = Callable[..., list[Trial]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Measures rounds, each a list of configurations, and returns the trials."""
    (tmp_path / "lb_paired.py").write_text(TARGETS)
    (tmp_path / "suite.yaml").write_text(SUITE)
    loaded, server = load_suite(tmp_path / "suite.yaml"), TrialServer()
    runner = TrialRunner(server, describe_machine(server.method, (), {}))
    store = Store(tmp_path / "run")
    inputs = prepare_inputs(loaded, Listener())
    measure = TrialMeasurer(server, runner, loaded, inputs, consumer="none", store=store, listener=Listener())
    rounds = SlicedRounds(measure)
    counts: list[int] = []

    def run(*configs: Config, started: Callable[[PlannedTrial], None] = lambda _: None) -> list[Trial]:
        counts.append(1)
        number, found = len(counts), list[Trial]()
        planned = [
            PlannedTrial(id=f"v{number}-{k}", role="remedy", config=config, round=number)
            for k, config in enumerate(configs)
        ]
        with suppress(KeyboardInterrupt):
            rounds.run(planned, started, lambda outcome: found.append(outcome.trial))
        return found

    return run


def statuses(trials: Sequence[Trial]) -> list[str]:
    return [trial.status for trial in trials]


def test_a_round_is_measured_in_as_many_slices_of_each(run: Run) -> None:
    slow, fast = run({**WORK, "turns": 300_000}, {**WORK, "turns": 10_000})
    assert statuses([slow, fast]) == ["completed", "completed"]
    assert slow.time_slices is not None
    assert fast.time_slices is not None
    assert slow.time_slices.count == fast.time_slices.count > 1
    assert min(slow.time_slices.batches, fast.time_slices.batches) >= FEWEST_BATCHES
    assert (fast.samples_per_s or 0) > 2 * (slow.samples_per_s or 0)
    assert slow.stages


def test_what_cannot_be_stopped_makes_the_round_one_after_the_other(run: Run) -> None:
    trials = run(WORK, {"kind": "list", "num_workers": 0})
    assert statuses(trials) == ["completed", "completed"]
    assert all(trial.time_slices is None and trial.not_measured["time_slices"] for trial in trials)
    assert all(trial.time_slices is None for trial in run(WORK))


def test_what_fails_is_told_once_and_the_others_have_their_slices(run: Run) -> None:
    for _ in range(2):
        trials = {str(trial.config["kind"]): trial for trial in run({"kind": "broken"}, WORK)}
        assert trials["broken"].failure is not None
        assert "nothing to measure here" in trials["broken"].failure.message
        assert trials["work"].time_slices is not None


def test_what_fails_only_beside_others_is_measured_alone_and_no_slices_are_taken_from_then(run: Run) -> None:
    trials = run(WORK, {"kind": "crowded"})
    assert statuses(trials) == ["completed", "completed"]
    assert trials[1].time_slices is None
    assert all(trial.time_slices is None for trial in run(WORK, {"kind": "crowded"}))


@pytest.mark.parametrize("unlocked", [0, 20_000])
def test_trials_that_share_the_lock_of_a_file_are_measured_one_after_the_other(
    run: Run, unlocked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is stopped keeps the lock, if it has it then."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("loaderbench.runner.patience.LEAST_PATIENCE_S", 1.0)
    monkeypatch.setattr(TrialMeasurer, "sliced_seconds", 1.0)  # of so many slices, some end while the lock is held
    locked: Config = {"kind": "locked", "unlocked": unlocked}
    trials = run(locked, locked, locked)
    assert statuses(trials) == ["completed"] * 3
    assert all(trial.time_slices is None for trial in trials)
    assert all(trial.time_slices is None for trial in run(WORK, WORK))


def test_without_room_for_another_trials_are_measured_one_after_the_other(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slicing, "ROOM", 1e9)
    trials = run(WORK, {**WORK, "turns": 10_000})
    assert statuses(trials) == ["completed", "completed"]
    assert all(trial.time_slices is None for trial in trials)


def test_what_was_measured_alone_is_kept_when_a_signal_ends_the_round(run: Run) -> None:
    def interrupt(planned: PlannedTrial) -> None:
        if planned.id.endswith("-1"):
            raise KeyboardInterrupt

    trials = run(WORK, {**WORK, "turns": 10_000}, started=interrupt)
    assert statuses(trials) == ["completed"]
    assert trials[0].time_slices is None
    assert trials[0].samples_per_s


@pytest.mark.parametrize(("limit", "in_slices"), [(None, True), (256, True), (255, False)])
def test_where_processes_are_few_trials_run_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, in_slices: bool
) -> None:
    monkeypatch.setattr(time_slicing, "process_limit", lambda: limit)
    assert SlicedRounds(None)._in_slices is in_slices  # type: ignore[arg-type]


def test_a_round_that_is_measured_is_kept_when_a_signal_comes_while_it_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget = SessionGuard.forget

    def interrupted(guard: SessionGuard, session: int) -> None:
        forget(guard, session)
        raise KeyboardInterrupt

    monkeypatch.setattr(SessionGuard, "forget", interrupted)
    trials = run(WORK, WORK)
    assert statuses(trials) == ["completed", "completed"]
    assert all(trial.time_slices for trial in trials)
