"""Where the time of a sample goes inside the workers: its stages, and beneath each the parts that have a name."""

from __future__ import annotations

import math

from loaderbench.diagnosis.wording import in_main_process
from loaderbench.records import StageCost, Trial
from loaderbench.report import numbers, stacks, stages, words
from loaderbench.report.parts import Column, Row, Table, Text, Value
from loaderbench.report.parts_inside import Breakdown
from loaderbench.report.trials import why

_COLUMNS = (
    Column("Stage"),
    Column("Wall, ms", numeric=True, title="without the stages nested in it"),
    Column("CPU, ms", numeric=True, title="of the thread that loads; other threads of a decoder are not counted"),
    Column("Share", numeric=True, title="of the wall time of a sample"),
)
_UNKNOWN = "its wall time was not read"


def sample(trial: Trial) -> Breakdown:
    """The mean sample of the steady state."""
    found = trial.stages or {}
    names = [name for name in stages.ordered(found) if found[name].wall_s is not None]
    lengths = [found[name].wall_s or 0.0 for name in names]
    if math.fsum(lengths) <= 0:
        return Breakdown(id="sample", title=_title(trial), missing=numbers.missing(why(trial, "stages")))
    tones = stacks.tones(lengths)
    parts = stacks.shares(lengths)
    return Breakdown(
        id="sample",
        title=_title(trial),
        segments=stacks.segments([stages.name(name).text for name in names], parts, tones),
        tables=(Table(_caption(trial), _COLUMNS, _rows(trial, dict(zip(names, tones, strict=True)), parts)),),
        notes=(words.sentence(f"{trial.sampled[:1].upper()}{trial.sampled[1:]}."),) if trial.sampled else (),
    )


def _title(trial: Trial) -> str:
    if in_main_process(trial):
        return "A sample in the main process"
    known = trial.workers is not None or trial.config.get("num_workers") is not None
    return "A sample inside the workers" if known else "A sample inside the loader"


def _caption(trial: Trial) -> str:
    whose = "the main process\u2019s" if in_main_process(trial) else "one worker\u2019s"
    over = f", over {numbers.count(trial.samples, 'sample')}" if trial.samples else ""
    return f"A sample on average, in {whose} time{over}"


def _rows(trial: Trial, tones: dict[str, str], parts: list[float]) -> tuple[Row, ...]:
    """A row for each stage with its parts below, those without a wall time, and the sum."""
    costs, named = trial.stages or {}, trial.stage_parts or {}
    whole = StageCost(_sum_s([costs[name].cpu_s for name in tones]), _sum_s([costs[name].wall_s for name in tones]))
    lines: list[tuple[Text, StageCost, Value, str, int]] = []
    for name, share in zip(tones, stacks.percentages(parts), strict=True):
        lines.append((stages.name(name), costs[name], share, tones[name], 0))
        below = {part: named[part] for part in stages.parts_of(name, named)}
        if [cost.wall_s for cost in below.values()] == [costs[name].wall_s]:  # the stage over again
            below = {}
        lines += [(stages.part_name(part), cost, _share(cost, whole), "", 1) for part, cost in below.items()]
    lines += [(stages.name(name), costs[name], numbers.missing(_UNKNOWN), "", 0) for name in costs if name not in tones]
    walls = stacks.milliseconds([*(cost.wall_s for _, cost, *_ in lines), whole.wall_s], _UNKNOWN)
    cpus = stacks.milliseconds([*(cost.cpu_s for _, cost, *_ in lines), whole.cpu_s], "its CPU time was not read")
    rows = [
        Row((label, wall, cpu, share), tone=tone, depth=depth)
        for (label, _, share, tone, depth), wall, cpu in zip(lines, walls, cpus, strict=False)
    ]
    return (*rows, Row((Text("a sample"), walls[-1], cpus[-1], stacks.percentage(1.0)), mark="total"))


def _sum_s(times_s: list[float | None]) -> float | None:
    known = [time_s for time_s in times_s if time_s is not None]
    return math.fsum(known) if len(known) == len(times_s) else None


def _share(cost: StageCost, whole: StageCost) -> Value:
    if cost.wall_s is None or not whole.wall_s:
        return numbers.missing(_UNKNOWN)
    return stacks.percentage(cost.wall_s / whole.wall_s)
