"""Make one stage of a `DataLoader` free, before its first epoch."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch.utils.data import BatchSampler

from loaderbench.freeing import CannotFreeError, Freeing
from loaderbench.freeing.batches import KeptBatches, SentOnce
from loaderbench.freeing.dataset import free_dataset, has_samples_by_number
from loaderbench.loaders import Batches
from loaderbench.loaders.torch_loader import narrow_sampler
from loaderbench.records.words import NO_WORKER_PROCESSES

_OF_BATCHES = ("collate", "transport", None)
SPARE_BATCHES = 2  # batches kept in addition to those in flight


def free_loader(batches: Batches, freeing: Freeing) -> None:
    """Change the loader of a trial's process permanently. Raises `CannotFreeError` if that is impossible."""
    loader: Any = batches.iterable
    if batches.traced_in != "data_loader":
        raise CannotFreeError("only stages of a torch DataLoader can be made free")
    if freeing.stage not in _OF_BATCHES and loader.batch_sampler is None and isinstance(loader.sampler, BatchSampler):
        raise CannotFreeError("the loader asks its dataset for several samples at once")
    indices = _drawn(loader.dataset, freeing)
    if freeing.repeats_files and indices:
        narrow_sampler(loader, indices)
    if freeing.stage == "collate":
        loader.collate_fn = KeptBatches(loader.collate_fn, (loader.prefetch_factor or 0) + SPARE_BATCHES)
    elif freeing.stage == "transport":
        if not loader.num_workers:
            raise CannotFreeError(NO_WORKER_PROCESSES)
        loader.collate_fn = SentOnce(loader.collate_fn, bool(loader.pin_memory))
    elif freeing.stage is not None and loader.num_workers:
        loader.worker_init_fn = FreedInit(freeing.stage, indices, loader.worker_init_fn)
    elif freeing.stage is not None:
        free_dataset(loader.dataset, freeing.stage, indices)


def _drawn(dataset: Any, freeing: Freeing) -> Sequence[int]:
    """Indices of the kept samples; for an iterable dataset only their number matters."""
    if not (has_samples_by_number(dataset) and hasattr(type(dataset), "__len__")):
        return range(freeing.kept)
    length = len(dataset)
    return sorted(random.Random(freeing.seed).sample(range(length), min(freeing.kept, length)))


@dataclass(frozen=True)
class FreedInit:
    """A `worker_init_fn` that calls the original, and then frees a stage of the worker's copy of the dataset."""

    stage: str
    indices: Sequence[int]
    original: Callable[[int], Any] | None

    def __call__(self, worker_id: int) -> None:
        """Run in the worker, before its first sample."""
        from torch.utils.data import get_worker_info

        if self.original is not None:
            self.original(worker_id)
        info = get_worker_info()
        if info is not None:
            free_dataset(info.dataset, self.stage, self.indices)
