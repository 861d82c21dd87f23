"""Step and sample time breakdown: data wait and the marked stages of a step; the stages of a sample and their parts."""

from __future__ import annotations

import math
from collections.abc import Iterable

from loaderbench.diagnosis.wording import loaded_by
from loaderbench.records import LoopLine, StageCost, Trial
from loaderbench.records.words import WITHOUT_GRADIENTS, count, stage_place, sum_if_all_known
from loaderbench.report import numbers, tables, words
from loaderbench.report.model import Breakdown, Column, Row, Table, Text, Value
from loaderbench.report.view import has_data_wait, why

STEP_TIME = "Step time"
_WAIT = Text("data wait", "blocked in next()")
_REST = Text("compute and other", "rest of the step, outside marked stages")
_OVERLAP = Text("The marked stages overlap each other or the data wait: together they take longer than the step.")
_PARTS = (Column("Part"), Column("ms", numeric=True), Column("Share", numeric=True))
_STAGES = (
    Column("Stage"),
    Column("Wall, ms", numeric=True, title="without nested stages"),
    Column("CPU, ms", numeric=True, title="loading thread only; other threads of a decoder are not counted"),
    Column("Share", numeric=True, title="of wall time per sample"),
)
_UNKNOWN = "no wall time recorded"
_UNKNOWN_CPU = "no CPU time recorded"


def step(trial: Trial) -> Breakdown:
    """The mean step of the steady state. Its share of data wait equals the one in the verdict.

    Without a consumer there is no step, and no reason is given.
    """
    if not has_data_wait(trial.consumer):
        return Breakdown(title=STEP_TIME, missing=numbers.missing())
    whole = _step_and_wait_s(trial)
    if whole is None:
        return Breakdown(title=STEP_TIME, missing=numbers.missing(why(trial, "step", "data_wait", "batches")))
    step_s, wait_s = whole
    marked = _marked_s(trial)
    rest_s = step_s - wait_s - math.fsum(marked.values())
    pieces = [(_WAIT, wait_s), *((_marked_name(name), time_s) for name, time_s in marked.items())]
    tones = tables.tones([math.inf, *marked.values()])
    if rest_s > 0:
        pieces, tones = [*pieces, (_REST, rest_s)], [*tones, tables.REST]
    names, lengths = [name for name, _ in pieces], [time_s for _, time_s in pieces]
    return Breakdown(
        title=STEP_TIME,
        segments=tables.segments([name.text for name in names], tables.shares(lengths), tones),
        tables=(Table(_step_caption(trial), _PARTS, _step_rows(names, lengths, tones)),),
        notes=tuple(_notes(trial, overlap=rest_s < -1e-3 * step_s)),
    )


def _step_and_wait_s(trial: Trial) -> tuple[float, float] | None:
    """Seconds from one call of `next()` to the next, and the part spent inside it; `None` if no time passed."""
    found, one = None, trial.of_one_process
    if one.steady_s and one.batches and one.data_wait_share is not None:
        step_s = one.steady_s / one.batches
        found = step_s, step_s * one.data_wait_share
    elif trial.step and trial.data_wait:
        found = trial.step.mean_s + trial.data_wait.mean_s, trial.data_wait.mean_s
    return found if found and found[0] > 0 else None


def _marked_name(stage: str) -> Text:
    """The user's name for a stage of the step. `transfer` has a displayed name, because the diagnosis knows it."""
    return words.stage(stage) if stage == "transfer" else words.outside(stage, 40)


def _marked_s(trial: Trial) -> dict[str, float]:
    costs = trial.step_stages or {}
    return {name: cost.wall_s for name, cost in costs.items() if cost.wall_s is not None}


def _step_rows(names: list[Text], lengths: list[float], tones: list[str]) -> tuple[Row, ...]:
    times = tables.milliseconds([*lengths, math.fsum(lengths)])
    shares = tables.percentages(tables.shares(lengths))
    rows = [
        Row((name, time, share), tone=tone)
        for name, time, share, tone in zip(names, times, shares, tones, strict=False)
    ]
    return (*rows, Row((Text("Total"), times[-1], tables.percentage(1.0)), mark="total"))


def _step_caption(trial: Trial) -> str:
    one = trial.of_one_process
    over = f", {count(one.batches, 'batch', 'batches')}" if one.batches else ""
    rate = f" ({numbers.quantity(one.samples_per_s).text} samples/s)" if one.samples_per_s else ""
    return f"Mean time per step{_of_rank(trial)}{over}{rate}"


def _of_rank(trial: Trial) -> str:
    """The rank whose times these are, if the trial has several."""
    return f" of rank {trial.slowest_rank}" if trial.of_one_process is not trial else ""


