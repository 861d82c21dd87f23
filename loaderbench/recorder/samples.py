"""Counts the samples in a batch of any structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import islice
from types import FunctionType
from typing import Any

from loaderbench.code_places import is_library
from loaderbench.recorder.attributes import attribute_of

UNBATCHED = 0
"""Replaces a batch size if the loader returns the items of its dataset, which are samples or entire batches."""

_CHANNELS = (1, 3, 4)
_SHORTEST_SIDE = 16  # pixels; a shorter tensor with three dimensions can be anything
_MOST_TENSORS = 64  # that are looked at in a batch
_MOST_PARTS = 100  # of a batch, and of each of them: lists of numbers can be long
_MISSING = object()
_PLAIN = (int, float, str, bytes, bool, type(None))


def given_batch_size(loader: Any) -> int | None:
    """The batch size given to a loader or its batch sampler, limited to the number of samples.

    `UNBATCHED` if indices are requested one by one, or if a stream is passed through. `None` if the size is unknown, as
    for a generator, if a sampler requests several indices at once, or if a loader uses these names for other things.
    """
    batch_sampler = attribute_of(loader, "batch_sampler", _MISSING)
    if batch_sampler is None and attribute_of(loader, "batch_size", _MISSING) is None:
        return UNBATCHED if _passes_items(loader) else None
    given = batch_size_of(loader) or batch_size_of(batch_sampler)
    samples = None if batch_sampler is _MISSING else _length_of_sampler(attribute_of(loader, "sampler"))
    return given and min(given, samples or given)


def samples_per_epoch_of(loader: Any) -> int | None:
    """How many samples a sampler of a library draws in an epoch, such as a rank's share; `None` if unknown."""
    own = attribute_of(loader, "sampler")
    sampler = attribute_of(attribute_of(loader, "batch_sampler"), "sampler", own)
    return None if batch_size_of(sampler) else _length_of_sampler(sampler)  # one that gives lists counts those


def batch_size_of(loader: Any) -> int | None:
    """The attribute `batch_size`; `None` if it is not a positive integer."""
    found = attribute_of(loader, "batch_size")
    is_size = isinstance(found, int) and not isinstance(found, bool) and found > 0
    return found if is_size else None


def _passes_items(loader: Any) -> bool:
    """Whether a loader without batching requests indices one by one, or passes a stream through."""
    sampler, dataset = (attribute_of(loader, name, _MISSING) for name in ("sampler", "dataset"))
    if sampler is _MISSING or dataset is _MISSING:
        return False
    return is_stream(dataset) or _length(sampler) == _length(dataset)


def counter_of_items(loader: Any) -> Callable[[Any], int] | None:
    """Returns a counter of samples for a dataset whose items can be batches; `None` if each item is one sample."""
    return partial(count_samples, batch_size=UNBATCHED) if given_batch_size(loader) == UNBATCHED else None


def is_stream(dataset: Any) -> bool:
    """Whether this is an `IterableDataset` of torch."""
    return "IterableDataset" in {kind.__name__ for kind in type(dataset).__mro__}


def _length_of_sampler(sampler: Any) -> int | None:
    """The length; `None` for a sampler of the user's, whose `__len__` can take long."""
    own = getattr(type(sampler), "__len__", None)
    is_users = isinstance(own, FunctionType) and not is_library(own.__code__.co_filename)
    return None if is_users else _length(sampler)


def _length(sized: Any) -> int | None:
    """The length, or `None` if there is none, as for a stream, or if `len` raises."""
    try:
        return len(sized)
    except Exception:  # from the user's code
        return None


def count_samples(batch: Any, batch_size: int | None = None) -> int:
    """The number of samples in a batch.

    This is the batch size given to the loader, if the batch has such a length near its surface (default collate, list
    of samples, `tuple(zip(*samples))`, dict, dataclass), else its likeliest length. If a batch has no length, like an
    object of a user's class, or only larger ones, like the points of all samples, its size is the loader's batch size,
    or 1 if that is unknown. An empty list, tuple or dict has none. For a loader without batching, an image or a vector
    is one sample.
    """
    try:
        if batch_size == UNBATCHED:
            return 1 if _is_single(batch) else count_samples(batch)
        if isinstance(batch, list | tuple | dict) and not batch:
            return 0
        found = list(_lengths(batch))
    except Exception:  # a user-defined batch, whose parts can raise any exception
        found = []
    if batch_size and (batch_size in found or not found or found[0] > batch_size):
        return batch_size
    return found[0] if found else 1


def _is_single(item: Any) -> bool:
    """Whether the first tensor has no batch dimension: an image, a vector, or an item without any shape."""
    first = _first_tensor(item)
    if first is None:
        return True
    shape = tuple(first.shape)
    return len(shape) == 1 or (len(shape) == 3 and (shape[0] in _CHANNELS or shape[2] in _CHANNELS))


def _first_tensor(item: Any) -> Any:
    return next(_tensors(item), None)


def _tensors(item: Any) -> Iterator[Any]:
    """Yield the tensors among the first parts of a batch or sample of any structure."""
    waiting = [item]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        if _is_tensor(part):
            yield part
        else:
            waiting += [one for one in islice(_parts(part), _MOST_PARTS) if type(one) not in _PLAIN][::-1]


