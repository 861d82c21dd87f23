"""Where a step goes: the wait for data, what was marked of the step, and the rest of it."""

from __future__ import annotations

import math

from loaderbench.records import Trial
from loaderbench.report import numbers, stacks, words
from loaderbench.report.parts import Column, Row, Table, Text
from loaderbench.report.parts_inside import Breakdown
from loaderbench.report.trials import why

TITLE = "A step of the loop"
_WAIT = Text("data wait", "waiting inside next()")
_REST = Text("compute and other", "the rest of the step, outside every marked stage")
_OVERLAP = Text("The marked stages take longer than the step: some of them ran side by side, or while it waited.")
_COLUMNS = (Column("Part"), Column("ms", numeric=True), Column("Share", numeric=True))


def step(trial: Trial) -> Breakdown:
    """The mean step of the steady state; its data wait share is that of the verdict."""
    whole = _step_and_wait_s(trial)
    if whole is None:
        return Breakdown(id="step", title=TITLE, missing=numbers.missing(why(trial, "step", "data_wait", "batches")))
    step_s, wait_s = whole
    marked = _marked_s(trial)
    rest_s = step_s - wait_s - math.fsum(marked.values())
    pieces = [(_WAIT, wait_s), *((words.outside(name, 40), time_s) for name, time_s in marked.items())]
    tones = stacks.tones([math.inf, *marked.values()])
    if rest_s > 0:
        pieces, tones = [*pieces, (_REST, rest_s)], [*tones, stacks.REST]
    names, lengths = [name for name, _ in pieces], [time_s for _, time_s in pieces]
    return Breakdown(
        id="step",
        title=TITLE,
        segments=stacks.segments([name.text for name in names], stacks.shares(lengths), tones),
        tables=(Table(_caption(trial), _COLUMNS, _rows(names, lengths, tones)),),
        notes=tuple(_notes(trial, overlap=rest_s < -1e-3 * step_s)),
    )


def _step_and_wait_s(trial: Trial) -> tuple[float, float] | None:
    """Seconds from one call of `next()` to the next, and those of them inside it; `None` where no time passed."""
    found = None
    if trial.steady_s and trial.batches and trial.data_wait_share is not None:
        step_s = trial.steady_s / trial.batches
        found = step_s, step_s * trial.data_wait_share
    elif trial.step and trial.data_wait:
        found = trial.step.mean_s + trial.data_wait.mean_s, trial.data_wait.mean_s
    return found if found and found[0] > 0 else None


def _marked_s(trial: Trial) -> dict[str, float]:
    costs = trial.step_stages or {}
    return {name: cost.wall_s for name, cost in costs.items() if cost.wall_s is not None}


def _rows(names: list[Text], lengths: list[float], tones: list[str]) -> tuple[Row, ...]:
    times = stacks.milliseconds([*lengths, math.fsum(lengths)])
    shares = stacks.percentages(stacks.shares(lengths))
    rows = [
        Row((name, time, share), tone=tone)
        for name, time, share, tone in zip(names, times, shares, tones, strict=False)
    ]
    return (*rows, Row((Text("a step"), times[-1], stacks.percentage(1.0)), mark="total"))


def _caption(trial: Trial) -> str:
    over = f", over {numbers.count(trial.batches, 'batch', 'batches')}" if trial.batches else ""
    rate = f": {numbers.quantity(trial.samples_per_s).text} samples/s" if trial.samples_per_s else ""
    return f"A step on average{over}{rate}"


def _notes(trial: Trial, *, overlap: bool) -> list[Text]:
    reason = words.reason_of("step_stages", trial.not_measured)
    unknown = [name for name, cost in (trial.step_stages or {}).items() if cost.wall_s is None]
    said = [words.sentence(f"Parts of the step are not told apart: {reason}.")] if reason else []
    said += [words.sentence(f"{name} was marked but not measured: it is part of the rest.") for name in unknown]
    return [*said, _OVERLAP] if overlap else said
