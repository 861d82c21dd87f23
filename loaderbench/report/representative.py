"""Which trial of a configuration is shown where one has to stand for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loaderbench.records import Config, Configuration, RunRecord, Trial
from loaderbench.report import axes


def representative(trials: Iterable[Trial]) -> Trial | None:
    """The trial in the middle by samples/s, of completed ones where there are any; `None` of none."""
    own = list(trials)
    done = [trial for trial in own if trial.status == "completed"] or own
    done.sort(key=lambda trial: trial.samples_per_s or 0)
    return done[(len(done) - 1) // 2] if done else None


def by_interest(run: RunRecord) -> list[Configuration]:
    """The best configuration, the baseline, then all others by rank; what has no rank stands last, as planned."""
    first = [found for part in (run.best, run.baseline) if part and (found := _find(run.configurations, part.config))]
    ranked = sorted(run.configurations, key=lambda c: (c.rank is None, c.rank or 0))
    unique = {id(configuration): configuration for configuration in [*first, *ranked]}
    return list(unique.values())


def trials_of(configuration: Configuration, by_id: Mapping[str, Trial]) -> list[Trial]:
    """Its trials, as far as they were run."""
    return [by_id[name] for name in configuration.trials if name in by_id]


def _find(configurations: Sequence[Configuration], config: Config) -> Configuration | None:
    return next((c for c in configurations if axes.same(c.config, config)), None)
