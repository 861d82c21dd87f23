"""Samples and batches that cost more to transfer than to make."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from benchmarks.diagnosis.opaque_data import ENDLESS


class InMemory(Dataset[Any]):
    """A table of features that lies in memory; a sample is a row."""

    def __init__(self) -> None:
        self.rows = torch.rand(10_000, 16)

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        return self.rows[index % 10_000], index


class Ready(Dataset[Any]):
    """Batches that are ready: float32 images, or uint8 ones; as tensors, or as arrays that go through a pipe."""

    def __init__(self, dtype: str = "float32", array: bool = False, images: int = 32) -> None:
        self.images, self.array = np.zeros((images, 3, 224, 224), dtype), array

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        return (self.images if self.array else torch.from_numpy(self.images)), index  # a new tensor, which is no copy


class Nested(Dataset[Any]):
    """A sample of a hundred small tensors, each a file descriptor of its own on its way. `packed`: one of all."""

    def __init__(self, packed: bool = False) -> None:
        self.parts = {f"field_{place:03d}": torch.zeros(8) for place in range(100)}
        self.whole, self.packed = torch.zeros(8 * 100), packed

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        return self.whole if self.packed else self.parts


class Views(Dataset[Any]):
    """Images that lie in memory as float32: a sample is a view, and the batch is copied into shared memory."""

    def __init__(self, dtype: str = "float32") -> None:
        self.images = torch.zeros(64, 3, 224, 224, dtype=getattr(torch, dtype))

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        return self.images[index % 64]


class Allocating(Dataset[Any]):
    """Allocates, touches and frees `mb` of memory a sample: the kernel zeroes every page anew. `kept`: one buffer."""

    buffer: Any = None

    def __init__(self, mb: int = 40, kept: bool = False, pages: bool = True) -> None:
        self.mb, self.kept, self.pages = mb, kept, pages

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        if self.buffer is None or not self.kept:
            scratch = (
                torch.empty(self.mb << 20, dtype=torch.uint8).numpy()
                if self.pages
                else np.empty(self.mb << 20, np.uint8)
            )
            self.buffer = scratch if self.kept else None
        else:
            scratch = self.buffer
        scratch[::4096] = index & 0xFF
        return torch.full((64,), float(scratch[::65536].sum())), index