def _notes(trial: Trial, *, overlap: bool) -> list[Text]:
    reason = words.reason_of("step_stages", trial.not_measured)
    unknown = [name for name, cost in (trial.step_stages or {}).items() if cost.wall_s is None]
    notes = [words.sentence(f"Stages of the step: {numbers.missing(reason).text}.")] if reason else []
    notes += [words.sentence(f"{name}: marked but not measured, part of \u201c{_REST.text}\u201d.") for name in unknown]
    evaluates = WITHOUT_GRADIENTS in (trial.step_stages or {})
    notes += [_in_words(trial.step_line, evaluates=evaluates)] if trial.step_line else []
    return [*notes, _OVERLAP] if overlap else notes


def _in_words(line: LoopLine, *, evaluates: bool) -> Text:
    """The line of the rest of the step, with its source text, which can be missing.

    `evaluates`: the step also calls a model without gradients, which the line can do.
    """
    share, looks = numbers.share(line.share).text, count(line.looks, "stack sample")
    rest = f"the rest of the step and {WITHOUT_GRADIENTS}" if evaluates else "the rest of the step"
    of_rest = f"{share} of {rest} is in {line.place} ({looks})"
    return words.sentence(f"{of_rest}: {line.text}" if line.text else f"{of_rest}.")


def sample(trial: Trial) -> Breakdown:
    """The mean sample of the steady state."""
    stages = trial.stages or {}
    names = [name for name in _ordered(stages) if stages[name].wall_s is not None]
    lengths = [stages[name].wall_s or 0.0 for name in names]
    if math.fsum(lengths) <= 0:
        return Breakdown(title=_sample_title(trial), missing=numbers.missing(why(trial, "stages")))
    tones = tables.tones(lengths)
    parts = tables.shares(lengths)
    rows = _sample_rows(trial, dict(zip(names, tones, strict=True)), parts)
    return Breakdown(
        title=_sample_title(trial),
        segments=tables.segments([words.stage(name).text for name in names], parts, tones),
        tables=(Table(_sample_caption(trial), _STAGES, rows),),
        notes=(words.sentence(f"{words.capitalised(trial.sampled)}."),) if trial.sampled else (),
    )


def _sample_title(trial: Trial) -> str:
    where = {"workers": "the workers", "main_process": "the main process", "unknown": "the loader"}
    return f"Sample time in {where[loaded_by(trial)]}"


def _sample_caption(trial: Trial) -> str:
    where = {"workers": "a worker", "main_process": "the main process", "unknown": "the loader"}
    one = trial.of_one_process
    over = f", {count(one.samples, 'sample')}" if one.samples else ""
    return f"Mean time per sample in {where[loaded_by(trial)]}{_of_rank(trial)}{over}"


def _sample_rows(trial: Trial, tones: dict[str, str], parts: list[float]) -> tuple[Row, ...]:
    """A row for each stage with its parts below, rows for stages without a wall time, and the total."""
    costs, named = trial.stages or {}, trial.stage_parts or {}
    timed = [costs[name] for name in tones]
    whole = StageCost(sum_if_all_known(one.cpu_s for one in timed), sum_if_all_known(one.wall_s for one in timed))
    lines: list[tuple[Text, StageCost, Value, str, int]] = []
    for name, share in zip(tones, tables.percentages(parts), strict=True):
        lines.append((words.stage(name), costs[name], share, tones[name], 0))
        below = {part: named[part] for part in _parts_of(name, named)}
        if [cost.wall_s for cost in below.values()] == [costs[name].wall_s]:  # the part is the complete stage
            below = {}
        lines += [(_part_name(part), cost, _share(cost, whole), "", 1) for part, cost in below.items()]
    lines += [(words.stage(name), costs[name], numbers.missing(_UNKNOWN), "", 0) for name in costs if name not in tones]
    walls = tables.milliseconds([*(cost.wall_s for _, cost, *_ in lines), whole.wall_s], _UNKNOWN)
    cpus = tables.milliseconds([*(cost.cpu_s for _, cost, *_ in lines), whole.cpu_s], _UNKNOWN_CPU)
    rows = [
        Row((label, wall, cpu, share), tone=tone, depth=depth)
        for (label, _, share, tone, depth), wall, cpu in zip(lines, walls, cpus, strict=False)
    ]
    return (*rows, Row((Text("Total"), walls[-1], cpus[-1], tables.percentage(1.0)), mark="total"))


def _share(cost: StageCost, whole: StageCost) -> Value:
    if cost.wall_s is None or not whole.wall_s:
        return numbers.missing(_UNKNOWN)
    return tables.percentage(cost.wall_s / whole.wall_s)


def _ordered(found: Iterable[str]) -> list[str]:
    """Stages in the order in which a sample passes them. The user's own stages come after `transform`."""
    return sorted(found, key=stage_place)


def _parts_of(stage: str, found: Iterable[str]) -> list[str]:
    """The named parts of a stage, such as `transform/RandomResizedCrop` of `transform`."""
    return [part for part in found if part.partition("/")[0] == stage]


def _part_name(part: str) -> Text:
    """The part's name without its stage, which the row above shows."""
    return words.outside(part.partition("/")[2] or part, 40)
