"""Iterable datasets that divide their samples among workers, or do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import IterableDataset


class Stream(IterableDataset[int]):
    """Each worker yields every sample."""

    def __iter__(self) -> Iterator[int]:
        yield from range(8)


class Divided(Stream):
    """Each worker yields its share."""

    def __iter__(self) -> Iterator[int]:
        info = torch.utils.data.get_worker_info()
        yield from range(info.id if info else 0, 8, info.num_workers if info else 1)


def divides(worker: int, seed: int = 0) -> None:
    """A `worker_init_fn` that tells the dataset which samples are the worker's."""
    info: Any = torch.utils.data.get_worker_info()
    info.dataset.first = worker
