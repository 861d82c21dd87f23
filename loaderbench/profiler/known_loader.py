"""The recorded loader, held by a weak reference: the user's memory and workers are freed when they drop it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from loaderbench.profiler.references import Reference, weak
from loaderbench.recorder.attributes import attribute_of
from loaderbench.recorder.inside import path_of
from loaderbench.recorder.own_arguments import own_arguments_of
from loaderbench.recorder.samples import batch_size_of, is_stream, samples_per_epoch_of
from loaderbench.records import Config
from loaderbench.tracing.loader import is_loader, start_method_of, worker_arguments
from loaderbench.tracing.other_loader import OtherLoader

_MOST_LONGER = 2.0
"""A dataset that replaces a freed one is at most this many times as long, or as short."""


class KnownLoader:
    """The loader of the latest epoch, and what a result needs to know once the loader is freed.

    `config` has the arguments of a `DataLoader`. `kind` is the class of the dataset, or of the loader without one.
    Another library's loader is kept alive.
    """

    def __init__(self, loader: Any) -> None:
        dataset = attribute_of(loader, "dataset")
        self._loader: Reference = (lambda: loader) if isinstance(loader, OtherLoader) else weak(loader)
        self._address = None if self._loader() is loader else id(loader)
        self._dataset, self._classes = weak(dataset), _classes(loader)
        self._sampler = _class_of_sampler(loader)
        self.config = _config(loader)
        self.start_method = start_method_of(loader if is_loader(loader) else None)
        self.workers = int(loader.num_workers) if is_loader(loader) else 0
        self._samples, self._drawn = _length_of(dataset), samples_per_epoch_of(loader)
        self.why_no_length = _why_no_length(dataset)
        self.kind = "nothing" if loader is None else type(loader if dataset is None else dataset).__name__
        self._traits: dict[str, str] = {}
        self._paths: dict[int, str] = {}

    @property
    def loader(self) -> Any:
        """The loader; `None` once it is freed."""
        return self._loader()

    @property
    def samples(self) -> int | None:
        """The length of the dataset when its first epoch began; `None` if unknown.

        For an `IterableDataset`, it is the length that torch noted when the script called `len(loader)`.
        """
        asked = attribute_of(self.loader, "_IterableDataset_len_called")
        return self._samples if asked is None else asked

    @property
    def samples_per_epoch(self) -> int | None:
        """How many samples its sampler draws in an epoch, or else `samples`; `None` if unknown."""
        return self._drawn or self.samples

    def is_same(self, loader: Any) -> bool:
        """Whether it is this very loader. One without weak references, such as a list, is known by its address."""
        return loader is self.loader or id(loader) == self._address

    def is_like(self, loader: Any) -> bool:
        """Whether batches of another loader belong to this one: a script may create a new loader for each epoch."""
        if self.has_same_dataset(loader):
            return True
        length, own = _length_of(attribute_of(loader, "dataset")), self.samples
        return self.is_of_same_classes(loader) and (length is None or own is None or length == own)

    def is_continued_by(self, loader: Any) -> bool:
        """Whether a new loader in the same place continues this one. While this dataset exists, both have to use it.

        If it is freed, the next can be another one, as in another fold: of the same class and a similar length, with a
        sampler of the same class.
        """
        if self.loader is not None or self._dataset() is not None:
            return self.has_same_dataset(loader)
        is_alike = self.is_of_same_classes(loader) and _class_of_sampler(loader) is self._sampler
        return is_alike and _are_similar(_length_of(attribute_of(loader, "dataset")), self.samples)

    def has_same_dataset(self, loader: Any) -> bool:
        """Whether it is this very loader, or a loader of the same kind over the same dataset."""
        dataset = attribute_of(loader, "dataset")
        same = dataset is not None and dataset is self._dataset()
        return self.is_same(loader) or (same and self.is_of_same_classes(loader))

    def is_of_same_classes(self, loader: Any) -> bool:
        """Whether loader and dataset have the same classes, and batches have the same size."""
        return _classes(loader) == self._classes

    def note(self, slow_samples: Iterable[int]) -> None:
        """Save length, traits and paths while the dataset is alive: it may be freed before a result is created."""
        dataset, self._samples = self._dataset(), self.samples
        if dataset is None:
            return
        self._traits = self.traits()
        for index in slow_samples:
            if index not in self._paths and (path := path_of(dataset, index)):
                self._paths[index] = path

    def traits(self) -> dict[str, str]:
        """The dataset's traits from `traits_of`. Nothing is imported for a loader that is not torch's."""
        dataset = self._dataset()
        is_loader_freed = self.loader is None and bool(self._traits)
        if dataset is None or is_loader_freed or "torch" not in sys.modules:
            return self._traits
        from loaderbench.dataset_traits import traits_of

        traits = traits_of(dataset, attribute_of(self.loader, "worker_init_fn"))
        own = own_arguments_of(self.loader)
        return {**traits, "own_arguments": own} if own else traits

    def path_of(self, index: int) -> str | None:
        """The path of a sample, if the dataset lists paths. Once the dataset is freed, only saved paths are known."""
        return self._paths.get(index) or path_of(self._dataset(), index)


def _config(loader: Any) -> Config:
    """The arguments of a `DataLoader`; empty for any other loader."""
    if not is_loader(loader):
        return {}
    return {"batch_size": loader.batch_size, **worker_arguments(loader), "pin_memory": bool(loader.pin_memory)}


def _classes(loader: Any) -> tuple[Any, ...]:
    return type(loader), type(attribute_of(loader, "dataset")), batch_size_of(loader)


def _class_of_sampler(loader: Any) -> type:
    return type(attribute_of(loader, "sampler"))


def _are_similar(length: int | None, other: int | None) -> bool:
    """Whether neither of two lengths is much longer; true if one is unknown."""
    if length is None or other is None:
        return True
    return max(length, other) <= _MOST_LONGER * min(length, other)


def _why_no_length(dataset: Any) -> str:
    """Why the number of samples is unknown, if it is."""
    if dataset is None:
        return "unknown without a dataset"
    if is_stream(dataset) and hasattr(type(dataset), "__len__"):
        return "the script did not call len(loader); __len__ of an iterable dataset can take long"
    return "the dataset has no length"


def _length_of(dataset: Any) -> int | None:
    """The number of samples in a dataset; `None` if it has no length.

    `__len__` of an `IterableDataset` is not called: it can read files, and torch does not call it for an epoch.
    """
    if is_stream(dataset):
        return None
    try:
        return len(dataset)
    except Exception:  # the user's `__len__` can raise any exception
        return None
