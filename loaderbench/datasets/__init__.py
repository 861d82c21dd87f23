"""The datasets that samples come from. Each kind of dataset is one module and one line in `DATASET_KINDS`.

torch is imported only by the functions that load samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loaderbench.datasets.image_folder import ImageFolder
from loaderbench.datasets.kind import Ask, Built, DatasetKind, DatasetOrder, Inputs, PrepareListener, Samples
from loaderbench.datasets.target import Target

__all__ = [
    "DATASET_KINDS",
    "DEFAULT_KIND",
    "Ask",
    "Built",
    "DatasetKind",
    "DatasetOrder",
    "Inputs",
    "PrepareListener",
    "Samples",
    "Target",
    "options_to_try",
    "saved_dataset",
]

DATASET_KINDS: dict[str, type[DatasetKind]] = {
    "image_folder": ImageFolder,
    "target": Target,
}

DEFAULT_KIND = next(iter(DATASET_KINDS))


def saved_dataset(options: Mapping[str, Any] | None) -> DatasetKind | None:
    """The dataset of a saved run; `None` if there is none, or if this version does not know its kind.

    Options that can be axes but are missing from the saved run are `None`, not today's default.
    """
    kind = DATASET_KINDS.get(str(options.get("kind", DEFAULT_KIND))) if options is not None else None
    if kind is None or options is None:
        return None
    known = {name: value for name, value in options.items() if name in kind.model_fields}
    return kind.model_construct(**{**dict.fromkeys(kind.option_axes()), **known})


def options_to_try(saved: Mapping[str, Any]) -> dict[str, Any] | None:
    """The `dataset` section of a saved run if its kind has options that can be axes; otherwise `None`."""
    dataset = saved_dataset(saved)
    return dict(saved) if dataset is not None and dataset.axes else None
