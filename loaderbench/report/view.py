"""Parts of a run that several sections need: anchors of trials, selectable configurations, median trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from loaderbench.consumers import consumer_kind
from loaderbench.records import Config, Configuration, Readings, RunRecord, Trial
from loaderbench.records.words import count
from loaderbench.report import axes, words

MOST_ROWS = 400  # rows in the table of trials, to limit the report's size; the downloads have all trials
MOST_CHOICES = 150  # some kB of HTML each; the table of trials and run.json have the others
IN_NEXT = "time in next()"
"""The name of a wait for a batch that nothing consumes."""
_NOTHING = Trial(id="", role="profile", config={}, round=1, status="failed")


@dataclass(frozen=True)
class View:
    """A run, the readings of its monitors and its folder, if known, for the sections."""

    run: RunRecord
    readings: Readings
    folder: Path | None = None

    @cached_property
    def profile(self) -> Trial | None:
        """The only trial of a profile, or an empty one if none was started; `None` for a sweep."""
        if self.run.kind != "profile":
            return None
        return self.run.sweep[0] if self.run.sweep else _NOTHING

    @property
    def is_attached(self) -> bool:
        """Whether the run observed a process from outside."""
        return self.profile is not None and self.profile.is_from_outside

    @property
    def has_data_wait(self) -> bool:
        """Whether a consumer took the batches. Without one, the time in `next()` is not a data wait."""
        return has_data_wait(self.run.consumer)

    @cached_property
    def anchors(self) -> Mapping[str, str]:
        """The anchor of each trial with a row. Anchors are numbers, because a trial's id can contain any character."""
        if self.profile:
            return {}
        rows = self.run.sweep_or_ab_trials[:MOST_ROWS]
        return {trial.id: f"trial-{i}" for i, trial in enumerate(rows, start=1)}

    @cached_property
    def trials(self) -> Mapping[str, Trial]:
        """The trials of the sweep, by id."""
        return {trial.id: trial for trial in self.run.sweep}

    @cached_property
    def reported(self) -> Sequence[int]:
        """The numbers of the configurations with a trial, the most interesting first."""
        if self.profile:
            return []
        places = {id(configuration): number for number, configuration in enumerate(self.run.configurations)}
        reported = [places[id(c)] for c in by_interest(self.run) if trials_of(c, self.trials)]
        return reported[:MOST_CHOICES]

    @property
    def choices(self) -> Sequence[int]:
        """The numbers of the configurations that a reader can select; empty if there is only one."""
        return self.reported if len(self.reported) > 1 else []

    @cached_property
    def shown(self) -> int | None:
        """The number of the verdict's configuration: the best, or the fastest estimate if there is no best."""
        configurations, best = self.run.configurations, self.run.best
        if best is not None:
            about = [i for i in self.reported if axes.same(configurations[i].config, best.config)]
        else:
            ranked = [i for i in self.reported if configurations[i].rank and configurations[i].samples_per_s]
            about = sorted(ranked, key=lambda i: configurations[i].rank or 0)
        return next(iter(about or self.reported), None)

    def lacks_waits(self, trial: Trial) -> bool:
        """Whether only the longest wait of each group of batches was kept, which does not show a typical wait."""
        series = self.readings.of(trial.id).get("data_wait_s")
        return series is not None and len(series[1]) < (trial.of_one_process.batches or 0)

    def is_best(self, configuration: Configuration) -> bool:
        """Whether this is the run's best configuration."""
        return self.run.best is not None and axes.same(configuration.config, self.run.best.config)

    def is_baseline(self, configuration: Configuration) -> bool:
        """Whether this is the baseline, which can also be the best or tied with it."""
        return axes.same(configuration.config, self.run.baseline.config)

    def mark(self, configuration: Configuration) -> str:
        """The configuration's mark in the first column of a table."""
        if self.is_best(configuration):
            return "best"
        if self.run.best is not None and configuration.tied_with_best:
            return "tied"
        return "baseline" if self.is_baseline(configuration) else ""


def has_data_wait(consumer: str | None) -> bool:
    """Whether a consumer of this kind takes batches; true if the kind was not saved."""
    return consumer_kind(consumer or "").consumes


def representative(trials: Iterable[Trial]) -> Trial | None:
    """The median trial by samples/s, among completed ones if there are any; `None` without trials."""
    own = list(trials)
    done = [trial for trial in own if trial.status == "completed"] or own
    done.sort(key=lambda trial: trial.samples_per_s or 0)
    return done[(len(done) - 1) // 2] if done else None


def find(run: RunRecord, config: Config) -> Configuration | None:
    """The configuration of the sweep with these values."""
    return next((c for c in run.configurations if axes.same(c.config, config)), None)


def by_interest(run: RunRecord) -> list[Configuration]:
    """The best configuration, the baseline, then all others by rank.

    Those without a rank come last, in planned order.
    """
    first = [found for part in (run.best, run.baseline) if part and (found := find(run, part.config))]
    ranked = sorted(run.configurations, key=lambda c: (c.rank is None, c.rank or 0))
    unique = {id(configuration): configuration for configuration in [*first, *ranked]}
    return list(unique.values())


def trials_of(configuration: Configuration, by_id: Mapping[str, Trial]) -> list[Trial]:
    """The trials of a configuration that were run."""
    return [by_id[name] for name in configuration.trials if name in by_id]


def trials_with_stacks(view: View) -> list[Trial]:
    """The trials of the verdict's configuration that have stack samples."""
    if view.profile:
        trials = [view.profile]
    else:
        trials = [] if view.shown is None else trials_of(view.run.configurations[view.shown], view.trials)
    return [trial for trial in trials if trial.code_looks and trial.code_looks.stacks]


def failures_in_words(trials: Sequence[Trial]) -> list[str]:
    """How trials without a measurement ended, and how often: `worker killed in 3 of 3 trials`."""
    kinds = Counter(t.failure.kind if t.failure else t.status for t in trials if t.status != "completed")
    of = count(len(trials), "trial")
    return [f"{words.plain(kind.replace('_', ' '), words.NAME_LIMIT)} in {n} of {of}" for kind, n in kinds.items()]


def why(trial: Trial, *fields: str) -> str | None:
    """Why fields of the trial are empty. A failed trial has one reason for all fields."""
    failure = f"the trial failed ({trial.failure.kind.replace('_', ' ')})" if trial.failure else None
    return next((trial.not_measured[field] for field in fields if field in trial.not_measured), failure)
