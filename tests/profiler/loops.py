"""Loaders and loops that clock their own waits and steps, and a picture of everything that a hook could be left on."""

from __future__ import annotations

import builtins
import io
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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


def seconds_of(work: Callable[[], Any]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def pause(seconds: float) -> float:
    return seconds_of(lambda: time.sleep(seconds))


@dataclass(frozen=True)
class Bounds:
    """Clocks inside and around what a profiler times: a true figure is between them, however busy the machine is."""

    inside_s: Sequence[float]
    around_s: Sequence[float]

    def hold(self, mean_s: float | None, over: int | None = None) -> bool:
        """Whether the mean lies within, over each clocked part or over so many of something else."""
        count = over or len(self.inside_s)
        rounding_s = 1e-9
        return (
            mean_s is not None
            and len(self.inside_s) == len(self.around_s)
            and sum(self.inside_s) - rounding_s <= mean_s * count <= sum(self.around_s) + rounding_s
        )


@marker.stage("augment")
def augment(index: int) -> float:
    return pause(0.002)


def augment_twice_clocked(index: int) -> tuple[float, float]:
    """What `augment` took by its own clock, and by one around the marked function."""
    took_s: list[float] = []
    around_s = seconds_of(lambda: took_s.append(augment(index)))
    return took_s[0], around_s


class Numbers(Dataset[Any]):
    def __init__(self, length: int = 48, raise_at: int | None = None) -> None:
        self.length, self.raise_at = length, raise_at

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if index == self.raise_at:
            raise ValueError("planted in the dataset")
        return torch.zeros(3), *augment_twice_clocked(index)


class Unpicklable(Numbers):
    def __init__(self) -> None:
        super().__init__()
        self.handle = open(__file__, "rb")  # noqa: SIM115, PTH123 - held on purpose: it cannot be sent to a worker


class Planted:
    """An iterable of lists that sleeps before each batch; no DataLoader, no length.

    `slept_s` and `away_s` are what it clocked of each batch: its sleep, and the time until it was asked again.
    """

    def __init__(self, batches: int = 40, wait_s: float = 0.004) -> None:
        self.batches, self.wait_s = batches, wait_s
        self.slept_s: list[float] = []
        self.away_s: list[float] = []

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.batches):
            self.slept_s.append(pause(self.wait_s))
            gave_s = time.perf_counter()
            yield [0] * 4
            self.away_s.append(time.perf_counter() - gave_s)


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