def _parts(item: Any) -> Iterable[Any]:
    if isinstance(item, Mapping):
        return item.values()
    if is_dataclass(item) and not isinstance(item, type):
        return [getattr(item, own.name, None) for own in fields(item)]
    return item if isinstance(item, list | tuple) else ()


def image_dtype(batch: Any) -> str | None:
    """The data type of the images in a batch, such as `uint8`; empty without images, `None` without tensors."""
    try:
        found = list(islice(_tensors(batch), _MOST_TENSORS))
        images = [str(one.dtype).rpartition(".")[2] for one in found if _is_image(tuple(one.shape))]
    except Exception:  # a user-defined batch, whose parts can raise any exception
        return None
    return images[0] if images else "" if found else None


def _is_image(shape: tuple[int, ...]) -> bool:
    """Whether this is the shape of one or more images, with the channels first or last."""
    if len(shape) < 3:
        return False
    first, second, last = shape[-3:]
    return (first in _CHANNELS and min(second, last) >= _SHORTEST_SIDE) or (
        last in _CHANNELS and min(first, second) >= _SHORTEST_SIDE
    )


def sample_counter(batch: Any, batch_size: int | None = None) -> Callable[[Any], int]:
    """Returns a counter for batches like this first one, much faster than `count_samples`.

    The counter can raise for batches with another structure. If the first batch has one sample but the loader makes
    larger batches, its samples are assumed to be packed into one row.
    """
    if batch_size and count_samples(batch, batch_size) == 1 < batch_size:
        return lambda _: batch_size
    count = _by_kind(batch)
    if count is not None and count(batch) == count_samples(batch, batch_size):
        return count
    return lambda other: count_samples(other, batch_size)


def _by_kind(batch: Any) -> Callable[[Any], int] | None:
    """A counter based on the type of the batch, not on a coincidental length."""
    if _is_tensor(batch):
        return _of_tensor
    if not isinstance(batch, list | tuple) or not batch or not _is_tensor(batch[0]):
        return None
    return len if all(_is_tensor(part) and len(part.shape) == 3 for part in batch) else _of_first_tensor


def _of_first_tensor(batch: Any) -> int:
    return batch[0].shape[0]  # type: ignore[no-any-return]


def _of_tensor(batch: Any) -> int:
    return batch.shape[0]  # type: ignore[no-any-return]


def _lengths(batch: Any) -> Iterator[int]:
    """Lengths that may be the batch size, likeliest first."""
    if _is_tensor(batch):
        yield int(batch.shape[0])
    elif isinstance(batch, Mapping):
        yield from _lengths_in_values(batch.values())
    elif is_dataclass(batch) and not isinstance(batch, type):
        yield from _lengths_in_values([getattr(batch, own.name, None) for own in fields(batch)])
    elif isinstance(batch, list | tuple) and batch:
        yield from _lengths_in_sequence(batch)


def _lengths_in_values(values: Iterable[Any]) -> Iterator[int]:
    for value in sorted(values, key=_is_tensor, reverse=True):
        yield from _lengths(value)


def _lengths_in_sequence(batch: list[Any] | tuple[Any, ...]) -> Iterator[int]:
    if all(_is_tensor(part) and len(part.shape) == 3 for part in batch):  # a list of images, not a stacked batch
        yield len(batch)
    elif _is_transposed(batch):
        yield len(batch[0])
    elif _is_tensor(batch[0]):
        yield int(batch[0].shape[0])
    elif len(batch) == 1:
        yield from _lengths(batch[0])
    elif _are_fields(batch):  # such as ((view, view), labels), or (paths, images)
        likeliest = Counter(length for part in batch for length in islice(_lengths(part), 1))
        yield from (length for length, _ in likeliest.most_common(1))
    yield len(batch)
    for part in batch[:2]:
        yield from (_lengths(part) if not _is_tensor(part) else [int(part.shape[0])])


def _are_fields(batch: list[Any] | tuple[Any, ...]) -> bool:
    """Whether the parts are fields of one batch. Samples in a list have one type and hold no stacked images."""
    is_mixed = len({type(part) for part in islice(batch, _MOST_PARTS) if part is not None}) > 1
    first = batch[0]
    parts = first.values() if isinstance(first, Mapping) else first if isinstance(first, list | tuple) else ()
    return is_mixed or any(_is_tensor(part) and len(part.shape) >= 4 for part in parts)


def _is_transposed(batch: list[Any] | tuple[Any, ...]) -> bool:
    """Whether this is `tuple(zip(*samples))`: a few sequences of equal length, each holding objects of one type."""
    if not all(isinstance(part, list | tuple) and part for part in batch):
        return False
    alike = all(len({type(item) for item in islice(part, _MOST_PARTS)}) == 1 for part in batch)
    return alike and len({len(part) for part in batch}) == 1 and len(batch) < len(batch[0])


def _is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch, NumPy or another library; TensorFlow's shapes are not tuples."""
    try:
        shape = value.shape
        return len(shape) > 0 and int(shape[0]) >= 0
    except Exception:  # a nested tensor has no shape, and a class can raise any exception
        return False
