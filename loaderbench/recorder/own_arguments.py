"""The arguments of a `DataLoader` that a program needs again, as code."""

from __future__ import annotations

from typing import Any

from loaderbench.recorder.attributes import attribute_of
from loaderbench.tracing.other_loader import OtherLoader

_LIBRARIES = ("torch", "torchdata", "accelerate", "lightning", "pytorch_lightning", "transformers", "functools")
_DEFAULT_COLLATE = "torch.utils.data._utils.collate"
_USUAL_SAMPLERS = ("SequentialSampler", "_InfiniteConstantSampler")


def with_batch_size(loader: Any) -> str:
    """The same as `own_arguments_of`, after the batch size; a batch sampler has its own."""
    own = own_arguments_of(loader)
    size = attribute_of(loader, "batch_size")
    return own if size is None else ", ".join(filter(None, (f"batch_size={size}", own)))


def own_arguments_of(loader: Any) -> str:
    """The arguments of a `DataLoader` that decide order and batches, as code such as `shuffle=True, collate_fn=pad`.

    Empty for torch's defaults, and for a loader of another library. Objects have the name of the argument; functions
    have their own.
    """
    if loader is None or isinstance(loader, OtherLoader):
        return ""
    found: dict[str, str] = {}
    sampler, batch_sampler = attribute_of(loader, "sampler"), attribute_of(loader, "batch_sampler")
    if batch_sampler is not None and not _is_of_library(type(batch_sampler)):
        found["batch_sampler"] = "batch_sampler"
    elif _is_shuffle(sampler):
        found["shuffle"] = "True"
    elif sampler is not None and type(sampler).__name__ not in _USUAL_SAMPLERS:
        found["sampler"] = "sampler"
    if batch_sampler is not None and attribute_of(loader, "drop_last") and "batch_sampler" not in found:
        found["drop_last"] = "True"
    collate, init = attribute_of(loader, "collate_fn"), attribute_of(loader, "worker_init_fn")
    if collate is not None and attribute_of(collate, "__module__") != _DEFAULT_COLLATE:
        found["collate_fn"] = _name_of(collate) or "collate_fn"
    if init is not None and not _is_of_library(init) and _name_of(init):
        found["worker_init_fn"] = _name_of(init)
    return ", ".join(f"{name}={value}" for name, value in found.items())


def own_class_of(loader: Any) -> str:
    """The class of a `DataLoader` of the user's or of another library, as `module:name`; empty for torch's own.

    Empty for classes of training frameworks, too, which make theirs from the user's `DataLoader`.
    """
    kind = type(loader)
    return "" if _is_of_library(kind) or "<locals>" in kind.__qualname__ else f"{kind.__module__}:{kind.__qualname__}"


def _is_shuffle(sampler: Any) -> bool:
    """Whether `shuffle=True` makes such a sampler: each sample once per epoch, in random order."""
    if "RandomSampler" not in {kind.__name__ for kind in type(sampler).__mro__ if _is_of_library(kind)}:
        return False
    try:
        if attribute_of(sampler, "_num_samples", "unknown") is None:  # all samples; the dataset need not be asked
            return not sampler.replacement
        return not sampler.replacement and sampler.num_samples == len(sampler.data_source)
    except Exception:  # a sampler of another library, or a dataset without a length
        return False


def _name_of(function: Any) -> str:
    """The name of a function; empty without one that code can use."""
    name = str(attribute_of(function, "__name__", ""))
    return name if name.isidentifier() else ""


def _is_of_library(found: Any) -> bool:
    return str(attribute_of(found, "__module__", "")).partition(".")[0] in _LIBRARIES
