"""How many samples a batch holds, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def count_samples(batch: Any, batch_size: int | None = None) -> int:
    """Samples of a batch.

    The batch size that the loader was given, where the batch has such a length anywhere near its surface (a default
    collate, a list of samples, `tuple(zip(*samples))`, a dict); else the likeliest of its lengths. 1 for a batch that
    has none.
    """
    found = list(_lengths(batch))
    if batch_size is not None and batch_size in found:
        return batch_size
    return found[0] if found else 1


def sample_counter(batch: Any, batch_size: int | None = None) -> Callable[[Any], int]:
    """What counts the samples of batches made like this one, in a fraction of the time of `count_samples`."""
    samples = count_samples(batch, batch_size)
    for count in (_of_first_tensor, _of_tensor, len):
        try:
            if count(batch) == samples:
                return _with_fallback(count, batch_size)
        except (TypeError, AttributeError, LookupError):
            continue
    return lambda batch: count_samples(batch, batch_size)


def _with_fallback(count: Callable[[Any], int], batch_size: int | None) -> Callable[[Any], int]:
    def samples(batch: Any) -> int:
        try:
            return count(batch)
        except (TypeError, AttributeError, LookupError):
            return count_samples(batch, batch_size)

    return samples


def _of_first_tensor(batch: Any) -> int:
    return batch[0].shape[0]  # type: ignore[no-any-return]


def _of_tensor(batch: Any) -> int:
    return batch.shape[0]  # type: ignore[no-any-return]


def _lengths(batch: Any) -> Iterator[int]:
    """Lengths that may be the batch's, likeliest first."""
    if _is_tensor(batch):
        yield int(batch.shape[0])
    elif isinstance(batch, Mapping):
        values = sorted(batch.values(), key=_is_tensor, reverse=True)
        for value in values:
            yield from _lengths(value)
    elif isinstance(batch, list | tuple) and batch:
        yield from _of_sequence(batch)


def _of_sequence(batch: list[Any] | tuple[Any, ...]) -> Iterator[int]:
    if all(_is_tensor(part) and part.ndim == 3 for part in batch):  # images beside each other, not stacked
        yield len(batch)
    elif _is_transposed(batch):
        yield len(batch[0])
    elif _is_tensor(batch[0]):
        yield int(batch[0].shape[0])
    elif len(batch) == 1:
        yield from _lengths(batch[0])
    yield len(batch)
    for part in batch[:2]:
        yield from (_lengths(part) if not _is_tensor(part) else [int(part.shape[0])])


def _is_transposed(batch: list[Any] | tuple[Any, ...]) -> bool:
    """`tuple(zip(*samples))`: a few sequences of one length, each holding things of one kind."""
    if not all(isinstance(part, list | tuple) and part for part in batch):
        return False
    alike = all(len({type(item) for item in part}) == 1 for part in batch)
    return alike and len({len(part) for part in batch}) == 1 and len(batch) < len(batch[0])


def _is_tensor(value: Any) -> bool:
    shape = getattr(value, "shape", None)
    return shape is not None and len(shape) > 0
