"""Cost of tracing every sample of a photo pipeline, in this process and in workers: for `overhead.py`."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from overhead_loop import drain
from overhead_pairs import Block, Rounds, Spent, cpu, spent
from torch.utils.data import DataLoader, Sampler
from torchvision import transforms
from torchvision.datasets import ImageFolder

from loaderbench.tracing.block import ENABLED
from loaderbench.tracing.loader import LoaderTrace

BATCH = 32
WORKERS = 2
WIDTH = 0.008
LEAST_ROUNDS = 5  # even when the time is up: fewer rounds give no useful interval
ON, OFF = "traced", "not traced"


@dataclass(frozen=True)
class Tracing:
    """The blocks, and the share of samples whose stages were timed when they should have been traced."""

    rounds: Rounds
    timed_share: float


class SeededFolder(ImageFolder):  # type: ignore[misc]
    """An image folder indexed by (index, seed): the seed fixes a photo's crop and flip."""

    def __getitem__(self, asked: Any) -> Any:
        index, seed = asked
        torch.default_generator.manual_seed(seed)
        return super().__getitem__(index)


class Asked(Sampler[tuple[int, int]]):
    """Request the same photos in every epoch, until others are chosen."""

    def __init__(self, photos: int, samples: int) -> None:
        self._photos, self._samples, self._random = photos, samples, random.Random(0)
        self.choose()

    def choose(self) -> None:
        """Choose other photos and other seeds."""
        drawn = self._random.choices(range(self._photos), k=self._samples)
        self._asked = [(index, self._random.getrandbits(32)) for index in drawn]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._asked)

    def __len__(self) -> int:
        return self._samples


def folder(root: Path) -> SeededFolder:
    normalize = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    crop = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()]
    return SeededFolder(str(root), transforms.Compose([*crop, transforms.ToTensor(), normalize]))


def in_this_process(root: Path, batches: int, limit_s: float) -> Tracing:
    """Compare a loader with every sample traced to the same loader with every sample skipped."""
    torch.set_num_threads(1)  # as in a worker
    photos = folder(root)
    asked = Asked(len(photos), BATCH * batches)
    loader: DataLoader[Any] = DataLoader(photos, BATCH, sampler=asked)
    trace = LoaderTrace(loader)
    blocks = {OFF: lambda: spent(lambda: left_out(trace)), ON: lambda: spent(lambda: drain(trace.batches()))}
    taken = pairs(blocks, asked, limit_s)
    traced, asked_for = trace.read().traced, (len(taken.found[ON]) + 1) * BATCH * batches
    trace.stop()
    return Tracing(taken, traced / asked_for)


def left_out(trace: LoaderTrace) -> None:
    """An epoch in which no sample is traced, although everything is set up for tracing."""
    tracer = trace._tracer
    assert tracer is not None
    tracer._skip = 10**9
    drain(trace.batches())
    tracer._skip = 0


def in_workers(root: Path, batches: int, limit_s: float) -> Tracing:
    """Compare the same workers with their tracing switched on and off."""
    photos = folder(root)
    asked = Asked(len(photos), BATCH * batches)
    loader: DataLoader[Any] = DataLoader(photos, BATCH, sampler=asked, num_workers=WORKERS, persistent_workers=True)
    trace = LoaderTrace(loader)
    blocks = {OFF: lambda: switched(trace, on=False), ON: lambda: switched(trace, on=True)}
    taken = pairs(blocks, asked, limit_s)
    traced, asked_for = trace.read().traced, (len(taken.found[ON]) + 1) * BATCH * batches
    trace.stop()
    return Tracing(taken, traced / asked_for)


def lines_in_workers(root: Path, batches: int, limit_s: float) -> Rounds:
    """Compare traced workers with and without a thread that samples their lines."""
    photos = folder(root)
    asked = Asked(len(photos), BATCH * batches)
    traces = {}
    for name in (OFF, ON):
        loader: DataLoader[Any] = DataLoader(photos, BATCH, sampler=asked, num_workers=WORKERS, persistent_workers=True)
        traces[name] = LoaderTrace(loader, lines=name == ON)
    blocks = {name: lambda trace=trace: switched(trace, on=True) for name, trace in traces.items()}
    taken = pairs(blocks, asked, limit_s)
    for trace in traces.values():
        trace.stop()
    return taken


def pairs(blocks: dict[str, Block], asked: Asked, limit_s: float) -> Rounds:
    """Pairs over the same photos, different each time, until the interval is narrow. The first pair is discarded."""
    taken, ends_s = Rounds(len(asked)), time.monotonic() + limit_s
    for block in blocks.values():
        block()
    while rounds(taken) < LEAST_ROUNDS or (time.monotonic() < ends_s and not narrow(taken)):
        asked.choose()
        taken.take(blocks)
    return taken


def rounds(taken: Rounds) -> int:
    return len(taken.found.get(ON, ()))


def narrow(taken: Rounds) -> bool:
    return rounds(taken) >= 20 and taken.kept(ON, OFF, cpu).width < WIDTH


def switched(trace: LoaderTrace, *, on: bool) -> Spent:
    """Run an epoch with tracing on or off. CPU time is that of the workers alone."""
    for block in trace.blocks:
        block.header[ENABLED] = float(on)
    before_s = workers_cpu_s(trace)
    wall_s = spent(lambda: drain(trace.batches())).wall_s
    time.sleep(0.01)  # the last batch has arrived, but its worker may still be busy
    cpu_s = workers_cpu_s(trace) - before_s
    for block in trace.blocks:
        block.header[ENABLED] = 0.0  # off during the turns of others
    return Spent(cpu_s, wall_s)


def workers_cpu_s(trace: LoaderTrace) -> float:
    """CPU seconds of the workers by the scheduler, which counts nanoseconds instead of ticks; 0 before they start."""
    workers = (worker for iterator in trace._persistent for worker in iterator._workers)
    tasks = [task for worker in workers for task in Path(f"/proc/{worker.pid}/task").glob("*/schedstat")]
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
