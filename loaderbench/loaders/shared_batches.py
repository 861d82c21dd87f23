"""Workers that load for all ranks of a machine, in a trial and in a program to paste."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loaderbench.loaders.backend import Batches, TracedIn

SHARE = "share_workers"
"""Argument that makes the workers load for all ranks of the machine; see `SharedWorkers`."""


@dataclass(frozen=True)
class SharedBatches(Batches):
    """Batches of a `SharedWorkers`."""

    divided: bool = False

    @property
    def traced_in(self) -> TracedIn:
        """Nowhere: a worker also loads for other ranks."""
        return "nowhere"

    @property
    def is_divided(self) -> bool:
        """Whether the loader's sampler divides the samples."""
        return self.divided

    def close(self, iterator: Iterator[Any] | None = None) -> None:
        """Leave the workers, which end once all ranks have left them."""
        super().close(iterator)
        self.iterable.close()  # type: ignore[attr-defined]


def shared_among_ranks(found: Batches) -> SharedBatches:
    """The batches of a `DataLoader`, made by workers of all ranks. Raises `TypeError` for any other loader."""
    from torch.utils.data import DataLoader

    from loaderbench.loaders.shared_workers import SharedWorkers

    if not isinstance(found.iterable, DataLoader):
        raise TypeError(f"{SHARE} needs a map-style dataset, got {type(found.iterable).__name__}")
    shared = SharedWorkers(found.iterable)
    changed = {"iterable": shared, "ahead": shared.ahead, "cycle": shared.ahead, "divided": found.is_divided}
    return SharedBatches(**vars(found) | changed)


def sharing_code() -> str:
    """The source of `SharedWorkers` with its imports, the same code that trials run."""
    code = Path(__file__).with_name("shared_workers.py").read_text().split('"""', 2)[2]
    return code.replace("  # type: ignore[attr-defined]", "")
