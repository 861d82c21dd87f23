"""One stage of a dataset made free, in the process that loads its samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from loaderbench.freeing.files import free_decoders, free_reads, note_decoding, note_reads
from loaderbench.freeing.order import CannotFreeError
from loaderbench.freeing.parts import outermost, parts_of, replace_method, replace_part
from loaderbench.freeing.replay import Making, Replay
from loaderbench.tracing.parts import maker_of


def free_dataset(dataset: Any, stage: str, indices: Sequence[int]) -> None:
    """Keep the results of `stage` for the samples of these indices, and return them from then on.

    Raises `CannotFreeError` where the stage is not found, and what the dataset raises.
    """
    making = Making()
    replays = [Replay(making)] if stage == "sample" else _free_inside(dataset, stage, making)
    if has_samples_by_number(dataset):
        _follow_samples(dataset, making, replays[0] if stage == "sample" else None)
        for index in indices:
            with making.of([index], keeps=True):
                dataset[index]
                for replay in replays:
                    replay.end_sample()
            making.known[index] = None
    elif hasattr(type(dataset), "__iter__"):
        _follow_iterator(dataset, making, replays, stage == "sample", len(indices))
    else:
        raise CannotFreeError(f"{type(dataset).__name__} supports neither indexing nor iteration")


def has_samples_by_number(dataset: Any) -> bool:
    """Whether it is map-style. torch's `IterableDataset` inherits a `__getitem__` that only raises."""
    streams = any(kind.__name__ == "IterableDataset" for kind in type(dataset).__mro__)
    return hasattr(type(dataset), "__getitem__") and not streams


def _free_inside(dataset: Any, stage: str, making: Making) -> list[Replay]:
    wanted, _, name = stage.partition("/")
    parts = parts_of(dataset)
    if stage == "read" and not any(part.stage == stage for part in parts):
        return free_reads(making)
    known = [part for part in parts if part.name == name] if name else outermost(parts)
    found = [part for part in known if part.stage == wanted]
    if stage == "decode":
        note_reads(making)
    if not found and stage == "decode":
        return free_decoders(making)
    if not found:
        raise CannotFreeError(f"no {stage} stage was found in {type(maker_of(dataset)).__name__}")
    if wanted == "transform":
        note_decoding(making)
    replays = [Replay(making, with_reads=wanted in ("decode", "transform")) for _ in found]
    for part, replay in zip(found, replays, strict=True):
        replace_part(part, replay)
    return replays


def _follow_samples(dataset: Any, making: Making, whole: Replay | None) -> None:
    """Know which sample is made; `whole` replays it in one piece."""

    def one(original: Any, *args: Any, **named: Any) -> Any:
        with making.of([_key(args[0] if args else next(iter(named.values()), None))]):
            return whole(original, *args, **named) if whole else original(*args, **named)

    def many(original: Any, indices: Any) -> Any:
        with making.of([_key(index) for index in indices]):
            return [whole(original, index) for index in indices] if whole and not making.keeps else original(indices)

    replace_method(dataset, "__getitem__", one)
    if hasattr(type(dataset), "__getitems__"):
        replace_method(dataset, "__getitems__", many)
    elif own := getattr(dataset, "__dict__", {}).get("__getitems__"):  # as SeededSamples has it
        dataset.__getitems__ = partial(many, own)


def _key(index: Any) -> Any:
    """The sample of an index that a sampler drew, with or without the number of the draw."""
    return int(index) if isinstance(index, int) else index


def _follow_iterator(dataset: Any, making: Making, replays: Sequence[Replay], whole: bool, kept: int) -> None:
    """The first samples are kept as they come; `whole`: after them no other is made."""

    def samples(original: Any) -> Iterator[Any]:
        iterator = iter(original())
        number = 0
        while True:
            keeps = len(making.known) < kept
            try:
                with making.of([number % kept], keeps=keeps):
                    sample = replays[0](next, iterator) if whole else next(iterator)
                    for replay in replays if keeps else ():
                        replay.end_sample()
            except StopIteration:
                return
            if keeps:
                making.known[number % kept] = None
            number += 1
            yield sample

    replace_method(dataset, "__iter__", samples)
