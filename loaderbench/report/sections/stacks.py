"""Where loading time goes: by stage, where stacks of a process were read from outside, and by line of code."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.diagnosis.hotspots import find_hotspots
from loaderbench.records import Hotspot, StackLooks, Trial
from loaderbench.records.stages import stage_place
from loaderbench.report import numbers, tables, words
from loaderbench.report.model import Breakdown, Column, Row, Section, Table, Text

_STAGES = (
    Column("Stage"),
    Column("Share", numeric=True),
    Column("On a CPU", numeric=True, title="part of the stage's time"),
)
_LINE_COLUMNS = (
    Column("Line"),
    Column("Stage"),
    Column("Share", numeric=True, title="of loading time"),
    Column("Code", prose=True),
)
LINES = "code"
_MOST_LINES = 5
_BELOW = Column("Mostly in", title="the library's function that the line called")


def stages(trial: Trial) -> Section | None:
    """Shares of the stacks with work; `None` where no stack was read."""
    found = trial.stack_looks
    if found is None or not found.stages:
        return None
    title = "Loading time by stage"
    return Section(id="stacks", title=title, label="Stages", blocks=(_breakdown(title, found),), narrow=True)


def lines(trial: Trial) -> Section | None:
    """The lines with the largest shares; `None` where none were looked at."""
    found = find_hotspots([trial])[:_MOST_LINES]
    if not found:
        return None
    table = _lines(found)
    return Section(
        id=LINES, title="Loading time by line", label="Code", blocks=(table,), glance=(table,), in_markdown=True
    )


def _breakdown(title: str, found: StackLooks) -> Breakdown:
    known = dict(sorted(found.stages.items(), key=lambda one: stage_place(one[0])))
    shares = tables.shares([looks.share for looks in known.values()])
    tones, names = tables.tones(shares), [words.stage(name) for name in known]
    rows = tuple(
        Row((name, share, numbers.share(looks.running_share)), tone=tone)
        for name, share, looks, tone in zip(names, tables.percentages(shares), known.values(), tones, strict=True)
    )
    idle = "" if found.idle_share is None else f"; workers idle in {numbers.share(found.idle_share).text} of checks"
    return Breakdown(
        title=title,
        segments=tables.segments([name.text for name in names], shares, tones),
        tables=(Table(f"{numbers.count(found.looks, 'stack')}{idle}", _STAGES, rows),),
    )


def _lines(found: Sequence[Hotspot]) -> Table:
    """A line each; what they called, where one of them called a library."""
    with_below = any(line.below for line in found)
    rows = tuple(
        Row(
            (
                words.outside(f"{line.path or line.file}:{line.line}", words.LABEL_LIMIT),
                words.stage(line.stage),
                tables.percentage(line.share),
                words.outside(line.text, words.LABEL_LIMIT) if line.text else Text(line.function),
                *([words.outside(line.below, words.NAME_LIMIT)] if with_below else []),
            )
        )
        for line in found
    )
    columns = (*_LINE_COLUMNS, _BELOW) if with_below else _LINE_COLUMNS
    return Table("Lines with the largest share of loading time", columns, rows)
