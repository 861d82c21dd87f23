"""Datasets whose stages clock themselves: each sample carries what its stages took, to be held against the tracer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, default_collate
from torchvision.transforms import Compose, v2

Sample = dict[str, float]


def sleep(seconds: float) -> float:
    began_s = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - began_s


def spin(seconds: float) -> float:
    began_s = time.perf_counter()
    while time.perf_counter() - began_s < seconds:
        pass
    return time.perf_counter() - began_s


class Step:
    """A transform that takes its time; `first` and `second` are two kinds of it, as a `Compose` has."""

    def __init__(self, seconds: float, work: Callable[[float], float] = spin) -> None:
        self.seconds, self.work = seconds, work

    def __call__(self, sample: Sample) -> Sample:
        name = type(self).__name__
        return {**sample, name: self.work(self.seconds)}


class First(Step):
    pass


class Second(Step):
    pass


def load(path: str) -> Sample:
    return {"decode": sleep(0.002)}


class FolderStyle(Dataset[Any]):
    """As torchvision's: `samples`, `loader`, `transform`; counts what it made, which must stay the user's own count."""

    def __init__(self, length: int = 24, compose: type = Compose) -> None:
        self.samples = [(f"/photos/{index}.jpg", index % 3) for index in range(length)]
        self.loader = load
        self.transform = compose([First(0.001), Second(0.0005, sleep)])
        self.made = 0

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Sample:
        path, _ = self.samples[index]
        self.made += 1
        slow = sleep(0.03) if index == 7 else 0.0
        return {"sample": slow + spin(0.0003), **self.transform(self.loader(path))}


class Batched(FolderStyle):
    """Makes a batch's samples in one call."""

    def __getitems__(self, indices: list[int]) -> list[Sample]:
        return [self.transform(self.loader(str(index))) for index in indices]


class Stream(IterableDataset[Sample]):
    """An iterable one, with a stage of its own as an attribute."""

    def __init__(self, length: int = 24) -> None:
        self.length, self.transform = length, Second(0.002, sleep)

    def __iter__(self) -> Iterator[Sample]:
        info = torch.utils.data.get_worker_info()
        share = self.length // (info.num_workers if info else 1)
        yield from (self.transform({"sample": sleep(0.001)}) for _ in range(share))


class OwnIterator(Stream):
    """Is its own iterator, as a `StreamingDataset` of LitData is."""

    left = 0

    def __iter__(self) -> OwnIterator:
        self.left = self.length
        return self

    def __next__(self) -> Sample:
        if not self.left:
            del self.left
            raise StopIteration
        self.left -= 1
        return self.transform({"sample": sleep(0.001)})


class Slotted(Dataset[Sample]):
    """Has no `__dict__` to share."""

    __slots__ = ("length",)

    def __init__(self, length: int = 12) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Sample:
        return {"sample": sleep(0.001)}


class Files(Dataset[tuple[Any, int]]):
    """Opaque: all is done in one method, by PIL."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self._to_tensor = v2.Compose([v2.PILToTensor(), v2.Resize((8, 8))])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        with Image.open(self.paths[index]) as image:
            return self._to_tensor(image.convert("RGB")), index


class Raises(FolderStyle):
    def __getitem__(self, index: int) -> Sample:
        if index == 11:
            raise ValueError("planted")
        return super().__getitem__(index)


_writing_s = [0.0]


def slow_collate(samples: list[Sample]) -> Any:
    """Writes its duration into the batch, plus what the previous write took, since a write comes after the clock."""
    began_s = time.perf_counter()
    batch = default_collate(samples)
    batch["collate"] = torch.zeros(len(samples), dtype=torch.float64)
    time.sleep(0.004)
    ended_s = time.perf_counter()
    batch["collate"] += (ended_s - began_s + _writing_s[0]) / len(samples)
    _writing_s[0] = time.perf_counter() - ended_s
    return batch


def means(batches: list[dict[str, torch.Tensor]]) -> dict[str, float]:
    """What the samples say their stages took, in seconds per sample."""
    return {name: torch.cat([batch[name] for batch in batches]).double().mean().item() for name in batches[0]}


def remember(worker: int) -> None:
    """A `worker_init_fn`; where it ran, `opened` is set on the worker's dataset."""
    info = torch.utils.data.get_worker_info()
    assert info is not None
    info.dataset.opened = worker
