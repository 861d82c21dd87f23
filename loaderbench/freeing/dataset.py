"""Make one stage of a dataset free in the loading process, by finding and replacing its callables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper, wraps
from inspect import getattr_static
from types import FunctionType
from typing import Any

from loaderbench.freeing import CannotFreeError
from loaderbench.freeing.files import free_decoders, free_reads, note_decoding, note_reads
from loaderbench.freeing.replay import Making, Replay
from loaderbench.tracing.parts import attributes_of, is_dataset, maker_of, stage_of_callable

_WITHOUT_CLASS = ("builtins", "functools", "torch.jit")


def free_dataset(dataset: Any, stage: str, indices: Sequence[int]) -> None:
    """Keep the results of `stage` for the samples of these indices, and replay them from then on.

    Raises `CannotFreeError` if the stage is not found, and the dataset's exceptions.
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
    """Whether a dataset is map-style. torch's `IterableDataset` inherits a `__getitem__` that only raises."""
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
    """Track which sample is loaded; `whole` replays the complete sample."""

    def one(original: Any, *args: Any, **named: Any) -> Any:
        with making.of([_key(args[0] if args else next(iter(named.values()), None))]):
            return whole(original, *args, **named) if whole else original(*args, **named)

    def many(original: Any, *args: Any, **named: Any) -> Any:
        """Track a batch. The indices come first, possibly as an iterator; a user's method may take more arguments."""
        given = args[0] if args else next(iter(named.values()), ())
        indices = given if hasattr(given, "__len__") else list(given)
        args, named = (indices, *args[1:]) if args else (), named if args else {**named, next(iter(named)): indices}
        with making.of([_key(index) for index in indices]):
            if whole and not making.keeps:
                return [whole(original, index) for index in indices]
            return original(*args, **named)

    replace_method(dataset, "__getitem__", one)
    if hasattr(type(dataset), "__getitems__"):
        replace_method(dataset, "__getitems__", many)
    elif own := getattr(dataset, "__dict__", {}).get("__getitems__"):  # an instance attribute, as in SeededSamples
        dataset.__getitems__ = partial(many, own)


def _key(index: Any) -> Any:
    """The key of a sample: the index that a sampler drew, without the number of the draw."""
    if isinstance(index, list):
        return tuple(map(_key, index))
    return int(index) if isinstance(index, int) else index


def _follow_iterator(dataset: Any, making: Making, replays: Sequence[Replay], whole: bool, kept: int) -> None:
    """Track samples of an iterable dataset, keeping the first ones; if `whole`, no others are made afterwards."""

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


@dataclass(frozen=True)
class Part:
    """A callable that a dataset holds. `stage` and `name` are the tracer's, such as `transform/Normalize`."""

    stage: str
    name: str
    value: Any
    holder: Any
    key: Any


def parts_of(dataset: Any) -> list[Part]:
    """The callables that make a sample; each step of a `Compose` comes before the `Compose` itself."""
    return list(_dataset_parts(maker_of(dataset), set()))


def _dataset_parts(dataset: Any, seen: set[int]) -> Iterator[Part]:
    if id(dataset) in seen:
        return
    seen.add(id(dataset))
    for name, value, holder in attributes_of(dataset):
        yield from _attribute_parts(name, value, holder, seen)


def _attribute_parts(name: str, value: Any, holder: Any, seen: set[int]) -> Iterator[Part]:
    if is_dataset(value):
        yield from _dataset_parts(value, seen)
    elif isinstance(value, list | tuple) and value and all(map(is_dataset, value)):
        for part in value:
            yield from _dataset_parts(part, seen)
    elif callable(value) and not isinstance(value, type):
        yield from _callable_parts(name, value, holder, name, seen)


def _callable_parts(name: str, value: Any, holder: Any, key: Any, seen: set[int]) -> Iterator[Part]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if type(value).__name__ == "StandardTransform":
        for own, part, own_holder in attributes_of(value):
            yield from _attribute_parts(own, part, own_holder, seen)
        return
    steps = getattr(value, "transforms", None)
    is_composed = type(value).__name__ == "Compose" and isinstance(steps, list | tuple)
    for place, step in enumerate(steps if is_composed and steps else ()):
        yield from _callable_parts("transform", step, steps, place, seen)
    stage, part = ("transform", "") if is_composed else stage_of_callable(name, value)
    yield Part(stage, part, value, holder, key)


def outermost(parts: list[Part]) -> list[Part]:
    """Parts that are not a step of another part."""
    steps = {id(step) for part in parts for step in getattr(part.value, "transforms", None) or () if not part.name}
    return [part for part in parts if id(part.value) not in steps]


Around = Callable[..., Any]
"""Called with the original, bound to its object, and the arguments."""


def replace_part(part: Part, around: Around) -> None:
    """Call `around` in place of a part. Raises `CannotFreeError` if the part cannot be replaced."""
    kind = type(part.value)
    has_code = isinstance(getattr_static(kind, "__call__", None), FunctionType)
    if has_code and not kind.__module__.startswith(_WITHOUT_CLASS):
        replace_method(part.value, "__call__", around)
    elif isinstance(part.holder, MutableMapping | MutableSequence):
        part.holder[part.key] = _function(part.value, around)
    else:
        raise CannotFreeError(f"{part.name or kind.__name__} is stored where it cannot be replaced")


def _function(value: Any, around: Around) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        return around(value, *args, **kwargs)

    named = getattr(value, "func", value)  # the function of a partial
    return update_wrapper(run, named, ("__module__", "__name__", "__qualname__", "__doc__"))


def replace_method(found: Any, name: str, around: Around) -> None:
    """Replace a method of one object. Python looks up special methods on the class; its other objects keep theirs.

    Raises `CannotFreeError` for a class that accepts no method. Only for processes that loaderbench owns: the
    replacement is permanent.
    """
    kind = type(found)
    original = getattr(kind, name)

    @wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self is not found:
            return original(self, *args, **kwargs)
        return around(partial(original, self), *args, **kwargs)

    try:
        setattr(kind, name, run)
    except TypeError:
        raise CannotFreeError(f"{kind.__name__} has no Python code that can be replaced") from None
