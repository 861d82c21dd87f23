"""The rate at which an emulated GPU takes samples: from the suite, a named GPU, a calibration, or the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from loaderbench.consumers.training_rates import DEFAULT_MODEL, PRECISIONS, find_rate
from loaderbench.errors import MissingError, printable
from loaderbench.records import AssumedDemand, Calibration, Evidence

ALL_OF_A_STEP = 0.9  # the remainder is noise between two clocks
DEFAULT_DEMAND = 1000.0
"""Samples/s, not of any particular GPU. Every place that shows this rate says that it is the default."""

_SHOWN_FIELDS = ("run", "device", "model", "precision")
"""Fields of a calibration that a terminal shows."""


def demand_from(
    demand: float | None = None,
    accelerator: str | None = None,
    model: str = DEFAULT_MODEL,
    precision: str | None = None,
) -> AssumedDemand:
    """The demand that a suite's options request. Raises `NoRateError` for a GPU, model or precision without a rate."""
    if accelerator is not None:
        rate = find_rate(accelerator, model, precision)
        return AssumedDemand(
            samples_per_s=rate.samples_per_s,
            origin="accelerator",
            accelerator=rate.gpu,
            model=rate.model,
            precision=PRECISIONS[rate.precision],
            source=rate.source.title,
            address=rate.source.address,
        )
    if demand is not None:
        return AssumedDemand(samples_per_s=demand, origin="suite")
    return AssumedDemand(samples_per_s=DEFAULT_DEMAND, origin="default")


def demand_of_calibration(found: Calibration) -> AssumedDemand:
    """The rate of a measured GPU, at its largest batch."""
    return AssumedDemand(
        samples_per_s=found.samples_per_s,
        origin="calibration",
        accelerator=found.device,
        model=found.model,
        precision=found.precision,
        source=found.run,
        fixed_s=found.fixed_s,
        s_per_sample=found.s_per_sample,
    )


def computes_on_cpus(consumer: Mapping[str, Any]) -> bool:
    """Whether an emulated step keeps CPUs busy for all of its time, as in a script that trains on CPUs."""
    demand, host_s = consumer.get("demand"), consumer.get("host_cpu_s_per_sample")
    if not isinstance(demand, int | float) or not isinstance(host_s, int | float):
        return False
    return demand * host_s >= ALL_OF_A_STEP


def describe_demand(demand: AssumedDemand, ranks: int = 1) -> Evidence:
    """Describe the target in one line: the rate of all ranks, its origin, and for the default how to change it."""
    each = f"{demand.samples_per_s:,.10g} in each of {ranks} ranks; " if ranks > 1 else ""
    return describe_target(ranks * demand.samples_per_s, f" ({each}{_origin(demand)})")


def describe_target(samples_per_s: float, origin: str = "") -> Evidence:
    """Describe the target, with its origin if given."""
    return Evidence("target", "", f"Target {samples_per_s:,.10g} samples/s{origin}")


def _origin(demand: AssumedDemand) -> str:
    if demand.origin == "accelerator":
        return f"{demand.accelerator}, {demand.model}, {demand.precision}; {demand.source}"
    if demand.origin == "calibration":
        return ", ".join(filter(None, (demand.accelerator, demand.model, f"measured by run {demand.source}")))
    if demand.origin == "suite":
        return "consumer.demand"
    if demand.origin == "script":
        return "the rate of the script's step"
    return "default; set consumer.demand or consumer.accelerator"


def read_calibration(path: Path) -> Calibration:
    """Read a calibration. Raises `MissingError`, with a one-line message, for a missing or invalid file."""
    where = f"consumer.calibration: {path}"
    try:
        found = TypeAdapter(Calibration).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise MissingError(f"{where}: invalid calibration: {place}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise MissingError(f"{where}: {said}; write one with `loaderbench export --to calibration`") from None
    if not _is_sound(found):
        raise MissingError(f"{where}: invalid calibration: step times must be positive; export it again")
    names: dict[str, Any] = {name: printable(said) for name in _SHOWN_FIELDS if (said := getattr(found, name))}
    return replace(found, **names)


def _is_sound(found: Calibration) -> bool:
    """Whether every batch takes a finite time: JSON written by Python can contain `NaN` and `Infinity`."""
    if min((step.batch_size for step in found.steps), default=0) < 1 or min(found.fixed_s, found.s_per_sample) < 0:
        return False
    if found.fixed_s + found.s_per_sample == 0:
        return False
    return all(map(isfinite, (found.fixed_s, found.s_per_sample, found.samples_per_s)))
