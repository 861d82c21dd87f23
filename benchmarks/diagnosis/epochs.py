"""Short epochs that restart the workers each time, or whose sampler draws all indices before the first batch."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler, WeightedRandomSampler

from benchmarks.diagnosis import work
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

_DRAWS = Draws(20261129)


class Short(Dataset[Any]):
    """A few samples of 0.5 ms."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        return work.sample(index, work.python(0.5))


def loads_an_index(_worker: int) -> None:
    """What a worker_init_fn does that opens a database or a large index."""
    time.sleep(0.25)


def short(
    workers: int,
    *,
    batches: int = 8,
    persistent: bool = False,
    context: str | None = None,
    init: bool = False,
    seconds: float = 4.0,
) -> Loop:
    """Epochs of so many batches. `seconds` are many where a start takes seconds."""
    dataset = Short(8 * batches)

    def loader() -> Any:
        return DataLoader(
            dataset,
            8,
            num_workers=workers,
            persistent_workers=persistent,
            multiprocessing_context=context,
            worker_init_fn=loads_an_index if init else None,
        )

    return Loop(loader, device(6), seconds=seconds, warmup=2)


class SortedByLength(Sampler[int]):
    """Shuffles all rows and sorts them by length in Python, then draws some of them."""

    def __init__(self, rows: int, samples: int) -> None:
        self.lengths, self.samples = [random.random() for _ in range(rows)], samples

    def __len__(self) -> int:
        return self.samples

    def __iter__(self) -> Iterator[int]:
        rows = sorted(torch.randperm(len(self.lengths)).tolist(), key=self.lengths.__getitem__)
        yield from rows[: self.samples]


class Weighted(WeightedRandomSampler):
    """Draws as many indices as there are rows, and uses some of them."""

    def __init__(self, rows: int, samples: int) -> None:
        super().__init__(torch.rand(rows), rows)  # type: ignore[arg-type]
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __iter__(self) -> Iterator[int]:
        return islice(super().__iter__(), self.samples)


class Rows(Short):
    """Many samples that cost little."""

    def __getitem__(self, index: int) -> Any:
        return work.sample(index % 100, work.python(0.1))


def drawn_at_start(
    workers: int, *, kind: str, rows: int, batches: int, persistent: bool, chunked: bool = False
) -> Loop:
    """Epochs of so many batches of 8, from a sampler that first looks at all rows, or at none if `chunked`."""
    samples = 8 * batches
    sampler = range(samples) if chunked else {"weighted": Weighted, "sorted": SortedByLength}[kind](rows, samples)
    more = {"persistent_workers": persistent and workers > 0, "num_workers": workers}
    return Loop(lambda: DataLoader(Rows(rows), 8, sampler=sampler, **more), device(4), seconds=5.0, warmup=2)


def fixed(batches: int) -> dict[str, dict[str, Any]]:
    return {"persistent_workers": {"persistent": True}, "larger_epochs": {"batches": batches}}


def _drawn_at_start(number: int) -> Scenario:
    kind = _DRAWS.choice(["weighted", "sorted"])
    arguments = {
        "workers": _DRAWS.randint(0, 3),
        "kind": kind,
        "rows": _DRAWS.randint(300_000, 1_500_000),
        "batches": _DRAWS.randint(8, 24),
        "persistent": _DRAWS.random() < 0.5,
    }
    why = "The sampler ({kind}) looks at {rows} rows before each epoch of {batches} batches, {workers} workers."
    fixes = {"chunked_sampler": {"chunked": True}}
    words = because_of("startup", "startup")
    return Scenario(f"sampler_start_drawn_{number}", why.format(**arguments), drawn_at_start, arguments, words, fixes)


SCENARIOS = (
    Scenario(
        "startup_fork_w2",
        "Epochs of four batches: forking and joining two workers takes longer than the batches.",
        short,
        {"workers": 2, "batches": 4},
        because_of("startup", "startup"),
        fixed(400),
    ),
    Scenario(
        "startup_init_w2",
        "Each start loads an index for 0.25 s in worker_init_fn.",
        short,
        {"workers": 2, "batches": 12, "init": True},
        because_of("startup", "startup"),
        fixed(4_000),
    ),
    Scenario(
        "startup_spawn_w1",
        "Each epoch spawns a worker, which imports torch for seconds.",
        short,
        {"workers": 1, "batches": 20, "context": "spawn", "seconds": 8.0},
        because_of("startup", "startup"),
        fixed(4_000),
    ),
    Scenario(
        "startup_forkserver_w1",
        "The same through a fork server, which has not imported torch.",
        short,
        {"workers": 1, "batches": 20, "context": "forkserver", "seconds": 8.0},
        because_of("startup", "startup"),
        fixed(4_000),
    ),
    *map(_drawn_at_start, range(6)),
)
