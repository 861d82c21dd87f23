"""What eats the batches. A kind of consumer is one file and its line in `CONSUMER_KINDS`."""

from __future__ import annotations

from pydantic import BaseModel

from loaderbench.consumers.emulated import Emulated
from loaderbench.consumers.kind import Clock, Consumer, ConsumerKind, HostWaitClock, WaitClock
from loaderbench.consumers.loop import Loop
from loaderbench.consumers.model import Model
from loaderbench.consumers.none import NO_CONSUMER, NoConsumer, Nothing
from loaderbench.consumers.target import TargetStep
from loaderbench.errors import MissingError

__all__ = [
    "AUTO",
    "CONSUMER_KINDS",
    "LOOP",
    "NOTHING",
    "NO_CONSUMER",
    "Clock",
    "Consumer",
    "ConsumerKind",
    "HostWaitClock",
    "NoConsumer",
    "WaitClock",
    "consumer_kind",
    "consumer_of",
    "resolve_consumer",
]

CONSUMER_KINDS: dict[str, type[ConsumerKind]] = {
    "none": Nothing,
    "emulated": Emulated,
    "model": Model,
    "target": TargetStep,
}

AUTO, NOTHING, LOOP = "auto", "none", "loop"


def consumer_kind(name: str) -> type[ConsumerKind]:
    """The kind that a run names; of one that is not known here, what holds of any."""
    if name == LOOP:
        return Loop
    return CONSUMER_KINDS.get(name, ConsumerKind)


def consumer_of(options: BaseModel, name: str) -> ConsumerKind:
    """The consumer of a resolved kind, with its own of the options in a suite's section."""
    kind = CONSUMER_KINDS[name]
    return kind.model_construct(**{option: getattr(options, option) for option in kind.model_fields})


def resolve_consumer(name: str, *, accelerator: bool) -> str:
    """The kind that `auto` selects here. Raises `MissingError` where that needs an accelerator and there is none."""
    if name == AUTO:
        where = "accelerator" if accelerator else "host"
        return next(found for found, kind in CONSUMER_KINDS.items() if kind.auto == where)
    if CONSUMER_KINDS[name].needs_accelerator and not accelerator:
        raise MissingError(f"consumer.kind: {name} needs a CUDA device, and there is none; `auto` emulates one instead")
    return name
