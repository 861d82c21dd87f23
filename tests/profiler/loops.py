"""Loaders and loops whose waits and steps were planted, and a picture of everything that a hook could be left on."""

from __future__ import annotations

import builtins
import io
import multiprocessing
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench import Profiler, Run
from loaderbench.profiler import source
from loaderbench.records import Trial
from loaderbench.tracing import active

marker = Profiler("marks")  # at module level, as a user's script has it; a spawned worker makes one of its own


def trial_of(run: Run) -> Trial:
    (trial,) = run.trials
    return trial


def pause(seconds: float) -> float:
    began_s = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - began_s


@marker.stage("augment")
def augment(index: int) -> float:
    return pause(0.002)


class Numbers(Dataset[Any]):
    def __init__(self, length: int = 48, raise_at: int | None = None) -> None:
        self.length, self.raise_at = length, raise_at

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if index == self.raise_at:
            raise ValueError("planted in the dataset")
        return torch.zeros(3), augment(index)


class Unpicklable(Numbers):
    def __init__(self) -> None:
        super().__init__()
        self.handle = open(__file__, "rb")  # noqa: SIM115, PTH123 - held on purpose: it cannot be sent to a worker


class Planted:
    """An iterable of lists that sleeps before each batch, and clocks it; no DataLoader, no length."""

    def __init__(self, batches: int = 40, wait_s: float = 0.004) -> None:
        self.batches, self.wait_s = batches, wait_s
        self.slept_s: list[float] = []

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.batches):
            self.slept_s.append(pause(self.wait_s))
            yield [0] * 4


def members(kind: type) -> dict[str, Any]:
    """What a class holds, but for the note that pickle leaves on it."""
    return {name: value for name, value in vars(kind).items() if name != "__slotnames__"}


def state_of(loader: Any) -> dict[str, Any]:
    """Everything that a profiler could leave a hook on."""
    dataset = getattr(loader, "dataset", None)
    return {
        "loader": dict(vars(loader)),
        "kinds": (type(loader), type(dataset)),
        "dataset": dict(vars(dataset)) if dataset is not None else None,
        "classes": [members(kind) for kind in (type(dataset), DataLoader, Dataset)],
        "open": (builtins.open, io.open),
        "tracer": active.tracer(),
        "busy": dict(source._busy),
        "children": {child.pid for child in multiprocessing.active_children()},
    }


def run_epochs(
    loader: Any, seconds: float, *, step_s: float = 1e-3, transfer_s: float = 0.0, trace: bool = True
) -> Run:
    """Epoch after epoch over a loader, for so many seconds after its first batch."""
    until_s = float("inf")
    with Profiler("planted", warmup=4, trace=trace) as profiler:
        while time.perf_counter() < until_s:
            for _ in profiler.iter(loader):
                until_s = min(until_s, time.perf_counter() + seconds)
                if transfer_s:
                    with profiler.stage("transfer"):
                        time.sleep(transfer_s)
                time.sleep(step_s)
                if time.perf_counter() > until_s:
                    break
    return profiler.result
