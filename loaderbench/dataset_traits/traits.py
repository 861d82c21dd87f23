"""Traits of a dataset that decide which fixes fit it, found without calling the dataset."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from types import FunctionType
from typing import Any

import numpy as np
import torch

from loaderbench.dataset_traits.streams import is_undivided

LONG = 100_000  # objects, about 10 MB; the memory of shorter lists does not matter

_PILLOW = ("default_loader", "pil_loader")
_FLOAT_MAKERS = ("ToTensor", "Normalize", "ConvertImageDtype", "ToDtype")
_OTHER_LIBRARIES = ("albumentations", "kornia", "monai")
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)


def traits_of(dataset: Any, worker_init_fn: Any = None) -> dict[str, str]:
    """Return `random_state` and `object_list`, each with the attribute that holds one; never raises.

    `stream` and `loader` name the class of a dataset without indices, and of a finished `DataLoader`. `undivided` names
    the class of a stream of which each worker may yield every sample. `pillow` names the torchvision function that
    decodes with Pillow. Of torchvision's transforms, `transforms_v1` and `transforms_v2` name the first,
    `float_samples` the one that converts to float, and `uint8_samples` the last if none converts. `other_transforms`
    names the first transform of another library.
    """
    found: dict[str, str] = {}
    if isinstance(dataset, torch.utils.data.DataLoader):
        return {**traits_of(dataset.dataset, dataset.worker_init_fn), "loader": type(dataset).__name__}
    if is_undivided(dataset, worker_init_fn):
        found["undivided"] = type(dataset).__name__
    dataset = _vars(dataset).get("dataset", dataset)
    if isinstance(dataset, torch.utils.data.IterableDataset):
        found["stream"] = type(dataset).__name__
    for name, value in _attributes(dataset):
        if isinstance(value, _GENERATORS):
            found.setdefault("random_state", f"{name}: {type(value).__name__}")
        elif _is_long_list(value):
            found.setdefault("object_list", f"{name}: {len(value):,} objects")
    return found | _transform_traits(dataset)


def _transform_traits(dataset: Any) -> dict[str, str]:
    """Traits of torchvision's decoding and of transforms, as far as the dataset holds its functions."""
    found: dict[str, str] = {}
    own = _vars(dataset)
    decode = own.get("loader")
    if isinstance(decode, FunctionType) and _is_from(decode, "torchvision.datasets") and decode.__name__ in _PILLOW:
        found["pillow"] = decode.__name__
    for value in own.values():
        for step in _steps(value):
            found = _step_traits(step) | found
    steps = list(_steps(own.get("transform")))
    all_known = all(_is_torchvision(step) and type(step).__name__ != "Lambda" for step in steps)
    if _is_from(type(dataset), "torchvision.datasets") and steps and all_known and "float_samples" not in found:
        found["uint8_samples"] = type(steps[-1]).__name__
    return found


def _step_traits(step: Any) -> dict[str, str]:
    """Traits of one transform; empty unless it is from a known library."""
    if any(_is_from(type(step), library) for library in _OTHER_LIBRARIES):
        return {"other_transforms": type(step).__name__}
    if not _is_torchvision(step):
        return {}
    name, dtype = type(step).__name__, _vars(step).get("dtype")
    found = {"transforms_v2" if _is_from(type(step), "torchvision.transforms.v2") else "transforms_v1": name}
    if name in _FLOAT_MAKERS and (not isinstance(dtype, torch.dtype) or dtype.is_floating_point):
        found["float_samples"] = name
    return found


def _is_torchvision(step: Any) -> bool:
    return _is_from(type(step), "torchvision.transforms")


def _steps(transform: Any, levels: int = 4) -> Iterator[Any]:
    """Yield the individual transforms: those of a `Compose`, of a `RandomApply` in it, and so on."""
    own = _vars(transform)
    inner = own.get("transforms", own.get("_modules", {}).get("transforms"))
    if levels and isinstance(inner, list | tuple | torch.nn.ModuleList):
        for step in inner:
            yield from _steps(step, levels - 1)
    elif callable(transform):
        yield transform


def _is_from(named: Any, module: str) -> bool:
    """Whether a class or function is defined in a module or its submodules."""
    own = str(getattr(named, "__module__", ""))
    return own == module or own.startswith(f"{module}.")


def _attributes(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Attributes of the dataset, of its transform, and of that transform's steps."""
    transform = _vars(dataset).get("transform")
    steps = _vars(transform).get("transforms")
    for holder in (dataset, transform, *(steps if isinstance(steps, list) else [])):
        yield from _vars(holder).items()


def _vars(holder: Any) -> dict[str, Any]:
    try:
        return dict(vars(holder))
    except Exception:  # a type without attributes, or one that refuses access
        return {}


def _is_long_list(value: Any) -> bool:
    """Whether a value is a long builtin container. Other containers can share their content."""
    return type(value) in (list, tuple, dict) and isinstance(value, Sized) and len(value) >= LONG
