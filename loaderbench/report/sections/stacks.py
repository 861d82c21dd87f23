"""Where loading time goes in the user's own code, by stacks of a process that was attached to."""

from __future__ import annotations

from loaderbench.records import StackLooks, Trial
from loaderbench.records.stages import stage_place
from loaderbench.report import numbers, tables, words
from loaderbench.report.model import Breakdown, Column, Row, Section, Table, Text

_TITLE = "Loading time by stage and line"
_STAGES = (
    Column("Stage"),
    Column("Share", numeric=True),
    Column("On a CPU", numeric=True, title="part of the stage's time"),
)
_LINES = (Column("Line"), Column("Share", numeric=True, title="of loading time"), Column("Code", prose=True))
_BELOW = Column("Mostly in", title="the library's function that the line called")


def section(trial: Trial) -> Section | None:
    """Shares of the stacks seen at work; `None` where no stack was."""
    found = trial.stack_looks
    if found is None or not found.stages:
        return None
    lines = (_lines(found),) if found.lines else ()
    return Section(
        id="stacks",
        title=_TITLE,
        label="Code",
        blocks=(_breakdown(found), *lines),
        glance=lines,
        in_markdown=True,
    )


def _breakdown(found: StackLooks) -> Breakdown:
    stages = dict(sorted(found.stages.items(), key=lambda one: stage_place(one[0])))
    shares = tables.shares([looks.share for looks in stages.values()])
    tones, names = tables.tones(shares), [words.stage(name) for name in stages]
    rows = tuple(
        Row((name, share, numbers.share(looks.running_share)), tone=tone)
        for name, share, looks, tone in zip(names, tables.percentages(shares), stages.values(), tones, strict=True)
    )
    idle = "" if found.idle_share is None else f"; workers had no work in {numbers.share(found.idle_share).text} of all"
    return Breakdown(
        title=_TITLE,
        segments=tables.segments([name.text for name in names], shares, tones),
        tables=(Table(f"{numbers.count(found.looks, 'stack')}{idle}", _STAGES, rows),),
    )


def _lines(found: StackLooks) -> Table:
    """A line each; what they called, where one of them called a library."""
    with_below = any(line.below for line in found.lines)
    rows = tuple(
        Row(
            (
                words.outside(line.place, words.LABEL_LIMIT),
                tables.percentage(line.share),
                words.outside(line.text, words.LABEL_LIMIT) if line.text else Text(line.function),
                *([words.outside(line.below, words.NAME_LIMIT)] if with_below else []),
            )
        )
        for line in found.lines
    )
    columns = (*_LINES, _BELOW) if with_below else _LINES
    return Table("Lines with the largest share of loading time", columns, rows)
