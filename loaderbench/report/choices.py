"""The configurations that can be chosen on the page, each with what was measured of it and how it looks from within."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from loaderbench.records import Configuration, RunRecord, Trial
from loaderbench.report import axes, inside, numbers, words
from loaderbench.report.parts import Fact, Link, Text
from loaderbench.report.parts_inside import Choice, InsidePart
from loaderbench.report.readings import RANKING_METRICS, with_data
from loaderbench.report.representative import by_interest, representative, trials_of

MOST_CHOICES = 150  # some kB of the page each; the table of trials and run.json hold the others


def choices(run: RunRecord, anchors: Mapping[str, str]) -> tuple[Choice, ...]:
    """The configurations of which a trial was run, the most interesting first."""
    by_id = {trial.id: trial for trial in run.sweep}
    places = {id(configuration): number for number, configuration in enumerate(run.configurations)}
    with_trials = [(found, trials_of(found, by_id)) for found in by_interest(run)]
    told = [(found, own) for found, own in with_trials if own][:MOST_CHOICES]
    return tuple(_choice(run, found, own, places[id(found)], anchors) for found, own in told)


def first_shown(run: RunRecord, found: Sequence[Choice]) -> Choice | None:
    """The choice that the verdict is about: the best, or where none is named the one that looked fastest."""
    if run.best is not None:
        about = [c for c in found if axes.same(run.configurations[c.number].config, run.best.config)]
    else:
        ranked = [c for c in found if run.configurations[c.number].rank and run.configurations[c.number].samples_per_s]
        about = sorted(ranked, key=lambda c: run.configurations[c.number].rank or 0)
    return next(iter(about or found), None)


def numbered(found: Sequence[Choice]) -> frozenset[int]:
    """The numbers of the configurations that can be chosen; none where there is but one."""
    return frozenset(choice.number for choice in found) if len(found) > 1 else frozenset()


def _choice(
    run: RunRecord, found: Configuration, trials: Sequence[Trial], number: int, anchors: Mapping[str, str]
) -> Choice:
    role, label = _role(run, found), words.configuration(found.config)
    metrics = with_data(RANKING_METRICS, (found,))
    within = _inside(trials, role, label)
    return Choice(
        number=number,
        label=label,
        role=role,
        facts=tuple(Fact(metric.label, metric.read(found, run.environment)) for metric in metrics),
        trials=tuple(Link(words.name(trial.id), anchors[trial.id]) for trial in trials if trial.id in anchors),
        inside=within,
        missing=None if within else _missing(trials),
    )


def _role(run: RunRecord, found: Configuration) -> str:
    """What the configuration is to the run."""
    best = run.best is not None and axes.same(found.config, run.best.config)
    baseline = run.baseline is not None and axes.same(found.config, run.baseline.config)
    if best:
        return "the best configuration and the baseline" if baseline else "the best configuration"
    if baseline:
        return "the baseline"
    if run.best is not None and found.tied_with_best:
        return "tied with the best"
    return "the configuration that looked fastest" if run.best is None and found.rank == 1 else ""


def _inside(trials: Sequence[Trial], role: str, label: Text) -> InsidePart | None:
    """Of the trial in the middle of those that were traced."""
    traced = representative(trial for trial in trials if trial.status == "completed" and trial.stages)
    if traced is None:
        return None
    whose = role if role.startswith("the") else "this configuration"
    return inside.of_trial(traced, words.sentence(f"Told of {traced.id}, a trial of {whose} ({label.text})."))


def _missing(trials: Sequence[Trial]) -> Text:
    """Why nothing is known of what happens inside."""
    gone = in_words(trials)
    return words.sentence(
        f"Nothing is known of its inside: {gone}." if gone else "The stages of its samples were not timed."
    )


def in_words(trials: Sequence[Trial]) -> str:
    """What failed, and how often: `worker killed in 3 of 3 trials`; nothing where nothing did."""
    gone = Counter(trial.failure.kind if trial.failure else trial.status for trial in trials if trial.failure)
    of = numbers.count(len(trials), "trial")
    return ", ".join(f"{kind.replace('_', ' ')} in {many} of {of}" for kind, many in gone.items())
