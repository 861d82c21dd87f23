"""A dataset that lists its paths, and a loader of it that is dropped."""

from __future__ import annotations

import random
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench.script.recorder import ScriptRecorder

Iterate = Callable[[Any], Iterable[Any]]
NewRecorder = Callable[[], ScriptRecorder]


class Listed(Dataset[torch.Tensor]):
    """Lists the paths of its samples, and draws."""

    def __init__(self) -> None:
        self.samples = [(f"/photos/{number}.jpg", 0) for number in range(64)]
        self.draws = random.Random(0)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(2e-4)  # shorter samples may be counted only
        return torch.full((2,), index)


def used(iterate: Iterate, workers: int, epochs: int = 2) -> list[weakref.ref[Any]]:
    """A loader and its dataset, which are dropped after some epochs."""
    dataset = Listed()
    loader = DataLoader(dataset, batch_size=4, num_workers=workers, persistent_workers=workers > 0)
    for _ in range(epochs):
        for _ in iterate(loader):
            pass
    return [weakref.ref(loader), weakref.ref(dataset)]
