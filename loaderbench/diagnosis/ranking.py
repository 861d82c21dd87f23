"""Ranks all configurations of a run by rate, and determines the best one and the subject of the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loaderbench.datasets import DatasetKind, saved_dataset
from loaderbench.diagnosis.facts import Facts
from loaderbench.ranks import RANKS
from loaderbench.records import Best, Config, Configuration, Interval, Measured, config_label, varying
from loaderbench.statistics.choice import choose_best
from loaderbench.statistics.configurations import is_alternative, summarize
from loaderbench.statistics.target_rate import AT_THE_CAP

ONE_CONFIGURATION = "a profile measures one config"


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All configurations of a run, and the best one, or why there is none."""

    configurations: tuple[Configuration, ...]
    best: Best | None
    why_no_best: str
    from_outside: bool = False

    @property
    def subject(self) -> Best | Configuration | None:
        """The configuration that the verdict is about; `None` if nothing was measured."""
        return find_subject(self.best, self.configurations, from_outside=self.from_outside)


def rank(measured: Measured) -> Ranking:
    """Summarize all configurations and choose the best."""
    finals = measured.finals
    plan, alike = measured.plan, axes_of_work(saved_dataset(measured.section("dataset")))
    configurations = _with_reasons(summarize(plan.configs, measured.sweep, plan.baseline, finals, alike), measured)
    if measured.kind == "profile":
        from_outside = any(trial.is_from_outside for trial in measured.sweep)
        return Ranking(
            configurations=configurations, best=None, why_no_best=ONE_CONFIGURATION, from_outside=from_outside
        )
    comparable = [found for found in configurations if is_alternative(found.config, plan.baseline, alike)]
    best, why = choose_best(
        comparable,
        measured.plan.baseline,
        measured.sweep,
        measured.plan.rounds,
        measured.loader,
        finals=finals,
        dropped=measured.dropped,
    )
    if best is not None and len(comparable) < len(configurations):
        varied = {axis: best.config[axis] for axis in alike if len(plan.axes.get(axis, ())) > 1}
        best = replace(best, why_this_one=f"{best.why_this_one} (of configs with {config_label(varied)})")
    return Ranking(configurations=configurations, best=best, why_no_best=why)


def _with_reasons(configurations: Sequence[Configuration], measured: Measured) -> tuple[Configuration, ...]:
    """The configurations, with the reason for those that an adaptive sweep skipped."""
    why = {tuple(found.config.items()): found.why for found in measured.dropped if not found.rounds}
    return tuple(
        replace(found, not_measured=dict.fromkeys(found.not_measured, reason))
        if (reason := why.get(tuple(found.config.items())))
        else found
        for found in configurations
    )


@dataclass(frozen=True)
class Subject:
    """The configuration of a verdict, by the axes that vary. `is_best`: it won; else it is the fastest estimate.

    `facts` are those of its trials. `samples_per_s` is `None` for an attached process.
    """

    config: Config
    samples_per_s: Interval | None
    data_wait_share: Interval
    is_best: bool
    facts: Facts | None = None


def find_subject(
    best: Best | None, configurations: Sequence[Configuration], *, from_outside: bool = False
) -> Best | Configuration | None:
    """The best configuration, or else the fastest estimate; `None` if nothing was measured.

    `from_outside`: the data comes from an attached process, whose rate is unknown.
    """
    if from_outside:
        return next((found for found in configurations if found.data_wait_share), None)
    if best is not None and best.data_wait_share is not None:
        return best
    measured = [found for found in configurations if found.rank and found.samples_per_s and found.data_wait_share]
    return min(measured, key=lambda found: found.rank or 0, default=None)


def subject_of(
    found: Best | Configuration, axes: Mapping[str, Sequence[Any]], facts: Facts | None, *, is_best: bool
) -> Subject | None:
    """The subject as a verdict names it, by the axes that vary; `None` if its rate or its data wait is unknown."""
    known = found.samples_per_s is not None or (facts is not None and facts.from_outside)
    if not known or found.data_wait_share is None:
        return None
    return Subject(varying(found.config, axes), found.samples_per_s, found.data_wait_share, is_best, facts)


def expected_wait(rate: Interval, demand: float) -> Interval:
    """The data wait of a consumer with this demand and a loader with this rate, both in samples/s."""

    def short_of_it(found: float | None) -> float | None:
        return None if found is None else max(0.0, 1 - found / demand)

    return Interval(max(0.0, 1 - rate.est / demand), short_of_it(rate.hi), short_of_it(rate.lo))


def rate_cap(notes: Sequence[str], configurations: Sequence[Configuration], demand: float | None) -> tuple[str, ...]:
    """A note that an emulated GPU's demand caps the fastest rate; empty if `notes` already contain it."""
    if demand is None:
        return ()
    rates = [found.samples_per_s.est for found in configurations if found.samples_per_s]
    remark = (
        f"Samples/s are capped by the target of {demand:,.10g}; the loader may be faster. "
        "Set a higher consumer.demand, or consumer.kind: none"
    )
    capped = max(rates, default=0.0) >= AT_THE_CAP * demand
    return (remark,) if capped and remark not in notes else ()


def axes_of_work(dataset: DatasetKind | None) -> tuple[str, ...]:
    """Axes that say how much work is done, which is not the loader's choice: ranks, and samples of the dataset."""
    return (RANKS, *(() if dataset is None else dataset.amount_axes))
