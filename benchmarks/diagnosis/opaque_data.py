"""Datasets that do all in one method, as users write them. Importable, since spawned workers are sent them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from benchmarks.diagnosis import work

ENDLESS = 10_000_000  # samples: an epoch that no scenario sees the end of


class Endless(Dataset[Any]):
    """So many samples that no epoch ends; `ms` is what one costs."""

    def __init__(self, ms: float) -> None:
        self.ms = ms

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        return work.sample(index)


class Python(Endless):
    def __getitem__(self, index: int) -> Any:
        return work.sample(index, work.python(self.ms))


class Hashing(Endless):
    def __getitem__(self, index: int) -> Any:
        return work.sample(index, work.hashing(self.ms))


class Zipping(Endless):
    def __getitem__(self, index: int) -> Any:
        return work.sample(index, work.zipping(self.ms))


class Fourier(Endless):
    def __getitem__(self, index: int) -> Any:
        return work.sample(index, work.fourier(self.ms))


class Matrices(Endless):
    """Multiplies matrices with NumPy, whose BLAS library starts a thread for each CPU in every process."""

    def __getitem__(self, index: int) -> Any:
        return work.sample(index, work.matrices(self.ms))


class Lookup(Endless):
    """Each process looks up a table of its own of 8 MB: the cache holds those of two workers, not of eight."""

    table: Any = None

    def __getitem__(self, index: int) -> Any:
        if self.table is None:
            self.draws = np.random.default_rng(index)
            self.table = self.draws.random(1 << 20)
        return work.sample(index, work.scattered(self.ms, self.table, self.draws))


class Stream(IterableDataset[Any]):
    """An endless stream, which each worker draws for itself; `kind` is a dataset of the above."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, ENDLESS, step):
            yield self.kind[index]
