"""What a report is made of; `tree` puts it together.

Every string is final: presenters place it, they compute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CellState = Literal["measured", "failed", "not_measured", "not_run", "not_planned"]
BarKind = Literal["baseline", "best", "measured", "ceiling"]


@dataclass(frozen=True)
class Text:
    """A string to show; `title` holds the whole of one that was cut, or a word of explanation."""

    text: str
    title: str | None = None


@dataclass(frozen=True)
class Value(Text):
    """A measured quantity. `text` says all of it; `main` and `detail` are its two halves where there is room for both.

    `sort` orders a table by it and is `None`, like everything that was not measured, never 0.
    """

    main: str = ""
    detail: str = ""
    sort: float | None = None
    missing: bool = False


@dataclass(frozen=True)
class Fact:
    """A label and what it says."""

    label: str
    value: Text


@dataclass(frozen=True)
class Column:
    """One column of a table; numeric ones are aligned at their right, and `prose` may take several lines."""

    label: str
    numeric: bool = False
    title: str | None = None
    prose: bool = False


@dataclass(frozen=True)
class Row:
    """One row; `anchor` is what a link on the page points at, `mark` stands before it (a star for the best).

    `tone` is the colour of its piece of a bar; a row of `depth` 1 is a part of the one above it. `choice` is the number
    of the configuration that the row is of, where it can be chosen.
    """

    cells: tuple[Text, ...]
    anchor: str | None = None
    mark: str = ""
    tone: str = ""
    depth: int = 0
    choice: int | None = None


@dataclass(frozen=True)
class Table:
    """A table with its caption, and a note when it does not hold everything."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str | None = None


@dataclass(frozen=True)
class Link:
    """A way to a trial's row."""

    text: Text
    anchor: str


@dataclass(frozen=True)
class State:
    """Whether the run came to its end with every trial measured, and what to type when it did not."""

    tone: Literal["ok", "warn", "bad"]
    label: str
    hint: str | None = None


@dataclass(frozen=True)
class KeyFigure:
    """One quantity of the baseline and of the best; `before` is `None` when the two are one configuration."""

    label: str
    value: Value
    before: Value | None
    hint: str


@dataclass(frozen=True)
class Bar:
    """A bar of the small comparison in samples/s below the verdict; `share` is its length, 0 to 1."""

    kind: BarKind
    value: str
    share: float


@dataclass(frozen=True, kw_only=True)
class VerdictPart:
    """The one finding that explains the run, with its proof and its figures."""

    headline: Text
    cause: tuple[Fact, ...]
    evidence: tuple[Text, ...]
    confidence: str
    title: str
    best_label: str
    best: Text | None
    baseline: Text | None
    why_best: Text | None
    why_baseline: Text | None
    figures: tuple[KeyFigure, ...]
    bars: tuple[Bar, ...]
    ceiling: Text | None
    against: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Snippet:
    """Text to copy, with the name of its language."""

    language: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """One recommendation: the change, what it gave, what it costs, and where that is to be seen.

    `command` measures it again.
    `heading` stands above the first of those that rest on the same basis, where there are several bases.
    """

    id: str
    title: Text
    change: tuple[Fact, ...]
    badge: str
    badge_title: str
    gain: Value | None
    gain_label: str
    costs: tuple[Text, ...]
    evidence: tuple[Text, ...]
    trials: tuple[Link, ...]
    caveat: Text | None
    snippets: tuple[Snippet, ...]
    one_line: str
    heading: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class Aside:
    """A recommendation that is not one: already followed, or impossible to check; the reason is its content."""

    title: Text
    reason: Text


@dataclass(frozen=True)
class RecommendationsPart:
    """What to change first, what was tried in vain, what needs no change, and what could not be looked at."""

    cards: tuple[Card, ...]
    without_gain: tuple[Aside, ...]
    already_fine: tuple[Aside, ...]
    not_checked: tuple[Aside, ...]
    empty: str | None


@dataclass(frozen=True)
class CellReading:
    """What a cell shows for one metric. `place` is its place on the colour scale, 0 to 1; `None`: no colour."""

    metric: str
    text: str
    place: float | None


@dataclass(frozen=True, kw_only=True)
class HeatCell:
    """One configuration on the heat map."""

    state: CellState
    readings: tuple[CellReading, ...]
    title: str
    best: bool = False
    tied: bool = False
    remark: str = ""
    anchor: str | None = None
    choice: int | None = None


@dataclass(frozen=True)
class HeatRow:
    """The configurations of one value of the vertical axis."""

    label: Text
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True)
class Facet:
    """One table of the heat map: a combination of all axes but the two that span it."""

    title: Text | None
    rows: tuple[HeatRow, ...]


@dataclass(frozen=True)
class HeatMetric:
    """One choice of the metric selector, with the ends of its colour scale."""

    id: str
    label: str
    low: str
    high: str


@dataclass(frozen=True, kw_only=True)
class SweepPart:
    """The heat map: `y_axis` is `None` where one axis alone was swept."""

    x_axis: Text
    y_axis: Text | None
    x_labels: tuple[Text, ...]
    metrics: tuple[HeatMetric, ...]
    facets: tuple[Facet, ...]
    caption: str
    legend: tuple[str, ...]


@dataclass(frozen=True)
class Curve:
    """One line of the scaling chart, over the numbers of its axis, or over the places of its labels."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    below: tuple[float | None, ...]
    above: tuple[float | None, ...]
    hover: tuple[str, ...]


@dataclass(frozen=True)
class Reference:
    """A level to compare the curves with."""

    label: str
    value: float


@dataclass(frozen=True, kw_only=True)
class ScalingPart:
    """Samples/s over one axis, with the same numbers as a table. `top` ends the axis of samples/s.

    An axis that is not `numeric` has its values at 0, 1, 2 and so on, where `ticks` are, each under its label.
    """

    x_axis: str
    y_axis: str
    numeric: bool
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    curves: tuple[Curve, ...]
    reference: Reference | None
    top: float
    caption: str
    table: Table


@dataclass(frozen=True)
class Series:
    """Readings of one metric over seconds, in the unit of their panel."""

    name: str
    seconds: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """One strip of the timeline. `top` fixes the end of its scale where that is known (100 for a percentage)."""

    title: str
    unit: str
    points: bool
    top: float | None
    series: tuple[Series, ...]


@dataclass(frozen=True)
class TimelineTrial:
    """One trial that can be chosen on the timeline; `choice` is the number of its configuration among the choices."""

    label: str
    panels: tuple[Panel, ...]
    note: str
    choice: int | None = None


@dataclass(frozen=True)
class TimelinePart:
    """Readings of the monitors over seconds; the first trial is the one that is shown."""

    trials: tuple[TimelineTrial, ...]
    x_axis: str
    caption: str
    table: Table


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """All trials that failed for one cause. `last_words`, `message`, `log` and `command` are those of one of them."""

    kind: Text
    count: str
    last_words: Text
    hint: Text
    log: Text | None
    message: Text
    logs: tuple[Text, ...]
    trials: tuple[Link, ...]
    command: str | None = None


@dataclass(frozen=True)
class Term:
    """One word of the glossary."""

    word: str
    meaning: str


@dataclass(frozen=True)
class Download:
    """A file the page can write by itself."""

    label: str
    name: str
    mime: str
    content: str
