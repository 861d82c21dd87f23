"""Which configuration a run is judged by, and what is to be told of its rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loaderbench.analysis.verdict import Subject
from loaderbench.records import Best, Config, Configuration, varying

AT_THE_CAP = 0.97
"""From this share of the demand on, the emulated accelerator and not the loader may set the rate."""


def find_subject(
    best: Best | None, configurations: Sequence[Configuration], axes: Mapping[str, Sequence[Any]]
) -> Subject | None:
    """The configuration the verdict is about: the best, or the one that looked fastest where none is named."""
    if best is not None and best.data_wait_share is not None:
        return Subject(varying(best.config, axes), best.samples_per_s, best.data_wait_share, is_best=True)
    found = _fastest_looking(configurations)
    if found is None or found.samples_per_s is None or found.data_wait_share is None:
        return None
    return Subject(varying(found.config, axes), found.samples_per_s, found.data_wait_share, is_best=False)


def subject_config(best: Best | None, configurations: Sequence[Configuration]) -> Config | None:
    """The whole configuration of the subject, with the axes of one value; `None` where nothing was measured."""
    if best is not None and best.data_wait_share is not None:
        return best.config
    found = _fastest_looking(configurations)
    return None if found is None else found.config


def _fastest_looking(configurations: Sequence[Configuration]) -> Configuration | None:
    measured = [found for found in configurations if found.rank and found.samples_per_s and found.data_wait_share]
    return min(measured, key=lambda found: found.rank or 0, default=None)


def with_cap_noted(
    notes: Sequence[str], configurations: Sequence[Configuration], consumer: str, demand: float
) -> tuple[str, ...]:
    """Add, once, that the fastest rate is what an emulated accelerator asks for, so that it tells no more."""
    rates = [found.samples_per_s.est for found in configurations if found.samples_per_s]
    note = (
        f"samples/s is capped by consumer.demand = {demand:,.10g}: the loader may be able to do more; "
        "raise it, or use consumer.kind: none, to see how much"
    )
    capped = consumer == "emulated" and max(rates, default=0.0) >= AT_THE_CAP * demand
    return (*notes, note) if capped and note not in notes else tuple(notes)
