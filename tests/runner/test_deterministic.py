"""Trials with `measure.deterministic`: what a seed trains on and how it trains, in real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loaderbench.environment import describe_machine
from loaderbench.records import PlannedTrial, Trial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer, probe
from loaderbench.suite import Suite

COMPARED = 8  # steps, of a trial on a machine as slow as may be
TARGETS = """
from pathlib import Path
import torch
from torch.utils.data import Dataset

class Noisy(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index): return torch.rand(8) + index / 64, index % 2

def training(place):
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(), torch.nn.Linear(8, 2))
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=0.1), open(place, "w")
    def step(batch):
        loss = torch.nn.functional.cross_entropy(net(batch[0]), batch[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), file=losses, flush=True)
    return step

def unrepeatable():
    return lambda batch: torch.zeros(4).put_(torch.tensor([0]), torch.ones(1))
"""


@pytest.fixture(scope="module")
def runner() -> TrialRunner:
    server = TrialServer()
    found = probe(server)
    return TrialRunner(server, describe_machine(server.method, found.gpus, found.not_measured))


def measured(runner: TrialRunner, place: Path, step: str, args: dict[str, Any], workers: int, **measure: Any) -> Trial:
    (place / "lb_seeded_targets.py").write_text(TARGETS)
    suite = Suite.model_validate(
        {
            "dataset": {"kind": "target", "target": "lb_seeded_targets:Noisy"},
            "loader": {"batch_size": 8, "shuffle": True},
            "consumer": {"kind": "target", "target": f"lb_seeded_targets:{step}", "args": args},
            "measure": {"seconds": 0.2, **measure},
        }
    )
    planned = PlannedTrial(id="r1-c00", role="sweep", config={"num_workers": workers}, round=1)
    return runner.run(TrialOrder(planned, suite, place, (), "target", place / "log")).trial


def losses(runner: TrialRunner, place: Path, workers: int, **measure: Any) -> list[str]:
    trial = measured(runner, place, "training", {"place": str(place / "losses")}, workers, **measure)
    assert trial.failure is None
    return (place / "losses").read_text().split()[:COMPARED]


def test_the_same_seed_trains_the_same_with_and_without_workers(runner: TrialRunner, tmp_path: Path) -> None:
    alone = losses(runner, tmp_path, 0, deterministic=True)
    assert len(alone) == COMPARED
    assert losses(runner, tmp_path, 2, deterministic=True) == alone
    assert losses(runner, tmp_path, 0, deterministic=True, seed=1) != alone
    assert losses(runner, tmp_path, 0) != alone, "it has to be asked for"


def test_an_operation_that_torch_cannot_repeat_is_named(runner: TrialRunner, tmp_path: Path) -> None:
    assert measured(runner, tmp_path, "unrepeatable", {}, 0).consumer_note is None
    trial = measured(runner, tmp_path, "unrepeatable", {}, 0, deterministic=True)
    assert trial.consumer_note == "measure.deterministic: torch cannot repeat put_ exactly, so training may differ"
