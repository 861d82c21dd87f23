"""Caches batches of a loader and replays them to a consumer after the loader has ended."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import is_dataclass
from itertools import cycle, islice
from typing import Any

import torch

from loaderbench.consumers.accelerator import synchronize
from loaderbench.consumers.batch_parts import changed
from loaderbench.loaders import Batches
from loaderbench.recorder import NoBatchesError, Steps
from loaderbench.recorder.stalls import Wait
from loaderbench.records import LoaderInside
from loaderbench.records.words import count

MOST_BATCHES, MOST_BYTES, MOST_S = 16, 1 << 30, 5.0
"""Limits on the cached batches: too many for a CPU cache, yet few enough for a slow loader."""

_WHY = "cached batches were replayed: no loader ran"
_UNKNOWN = (
    "stages", "stage_parts", "sample_times", "workers", "main_process", "machine", "reads", "taking", "wait_parts",
    "tracing_s_per_sample",
)  # fmt: skip


def keep(batches: Batches) -> list[Any]:
    """Copy the first batches to this process's memory, and end the loader with its workers.

    Raises `NoBatchesError` if there are none.
    """
    began_s, kept, held = time.monotonic(), list[Any](), 0
    iterator = iter(batches.iterable)
    try:
        for batch in islice(iterator, MOST_BATCHES):
            kept.append(changed(batch, _unshared))
            held += _size_of(kept[-1])
            if held + held / len(kept) > MOST_BYTES or time.monotonic() - began_s > MOST_S:
                break
    finally:
        batches.close(iterator)
        gc.collect()
    if not kept:
        raise NoBatchesError("the loader returned no batch; with drop_last the dataset must fill one batch")
    return kept


class Replayed:
    """Replays cached batches forever, each time in a new list, dict or dataclass, because a step may modify it."""

    def __init__(self, batches: list[Any], *, device: str | None = None) -> None:
        """Move the batches to `device`, as torch names it; by default they stay where the loader put them."""
        self._batches = [changed(batch, lambda tensor: tensor.to(device)) for batch in batches] if device else batches
        if device:
            synchronize(torch.device(device))

    def __iter__(self) -> Iterator[Any]:
        return map(_shallow_copy, cycle(self._batches))

    def begin(self) -> None:
        """Do nothing: a replay has no readings."""

    def made(self, epoch: int, batch: int) -> None:
        """Unknown: the batches were made before."""

    @property
    def batch_bytes(self) -> float:
        """Average bytes per batch."""
        return sum(map(_size_of, self._batches)) / len(self._batches)

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Empty: no process makes batches."""
        return ()

    def epochs(self, steps: Steps) -> None:
        """None: the batches are replayed without an end."""

    def inside(self, waits: Mapping[int, Sequence[Wait]]) -> LoaderInside:  # noqa: ARG002 - no worker made them
        """No readings, because no loader runs."""
        sampled = f"{count(len(self._batches), 'batch', 'batches')} cached and replayed"
        return LoaderInside(sampled=sampled, not_measured=dict.fromkeys(_UNKNOWN, _WHY))


def _unshared(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a worker's tensor out of shared memory, which can be scarce in a container."""
    shared = tensor.device.type == "cpu" and tensor.is_shared()  # type: ignore[no-untyped-call]
    return tensor.clone() if shared else tensor


def _shallow_copy(batch: Any) -> Any:
    if is_dataclass(batch) and not isinstance(batch, type):
        return copy(batch)
    return batch.copy() if type(batch) in (list, dict) else batch


def _size_of(batch: Any) -> int:
    sizes: list[int] = []
    changed(batch, lambda tensor: sizes.append(tensor.nbytes) or tensor)  # type: ignore[func-returns-value]
    return sum(sizes)
