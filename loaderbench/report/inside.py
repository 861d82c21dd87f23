"""One trial from within: that of a profile, or for a sweep one of the configuration that the verdict is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loaderbench.records import Config, RunRecord, Trial
from loaderbench.report import axes, numbers, words
from loaderbench.report.inside_sample import sample
from loaderbench.report.inside_step import step
from loaderbench.report.inside_waits import waits
from loaderbench.report.inside_workers import workers
from loaderbench.report.parts import Text
from loaderbench.report.parts_inside import Breakdown, InsidePart
from loaderbench.report.slow_samples import slow


def of_trial(trial: Trial, subject: Text | None = None) -> InsidePart:
    """Everything that is known of it, and why the rest is not; what nobody looked at is left out."""
    inner, *others = sample(trial), workers(trial), slow(trial)
    untold = [part for part in others if part.missing and inner.missing and part.missing.text == inner.missing.text]
    states, times = (None if part in untold else _told(part) for part in others)
    return InsidePart(
        subject=subject,
        step=_told(step(trial)),
        sample=_told(replace(inner, notes=(*inner.notes, *_same_reason(untold)))),
        workers=states,
        slow=times,
        waits=_told(waits(trial)),
    )


def _told(part: Breakdown) -> Breakdown | None:
    return None if part.missing and part.missing.text == numbers.NOT_MEASURED else part


def _same_reason(parts: Sequence[Breakdown]) -> list[Text]:
    """One reason is told once, and what else it holds for beside it."""
    titles = " and ".join(f"\u201c{part.title}\u201d" for part in parts)
    return [Text(f"{titles}: not measured for the same reason.")] if parts else []


def of_sweep(run: RunRecord) -> InsidePart | None:
    """The first completed trial of the verdict's configuration that was traced; `None` where none was."""
    config = _subject(run)
    own = [t for t in run.trials if t.status == "completed" and config is not None and axes.same(t.config, config)]
    traced = next((trial for trial in own if trial.stages), None)
    if traced is None:
        return None
    which = "the best configuration" if run.best else "the configuration that looked fastest"
    shown = words.configuration(traced.config).text
    return of_trial(traced, words.sentence(f"Told of {traced.id}, a trial of {which} ({shown})."))


def _subject(run: RunRecord) -> Config | None:
    if run.best is not None:
        return run.best.config
    ranked = [c for c in run.configurations if c.rank and c.samples_per_s]
    return min(ranked, key=lambda c: c.rank or 0).config if ranked else None
