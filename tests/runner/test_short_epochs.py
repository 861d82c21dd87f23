"""Short epochs in a trial: their workers are read while they live, and the boundaries between them are timed."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from machine import TWO_CPUS

from loaderbench.diagnosis.cause import find_cause
from loaderbench.diagnosis.gathering import gather, workers_of
from loaderbench.environment import describe_machine
from loaderbench.records import Config, Epochs, PlannedTrial, Trial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer
from loaderbench.runner.batch_source import LookedAt
from loaderbench.suite import Suite

TARGETS = """
import time
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Short(Dataset):
    def __len__(self): return 48
    def __getitem__(self, index):
        time.sleep(0.002)
        return index

class Stream(IterableDataset):
    def __iter__(self):
        for index in range(24):
            time.sleep(0.002)
            yield index

class Made:
    # an iterable whose iterator starts slowly
    def __iter__(self):
        time.sleep(0.05)
        for _ in range(8):
            time.sleep(0.002)
            yield [0] * 4

def opens(_worker):
    with open("STARTS", "a") as starts: starts.write("one\\n")
    time.sleep(0.2)

def loader(): return DataLoader(Short(), batch_size=4, num_workers=2)
def starting(batch_size=4, workers=2, kept=False):
    kept = {"persistent_workers": True} if kept else {}
    return DataLoader(Short(), batch_size, num_workers=workers, worker_init_fn=opens, **kept)
def stream(): return Stream()
def made(): return Made()
"""


def measured(tmp_path: Path, name: str = "loader", config: Config | None = None, **args: Any) -> Trial:
    (tmp_path / "lb_short_epochs.py").write_text(TARGETS.replace("STARTS", str(tmp_path / "starts")))
    server = TrialServer()
    told: dict[str, Any] = {"dataset": {"kind": "target", "target": f"lb_short_epochs:{name}", "args": args}}
    suite = Suite.model_validate({**told, "measure": {"seconds": 0.3}, "consumer": {"kind": "none"}})
    planned = PlannedTrial(id="t", role="sweep", config=config or {}, round=1)
    order = TrialOrder(planned, suite, tmp_path, (), "none", tmp_path / "log")
    trial = TrialRunner(server, describe_machine(server.method, (), {})).run(order).trial
    assert trial.failure is None
    return trial


def epochs_of(trial: Trial) -> Epochs:
    assert trial.epochs is not None, trial.not_measured["epochs"]
    return trial.epochs


@pytest.mark.skipif(sys.platform != "linux", reason="workers are read on Linux")
def test_the_workers_of_short_epochs_are_seen(tmp_path: Path) -> None:
    trial = measured(tmp_path)
    assert trial.workers is not None
    assert trial.workers.count == 2
    assert trial.workers.blocked_share > trial.workers.on_cpu_share
    assert workers_of(trial) == 2


def test_the_longer_an_epoch_lasts_the_more_rarely_it_is_looked_at() -> None:
    numbers, looks = count(1), list[int]()
    batches = LookedAt((next(numbers) for _ in range(20)), lambda: looks.append(next(numbers)))
    taken = list(batches)
    assert looks == [2, 4, 7, 12, 21], "after the first, second, fourth, eighth and sixteenth batch"
    assert sorted(taken + looks) == list(range(1, 26))
    assert list(LookedAt(iter(()), lambda: looks.append(99))) == []
    assert 99 not in looks


def test_the_boundaries_of_epochs_are_apart_from_other_waits(tmp_path: Path) -> None:
    trial = measured(tmp_path, "starting")
    epochs = epochs_of(trial)
    assert (epochs.boundary_s or 0.0) > 0.2, "each epoch starts workers that take 0.2 s to start"
    assert epochs.begun > (trial.epoch_ends or 0) > 0
    assert trial.data_wait is not None
    assert trial.data_wait.count == (trial.batches or 0) - (trial.epoch_ends or 0)
    assert epochs.workers_persist is False
    assert 0 < (epochs.first_making_s or 0.0) < (epochs.boundary_s or 0.0)
    assert trial.wait_parts is not None
    assert trial.wait_parts.batches > 11, "those of more than one epoch"
    assert trial.wait_parts.batches <= trial.data_wait.count


def test_the_cause_of_slow_starts_is_startup(tmp_path: Path) -> None:
    facts = gather([measured(tmp_path, "starting")], TWO_CPUS)
    assert facts is not None
    cause = find_cause(facts)
    assert cause is not None
    assert (cause.stage, cause.limit) == ("startup", "startup")
    assert "worker startup" in cause.clause


@pytest.mark.parametrize(("config", "kept"), [({"persistent_workers": True}, False), ({}, True)])
def test_workers_that_persist_start_once(tmp_path: Path, config: Config, kept: bool) -> None:
    """By an argument of the suite that the target does not take, or by one of its own `DataLoader`."""
    epochs = epochs_of(measured(tmp_path, "starting", config, kept=kept))
    assert epochs.begun > 1
    assert epochs.workers_persist is True
    assert (tmp_path / "starts").read_text().count("one") == 2


def test_epochs_of_one_batch_have_boundaries_only(tmp_path: Path) -> None:
    trial = measured(tmp_path, "starting", batch_size=48)
    assert trial.data_wait is None
    assert "first of its epoch" in trial.not_measured["data_wait"]
    assert trial.wait_parts is None
    assert (epochs_of(trial).boundary_s or 0.0) > 0.2
    facts = gather([trial], TWO_CPUS)
    assert facts is not None
    assert facts.startup_share > 0.9


def test_an_iterable_that_ends_begins_again(tmp_path: Path) -> None:
    epochs = epochs_of(measured(tmp_path, "made"))
    assert (epochs.boundary_s or 0.0) > 0.05
    assert epochs.workers_persist is None
    assert epochs.not_measured.keys() >= {"workers_persist", "sampler_s", "first_making_s"}


def test_a_stream_in_workers_has_epochs(tmp_path: Path) -> None:
    epochs = epochs_of(measured(tmp_path, "stream", {"batch_size": 4, "num_workers": 2}))
    assert epochs.workers_persist is False
    kept = measured(tmp_path, "stream", {"batch_size": 4, "num_workers": 2, "persistent_workers": True})
    assert epochs_of(kept).workers_persist is True


def test_without_workers_an_epoch_starts_at_once(tmp_path: Path) -> None:
    trial = measured(tmp_path, "starting", workers=0)
    facts = gather([trial], TWO_CPUS)
    assert facts is not None
    assert facts.startup_share < facts.wait_share
    assert epochs_of(trial).sampler_s is not None
