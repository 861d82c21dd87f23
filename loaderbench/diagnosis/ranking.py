"""All configurations of a run in the order of their rates, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loaderbench.diagnosis.subject import find_subject
from loaderbench.ranks import RANKS
from loaderbench.records import Best, Config, Configuration, Measured
from loaderbench.statistics.choice import choose_best
from loaderbench.statistics.configurations import summarise

ONE_CONFIGURATION = "a profile measures one config"


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All configurations of a run, and the best of them, or why there is none."""

    configurations: tuple[Configuration, ...]
    best: Best | None
    why_no_best: str
    from_outside: bool = False

    @property
    def subject(self) -> Best | Configuration | None:
        """What the verdict is about; `None` where nothing was measured."""
        return find_subject(self.best, self.configurations, from_outside=self.from_outside)


def rank(measured: Measured) -> Ranking:
    """Summarise and choose."""
    finals = measured.finals
    configurations = _with_why(
        summarise(measured.plan.configs, measured.sweep, measured.plan.baseline, finals), measured
    )
    if measured.kind == "profile":
        from_outside = any(trial.is_from_outside for trial in measured.sweep)
        return Ranking(
            configurations=configurations, best=None, why_no_best=ONE_CONFIGURATION, from_outside=from_outside
        )
    comparable = _of_the_job(configurations, measured.plan.baseline)
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
        best = replace(best, why_this_one=f"{best.why_this_one} (of configs with {RANKS}={best.config[RANKS]})")
    return Ranking(configurations=configurations, best=best, why_no_best=why)


def _with_why(configurations: Sequence[Configuration], measured: Measured) -> tuple[Configuration, ...]:
    """The same, with the reason for what an adaptive sweep did not look at."""
    why = {tuple(found.config.items()): found.why for found in measured.dropped if not found.rounds}
    return tuple(
        replace(found, not_measured=dict.fromkeys(found.not_measured, said))
        if (said := why.get(tuple(found.config.items())))
        else found
        for found in configurations
    )


def _of_the_job(configurations: Sequence[Configuration], baseline: Config) -> tuple[Configuration, ...]:
    """Those with as many ranks as the baseline: how many a job has is not for its loader to choose."""
    return tuple(found for found in configurations if found.config.get(RANKS) == baseline.get(RANKS))
