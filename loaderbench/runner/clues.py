"""What only the trial's own process can say of an exception: what cannot be pickled, which samples do not fit."""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from typing import Any

_DEPTH = 5  # attributes of attributes
_LOOK_S, _LOOKED_AT = 2.0, 64  # samples, while there is time
_SENT = ("dataset", "collate_fn", "worker_init_fn", "sampler", "batch_sampler")


def clue_of(kind: str, source: Any) -> str:
    """What a dataset or loader has to do with a failure of this kind, in a sentence; empty where nothing is known."""
    look = _LOOKS.get(kind)
    try:
        return look(source) if look is not None else ""
    except Exception:  # a user's object may refuse anything
        return ""


def _not_picklable(source: Any) -> str:
    if hasattr(source, "dataset"):
        parts = [(name, getattr(source, name, None)) for name in _SENT]
    else:
        parts = [("dataset", source)]
    held = next((found for name, value in parts if (found := _culprit(name, value, _DEPTH))), "")
    return f"{held} cannot be pickled" if held else ""


def _culprit(name: str, value: Any, depth: int) -> str | None:
    """The innermost attribute that cannot be pickled, by its path and type."""
    if _can_be_pickled(value):
        return None
    inside = _inside(name, value) if depth else iter(())
    found = next((found for inner, held in inside if (found := _culprit(inner, held, depth - 1))), None)
    return found or f"{name} ({type(value).__name__})"


def _can_be_pickled(value: Any) -> bool:
    try:
        ForkingPickler(io.BytesIO()).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    except Exception:  # a lock of multiprocessing, say, which may be sent while a process starts and then alone
        return True
    return True


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return ((f"{name}[{key!r}]", held) for key, held in value.items())
    if isinstance(value, list | tuple):
        return ((f"{name}[{place}]", held) for place, held in enumerate(value))
    return ((f"{name}.{key}", held) for key, held in getattr(value, "__dict__", {}).items())


def _clash(source: Any) -> str:
    """Two samples that are not alike, by their indices and shapes."""
    dataset = getattr(source, "dataset", source)
    until_s, first = time.monotonic() + _LOOK_S, ""
    for index, sample in enumerate(_some(dataset)):
        shape = _shape(sample)
        first = first or shape
        if shape != first:
            return f"sample 0 is {first}, sample {index} is {shape}"
        if time.monotonic() > until_s:
            break
    return f"sample 0 is {first}" if first else ""


def _batch_bytes(source: Any) -> str:
    """What a batch takes of shared memory, by its first sample."""
    batch, sample = source.batch_size or 1, source.dataset[0]
    return f"a batch of {batch} takes about {batch * _bytes(sample) / 2**20:,.0f} MiB of it"


def _bytes(sample: Any) -> int:
    """Of the tensors and arrays in a sample."""
    if isinstance(sample, Mapping):
        return sum(map(_bytes, sample.values()))
    if isinstance(sample, list | tuple):
        return sum(map(_bytes, sample))
    return int(getattr(sample, "nbytes", 0))


def _some(dataset: Any) -> Iterable[Any]:
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return (dataset[index] for index in range(min(_LOOKED_AT, len(dataset))))
    return islice(dataset, _LOOKED_AT)


def _shape(sample: Any) -> str:
    """`(Tensor[3, 224, 224], int)`."""
    if isinstance(sample, Mapping):
        return "{" + ", ".join(f"{key}: {_shape(held)}" for key, held in sample.items()) + "}"
    if isinstance(sample, list | tuple):
        return "(" + ", ".join(map(_shape, sample)) + ")"
    size = getattr(sample, "shape", None)
    return type(sample).__name__ + ("" if size is None else str(list(size)))


_LOOKS: dict[str, Callable[[Any], str]] = {
    "not_picklable": _not_picklable,
    "collate": _clash,
    "shared_memory_full": _batch_bytes,
}
