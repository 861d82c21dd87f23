"""Work that the main process does alone between the workers and the loop, in one thread of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, Sampler, SequentialSampler, default_collate

from benchmarks.diagnosis import work
from benchmarks.diagnosis.opaque_data import ENDLESS, Endless, Python
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device


class SlowSampler(Sampler[int]):
    """Draws each index by much Python, as weighted sampling over lists does."""

    def __init__(self, ms: float) -> None:
        self.ms = ms

    def __iter__(self) -> Iterator[int]:
        for index in range(ENDLESS):
            work.python(self.ms)
            yield index

    def __len__(self) -> int:
        return ENDLESS


class SlowBatches(BatchSampler):
    """Puts each batch together by much Python, as bucketing by length does."""

    def __init__(self, ms: float) -> None:
        super().__init__(SequentialSampler(Endless(0)), 8, drop_last=True)
        self.ms = ms

    def __iter__(self) -> Iterator[list[int]]:
        for indices in super().__iter__():
            work.python(self.ms)
            yield indices


class Wrapped:
    """A loader around a loader, which works on each batch before it hands it out; NumPy or Python."""

    def __init__(self, loader: Any, ms: float, kind: str = "python") -> None:
        self.loader, self.ms, self.work = loader, ms, getattr(work, kind)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            self.work(self.ms)
            yield batch


class OneAhead(Wrapped):
    """The same, a batch ahead, as prefetchers do it."""

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.loader)
        batch = next(batches, None)
        while batch is not None:
            self.work(self.ms)
            following = next(batches, None)
            yield batch
            batch = following


class Stepwise(Wrapped):
    """The same by a method of its own for each batch."""

    def __iter__(self) -> Iterator[Any]:
        self.batches = iter(self.loader)
        return self

    def __next__(self) -> Any:
        batch = next(self.batches)
        self.work(self.ms)
        return batch


AROUND = {"a generator": Wrapped, "a prefetcher": OneAhead, "an iterator": Stepwise}


class Dear:
    """A collate_fn that does per batch, in Python, what could be done once per sample."""

    def __init__(self, ms: float) -> None:
        self.ms = ms

    def __call__(self, samples: list[Any]) -> Any:
        work.python(self.ms)
        return default_collate(samples)


def made_here(ms: float) -> Iterator[Any]:
    """Batches from a generator of the user's own, which nothing helps."""
    while True:
        yield torch.full((8, 64), work.python(ms)), torch.zeros(8)


def sampled(workers: int, *, sampler_ms: float = 0.0, batches_ms: float = 0.0) -> Loop:
    if batches_ms:
        return _loop(Endless(0), workers, batch_sampler=SlowBatches(batches_ms))
    return _loop(Python(0.2), workers, batch_size=8, sampler=SlowSampler(sampler_ms))


def wrapped(workers: int, *, ms: float = 12.0, kind: str = "python", sample_ms: float = 0.2, **more: Any) -> Loop:
    inner = DataLoader(Python(sample_ms), 8, num_workers=workers, **more)
    return Loop(lambda: Wrapped(inner, ms, kind), device(1))


def generated(*, ms: float = 12.0, workers: int = 0) -> Loop:
    """With workers: the same work as a dataset's."""
    return _loop(Python(ms / 8), workers, batch_size=8) if workers else Loop(lambda: made_here(ms), device(1))


def collated(workers: int, *, ms: float = 16.0) -> Loop:
    return _loop(Endless(0), workers, batch_size=8, collate_fn=Dear(ms))


def _loop(dataset: Any, workers: int, **more: Any) -> Loop:
    return Loop(lambda: DataLoader(dataset, num_workers=workers, **more), device(1))


TO_WORKERS = {"move_into_workers": {"ms": 0.0, "sample_ms": 1.7}}

SCENARIOS = (
    Scenario(
        "main_sampler_w2",
        "Each index takes 2 ms of Python in the main process; its thread is the lock, and the CPU it uses the cost.",
        sampled,
        {"workers": 2, "sampler_ms": 2.0},
        because_of("main_process", "lock cpu"),
        {"move_into_workers": {"sampler_ms": 0.0}, "cheaper_sample": {"sampler_ms": 0.0}},
    ),
    Scenario(
        "main_batch_sampler_w1",
        "Each batch takes 12 ms of Python before it is asked for.",
        sampled,
        {"workers": 1, "batches_ms": 12.0},
        because_of("main_process", "lock cpu"),
        {"move_into_workers": {"batches_ms": 0.01}, "cheaper_sample": {"batches_ms": 0.01}},
    ),
    Scenario(
        "main_wrapper_w2",
        "A generator around the DataLoader works 12 ms on each batch in the main process; the workers wait.",
        wrapped,
        {"workers": 2},
        because_of("main_process", "lock cpu"),
        TO_WORKERS,
    ),
    Scenario(
        "main_wrapper_numpy_spawn_w1",
        "The same with NumPy, over a spawned worker.",
        wrapped,
        {"workers": 1, "kind": "fourier", "multiprocessing_context": "spawn"},
        because_of("main_process", "lock cpu"),
        {"move_into_workers": {"ms": 0.0}},
    ),
    Scenario(
        "main_generator",
        "Batches are made in the main process; only the loop works, which makes `workers` right, too.",
        generated,
        {},
        because_of("main_process", "lock cpu workers"),
        {"move_into_workers": {"workers": 2}, "main_process_loading": {"workers": 2}, "more_workers": {"workers": 2}},
    ),
    Scenario(
        "collate_w0",
        "A dear collate_fn in the main process, the other core idle.",
        collated,
        {"workers": 0},
        because_of("collate", "workers"),
        {"cheaper_collate": {"ms": 1.0}, "main_process_loading": {"workers": 2}, "more_workers": {"workers": 2}},
    ),
    Scenario(
        "collate_w1",
        "A dear collate_fn in the one worker, the other core idle.",
        collated,
        {"workers": 1},
        because_of("collate", "workers"),
        {"cheaper_collate": {"ms": 1.0}, "more_workers": {"workers": 2}},
    ),
    Scenario(
        "collate_w2",
        "A dear collate_fn in two workers fills both cores.",
        collated,
        {"workers": 2},
        because_of("collate", "cpu"),
        {"cheaper_collate": {"ms": 1.0}},
    ),
)
