"""Workers that end with a short epoch are read while they live."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from loaderbench.diagnosis.gathering import workers_of
from loaderbench.environment import describe_machine
from loaderbench.records import PlannedTrial, Trial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer
from loaderbench.runner.batch_source import LookedAt
from loaderbench.suite import Suite

TARGETS = """
import time
from torch.utils.data import DataLoader, Dataset

class Short(Dataset):
    def __len__(self): return 48
    def __getitem__(self, index):
        time.sleep(0.002)
        return index

def loader(): return DataLoader(Short(), batch_size=4, num_workers=2)
"""


def measured(tmp_path: Path) -> Trial:
    (tmp_path / "lb_short_epochs.py").write_text(TARGETS)
    server = TrialServer()
    told: dict[str, Any] = {"dataset": {"kind": "target", "target": "lb_short_epochs:loader"}}
    suite = Suite.model_validate({**told, "measure": {"seconds": 0.3}, "consumer": {"kind": "none"}})
    planned = PlannedTrial(id="t", role="sweep", config={}, round=1)
    order = TrialOrder(planned, suite, tmp_path, (), "none", tmp_path / "log")
    trial = TrialRunner(server, describe_machine(server.method, (), {})).run(order).trial
    assert trial.failure is None
    return trial


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
