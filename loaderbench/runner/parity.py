"""Compares the batches of two loaders: structure, shapes, types, labels and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from loaderbench.datasets import Ask, DatasetKind, DatasetOrder
from loaderbench.loaders import AXIS, DEFAULT_BACKEND, Batches, LoaderBackend, backend_of, own_arguments
from loaderbench.ranks import RANKS
from loaderbench.records import Parity

if TYPE_CHECKING:
    import torch

SAMPLES = 64  # a smaller dataset repeats samples
BATCH_SIZE = 16
TIMEOUT_S = 120.0
MOST_SHIFT = 0.25
"""Maximum shift of the mean, in standard deviations of the values.

Other random crops of the same photographs shift the mean far less, and missing normalization far more.
"""

MOST_SPREAD = 1.25  # maximum ratio of the standard deviations of the values


@dataclass(frozen=True)
class ParityOrder:
    """Two loaders over one dataset: the dataset's order for each, with the loader's name among its arguments."""

    dataset: DatasetKind
    one: DatasetOrder
    other: DatasetOrder
    backends: tuple[LoaderBackend, ...]


def compare_loaders(order: ParityOrder, ask: Ask) -> Parity:
    """Compare the first samples of both loaders in a separate process."""
    name, against = (str(each.arguments.get(AXIS, DEFAULT_BACKEND)) for each in (order.one, order.other))
    both = Parity(loader=name, against=against)
    found: Parity | None = ask(_answer, order, both, timeout_s=TIMEOUT_S)
    return found or _not_compared(both, f"comparing its batches crashed, or took more than {TIMEOUT_S:.0f} s")


def _not_compared(both: Parity, why: str) -> Parity:
    return replace(both, not_measured=dict.fromkeys(("samples", "difference"), why))


def _answer(pipe: Connection, order: ParityOrder, both: Parity) -> None:
    try:
        pipe.send(_compared(order, both))
    except Exception as error:  # the loader's trials will give more details
        pipe.send(_not_compared(both, f"{type(error).__name__}: {error}".splitlines()[0]))


def _compared(order: ParityOrder, both: Parity) -> Parity:
    theirs, epoch = _first_samples(order, order.other)
    again, _ = _first_samples(order, order.other)
    ours, own_epoch = _first_samples(order, order.one)
    both = replace(both, samples=min(map(len, (*theirs, *ours)), default=0))
    refused = "; ".join(_differences(ours, theirs, again))
    if epoch != own_epoch:
        refused = f"an epoch has {own_epoch} samples instead of {epoch}"
    if refused:
        return replace(both, refused=refused, not_measured={"difference": refused})
    if not all(map(_equal, theirs, again)):
        return replace(both, not_measured={"difference": "the transform draws different values each time"})
    found = [_difference(one, other) for one, other in zip(ours, theirs, strict=True) if other.dim() > 1]
    return replace(both, difference=max(found, default=0.0))


def _first_samples(order: ParityOrder, of: DatasetOrder) -> tuple[list[torch.Tensor], int | None]:
    """The tensors of the first batches, concatenated, and the samples per epoch."""
    import torch

    built = order.dataset.build(of)
    arguments = {**own_arguments(built.arguments, order.backends), "batch_size": BATCH_SIZE, "shuffle": False}
    arguments.pop(RANKS, None)  # used by the trial, not by its loader
    batches: Batches = backend_of(of.arguments).build(built.source, arguments, seed=0)
    iterator = iter(batches.iterable)
    try:
        batches_of_leaves = islice(iterator, SAMPLES // BATCH_SIZE)
        parts = [[leaf.cpu().clone() for leaf in _tensors(batch)] for batch in batches_of_leaves]
    finally:
        batches.close(iterator)
    return [torch.cat(leaves) for leaves in zip(*parts, strict=True)], batches.samples_per_epoch


def _tensors(batch: Any) -> Iterator[torch.Tensor]:
    """All tensors of a batch, in the order of its parts."""
    import torch

    if isinstance(batch, torch.Tensor):
        yield batch if batch.dim() else batch[None]
    elif isinstance(batch, Mapping):
        for name in sorted(batch, key=str):
            yield from _tensors(batch[name])
    elif isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        for part in batch:
            yield from _tensors(part)


def _differences(
    ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor], again: Sequence[torch.Tensor]
) -> Iterator[str]:
    """Differences too large to come from another decoder or crop. `again` is a second pass of the other loader."""
    if len(ours) != len(theirs):
        yield f"{len(ours)} tensors in a batch instead of {len(theirs)}"
        return
    for one, other, repeated in zip(ours, theirs, again, strict=True):
        if one.shape != other.shape:
            yield f"shape {tuple(one.shape[1:])} of a sample instead of {tuple(other.shape[1:])}"
        elif one.dtype != other.dtype:
            yield f"type {_name(one)} instead of {_name(other)}"
        elif other.dim() == 1 and not other.is_floating_point():
            if _equal(other, repeated) and not _equal(one, other):
                yield f"labels: {int((one != other).sum())} of {len(other)} differ"
        elif _equal(other.isnan(), repeated.isnan()) and not _equal(one.isnan(), other.isnan()):
            yield f"NaN in {int((one.isnan() != other.isnan()).sum()):,} values of {one.numel():,} in only one loader"
        else:
            yield from _values(one, other)


def _values(one: torch.Tensor, other: torch.Tensor) -> Iterator[str]:
    """Values with a shifted mean or another spread. NaN counts as missing."""
    ours, theirs = (values[~values.isnan()] for values in (one.double(), other.double()))
    if len(theirs) < 2:
        return
    if len(ours) < 2:
        yield "all values are NaN"
        return
    spread, own = float(theirs.std()), float(ours.std())
    shift = abs(float(ours.mean() - theirs.mean()))
    if shift > MOST_SHIFT * spread or not spread / MOST_SPREAD <= own <= spread * MOST_SPREAD:
        yield (
            f"values {float(ours.mean()):.3g} \N{PLUS-MINUS SIGN} {own:.3g} "
            f"instead of {float(theirs.mean()):.3g} \N{PLUS-MINUS SIGN} {spread:.3g}"
        )


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    ours, theirs = one.double().nan_to_num(), other.double().nan_to_num()
    spread = float(theirs.std())
    return float((ours - theirs).abs().mean()) / spread if spread else 0.0


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
