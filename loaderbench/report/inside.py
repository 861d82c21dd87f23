"""One trial from within: that of a profile, or for a sweep the one that stands for a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loaderbench.records import Trial
from loaderbench.report import numbers
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
