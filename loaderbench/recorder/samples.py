"""How many samples a batch of any structure holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import islice
from typing import Any

UNBATCHED = 0
"""In place of a batch size: the loader hands out what its dataset returns, which is a sample or a batch."""

_CHANNELS = (1, 3, 4)


def given_batch_size(loader: Any) -> int | None:
    """The batch size that a loader or its batch sampler was given, and no more than there are samples.

    `UNBATCHED` where each index is asked for by itself, or where a stream is passed on as it comes. `None` where it is
    not known, as of a generator, and where a sampler asks for several indices at once.
    """
    given = getattr(loader, "batch_size", None)
    if not hasattr(loader, "batch_sampler"):
        return given
    samples = _length(loader.sampler)
    if given is None and loader.batch_sampler is None:
        return UNBATCHED if _is_stream(loader.dataset) or samples == _length(loader.dataset) else None
    if given is None:
        given = getattr(loader.batch_sampler, "batch_size", None)
    return min(given, samples or given) if isinstance(given, int) else None


def counter_of_items(loader: Any) -> Callable[[Any], int] | None:
    """What counts the samples of an item of a dataset that may make the batches itself; `None` where each is one."""
    return partial(count_samples, batch_size=UNBATCHED) if given_batch_size(loader) == UNBATCHED else None


def _is_stream(dataset: Any) -> bool:
    return "IterableDataset" in {kind.__name__ for kind in type(dataset).__mro__}


def _length(sized: Any) -> int | None:
    """`None` where it has none, as a stream, or fails to tell."""
    try:
        return len(sized)
    except Exception:  # of the user's own
        return None


def count_samples(batch: Any, batch_size: int | None = None) -> int:
    """Samples of a batch.

    The batch size that the loader was given, where the batch has such a length anywhere near its surface (a default
    collate, a list of samples, `tuple(zip(*samples))`, a dict, a dataclass); else the likeliest of its lengths. A batch
    without any, such as an object of the user's own class, or with more, as of the points of all samples, has the
    loader's batch size, or 1 if that is unknown. Of a loader that makes no batches, an image or a vector is one sample.
    """
    if batch_size == UNBATCHED:
        return 1 if _is_single(batch) else count_samples(batch)
    try:
        found = list(_lengths(batch))
    except Exception:  # a batch of the user's own making, whose parts may raise anything
        found = []
    if batch_size is not None and (batch_size in found or not found or found[0] > batch_size):
        return batch_size
    return found[0] if found else 1


def _is_single(item: Any) -> bool:
    """Whether what holds no batch dimension comes first: an image, a vector, or nothing that has a shape."""
    first = _first_tensor(item)
    if first is None:
        return True
    shape = tuple(first.shape)
    return len(shape) == 1 or (len(shape) == 3 and (shape[0] in _CHANNELS or shape[2] in _CHANNELS))


def _first_tensor(item: Any) -> Any:
    if _is_tensor(item):
        return item
    if isinstance(item, Mapping):
        parts = list(item.values())
    elif is_dataclass(item) and not isinstance(item, type):
        parts = [getattr(item, own.name, None) for own in fields(item)]
    else:
        parts = list(item) if isinstance(item, list | tuple) else []
    return next((found for part in parts if (found := _first_tensor(part)) is not None), None)


def sample_counter(batch: Any, batch_size: int | None = None) -> Callable[[Any], int]:
    """What counts the samples of batches made like this one, the first, in a fraction of the time of `count_samples`.

    For a batch made otherwise it may raise. A first batch of one sample, where the loader makes larger ones, is one of
    samples packed into a row.
    """
    if batch_size and count_samples(batch, batch_size) == 1 < batch_size:
        return lambda _: batch_size
    count = _by_kind(batch)
    if count is not None and count(batch) == count_samples(batch, batch_size):
        return count
    return lambda other: count_samples(other, batch_size)


def _by_kind(batch: Any) -> Callable[[Any], int] | None:
    """By what the batch is, not by what it happens to be as long as."""
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
    """Lengths that may be the batch's, likeliest first."""
    if _is_tensor(batch):
        yield int(batch.shape[0])
    elif isinstance(batch, Mapping):
        yield from _of_named(batch.values())
    elif is_dataclass(batch) and not isinstance(batch, type):
        yield from _of_named([getattr(batch, own.name, None) for own in fields(batch)])
    elif isinstance(batch, list | tuple) and batch:
        yield from _of_sequence(batch)


def _of_named(values: Iterable[Any]) -> Iterator[int]:
    for value in sorted(values, key=_is_tensor, reverse=True):
        yield from _lengths(value)


def _of_sequence(batch: list[Any] | tuple[Any, ...]) -> Iterator[int]:
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
    """Fields of one batch, not samples of a list, which are all of one kind and hold no stacked images."""
    is_mixed = len({type(part) for part in batch if part is not None}) > 1
    first = batch[0]
    parts = first.values() if isinstance(first, Mapping) else first if isinstance(first, list | tuple) else ()
    return is_mixed or any(_is_tensor(part) and len(part.shape) >= 4 for part in parts)


def _is_transposed(batch: list[Any] | tuple[Any, ...]) -> bool:
    """`tuple(zip(*samples))`: a few sequences of one length, each holding things of one kind."""
    if not all(isinstance(part, list | tuple) and part for part in batch):
        return False
    alike = all(len({type(item) for item in part}) == 1 for part in batch)
    return alike and len({len(part) for part in batch}) == 1 and len(batch) < len(batch[0])


def _is_tensor(value: Any) -> bool:
    """Of torch, NumPy, or another library: TensorFlow's shapes are no tuples."""
    try:
        shape = value.shape
        return len(shape) > 0 and int(shape[0]) >= 0
    except Exception:  # a nested tensor has none to tell, and a class may raise anything
        return False
