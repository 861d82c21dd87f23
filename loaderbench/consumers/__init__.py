"""Consumers of batches. Each kind of consumer is one module and one line in `CONSUMER_KINDS`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from loaderbench.consumers.demand import DEFAULT_DEMAND, computes_on_cpus, describe_demand, describe_target
from loaderbench.consumers.emulated import Emulated
from loaderbench.consumers.kind import (
    Clock,
    Consumer,
    ConsumerKind,
    HostWaitClock,
    Loop,
    OptionProblem,
    WaitClock,
    WithNote,
    WithPrecision,
)
from loaderbench.consumers.model import Model
from loaderbench.consumers.none import NO_CONSUMER, NoConsumer, Nothing
from loaderbench.consumers.step_options import CPU
from loaderbench.consumers.target import TargetStep
from loaderbench.errors import MissingError
from loaderbench.records import AssumedDemand, Measured

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
    "OptionProblem",
    "WaitClock",
    "WithNote",
    "WithPrecision",
    "chosen_kinds",
    "computes_on_cpus",
    "consumer_kind",
    "consumer_of",
    "demand_of",
    "demand_rate",
    "describe_demand",
    "describe_target",
    "ignored_options",
    "make_consumer",
    "needs_accelerator",
    "option_problems",
    "resolve_consumer",
    "who_takes",
]

CONSUMER_KINDS: dict[str, type[ConsumerKind]] = {
    "none": Nothing,
    "emulated": Emulated,
    "model": Model,
    "target": TargetStep,
}

STEP = "training step"
AUTO, NOTHING, LOOP = "auto", "none", "loop"


def consumer_kind(name: str) -> type[ConsumerKind]:
    """The consumer kind that a run names; for an unknown name, the base class with its defaults."""
    if name == LOOP:
        return Loop
    return CONSUMER_KINDS.get(name, ConsumerKind)


def consumer_of(options: BaseModel, name: str) -> ConsumerKind:
    """The consumer of a resolved kind, with the options of a suite's section that belong to it."""
    kind = CONSUMER_KINDS[name]
    return kind.model_construct(**{option: getattr(options, option) for option in kind.model_fields})


def make_consumer(
    options: BaseModel, name: str, config: Mapping[str, Any], folder: Path, clock: Clock, *, capped: bool = True
) -> Consumer:
    """Create the consumer of a resolved kind in a trial's process. A kind chosen by `auto` accepts any batches.

    `capped`: whether batches that cannot be trained on are limited to the target rate.
    """
    found = consumer_of(options, name)
    if getattr(options, "kind", AUTO) != AUTO or found.asked_for:
        return found.make(config, folder, clock)
    assumed = consumer_of(options, "emulated").assumed_demand(folder)
    rate = (assumed.samples_per_s if assumed else DEFAULT_DEMAND) if capped else math.inf
    return found.make_for_any_batch(config, folder, clock, rate)


def resolve_consumer(options: BaseModel, *, accelerator: bool, why_none: str | None = None) -> str:
    """The kind that a suite's section selects on a machine with or without a GPU.

    `auto` emulates a GPU named in the suite, and trains on the CPU with `device: cpu`. Raises `MissingError` if a GPU
    is needed and missing, with the reason `why_none` if known.
    """
    name: str = getattr(options, "kind", AUTO)
    if name == AUTO:
        return next(iter(_asked_for(options)), None) or _automatic("accelerator" if accelerator else "host")
    if consumer_of(options, name).needs_accelerator and not accelerator:
        why = f" ({why_none})" if why_none else ""
        do = "use a machine with a GPU, or kind: auto to emulate one"
        raise MissingError(f"consumer.kind: {name} needs a CUDA device and none can be used{why}; {do}")
    return name


def needs_accelerator(options: BaseModel) -> bool:
    """Whether a suite's section asks for a GPU; `auto` never does."""
    name: str = getattr(options, "kind", AUTO)
    return name != AUTO and consumer_of(options, name).needs_accelerator


def chosen_kinds(options: BaseModel) -> list[str]:
    """The kind of a suite's section; under `auto`, those that its other options request on any machine."""
    name: str = getattr(options, "kind", AUTO)
    return _asked_for(options) if name == AUTO else [name]


def _asked_for(options: BaseModel) -> list[str]:
    """The kinds that the options request, on any machine."""
    return [name for name in CONSUMER_KINDS if consumer_of(options, name).asked_for]


def _automatic(where: str) -> str:
    return next(name for name, kind in CONSUMER_KINDS.items() if kind.auto == where)


def option_problems(options: BaseModel) -> Iterator[OptionProblem]:
    """Yield problems of a suite's section by the rules of every kind; an option of another kind has no effect."""
    chosen: str = getattr(options, "kind", AUTO)
    asked_for = _asked_for(options)
    if chosen == AUTO and len(asked_for) > 1:
        yield OptionProblem(None, f"options of {' and of '.join(asked_for)} are set; set `kind` to one of them")
    for name, kind in CONSUMER_KINDS.items():
        if chosen not in (AUTO, name):
            for asked in (option for option in kind.asked_for_by if getattr(options, option) is not None):
                what = f"has no effect on `kind: {chosen}`; use `kind: {name}`, or drop it"
                yield OptionProblem(asked, what, at_key=True)
        yield from consumer_of(options, name).problems(chosen=chosen == name)
        if chosen in (AUTO, name):
            yield from consumer_of(options, name).unknown_names(chosen=chosen == name)


def ignored_options(options: BaseModel) -> Iterator[OptionProblem]:
    """Yield options that were set but belong to other kinds; none where the machine decides the kind."""
    chosen, *others = chosen_kinds(options) or [AUTO]
    if chosen == AUTO or others:
        return
    of_others = options.model_fields_set - {"kind"} - CONSUMER_KINDS[chosen].model_fields.keys()
    for option in sorted(of_others):
        if getattr(options, option) == type(options).model_fields[option].default:
            continue
        owners = [name for name, kind in CONSUMER_KINDS.items() if option in kind.model_fields]
        what = f"ignored: an option of `kind: {' or '.join(owners)}`, not of `kind: {chosen}`"
        yield OptionProblem(option, what, at_key=True)


def who_takes(run: Measured) -> str:
    """A noun for the consumer of a run's batches. A step that trains on the CPU is not called a GPU."""
    on_cpu = run.section("consumer").get("device") == CPU
    return STEP if run.consumer == "model" and on_cpu else consumer_kind(run.consumer).who


def demand_of(run: Measured) -> AssumedDemand | None:
    """The rate at which the emulated GPU of a run took samples; `None` if none was emulated.

    Runs of earlier versions stored only the number, in their suite. A number equal to the default counts as the
    default.
    """
    if run.assumed_demand is not None or not consumer_kind(run.consumer).capped:
        return run.assumed_demand
    number = run.section("consumer").get("demand")
    if not isinstance(number, int | float) or number <= 0:
        return None
    return AssumedDemand(samples_per_s=float(number), origin="default" if number == DEFAULT_DEMAND else "suite")


def demand_rate(run: Measured) -> float | None:
    """The demand of a run in samples/s, without its source."""
    found = demand_of(run)
    return found.samples_per_s if found else None
