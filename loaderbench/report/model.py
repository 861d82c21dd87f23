"""The elements of a report: sections, and the blocks in them.

Every string is final: presenters place strings and compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

Json = dict[str, Any]
Tone = Literal["ok", "warn", "bad"]


@dataclass(frozen=True)
class Text:
    """A string to show. `title` has the complete string if it was cut, or an explanation."""

    text: str
    title: str | None = None

    @property
    def short(self) -> str:
        """The text for a table without room for the reason of a missing value."""
        return self.text


@dataclass(frozen=True)
class Value(Text):
    """A measured quantity. `text` is complete; `main` and `detail` are its two halves, for layouts with room for both.

    `sort` is the sort key in a table. It is `None` if the quantity was not measured, never 0.
    """

    main: str = ""
    detail: str = ""
    sort: float | None = None
    missing: bool = False

    @property
    def short(self) -> str:
        """The text, or for a missing value its first half."""
        return self.main if self.missing else self.text


@dataclass(frozen=True)
class Fact:
    """A label and its value. `label_title` has the complete label if it was cut."""

    label: str
    value: Text
    label_title: str | None = None


@dataclass(frozen=True)
class Link:
    """A link to a place in the report, such as a trial's row."""

    text: Text
    anchor: str


@dataclass(frozen=True)
class State:
    """Whether the run is complete with all trials measured, and otherwise the next step."""

    tone: Tone
    label: str
    hint: str | None = None


class Block:
    """Content of a section. `template` draws it in HTML: a macro, or a file."""

    template: ClassVar[str]

    def within(self) -> Iterable[Block]:
        """The nested blocks."""
        return ()


@dataclass(frozen=True)
class Paragraph(Block):
    """A short text. `look` is a CSS class."""

    template = "paragraph"
    text: Text
    look: Literal["", "small", "missing"] = ""


@dataclass(frozen=True)
class Heading(Block):
    """The title of the blocks that follow in the section."""

    template = "heading"
    text: str


@dataclass(frozen=True)
class Facts(Block):
    """Labels and values, one row each."""

    template = "facts"
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Column:
    """One column of a table. Numeric columns are right-aligned, and `prose` can take several lines."""

    label: str
    numeric: bool = False
    title: str | None = None
    prose: bool = False


@dataclass(frozen=True)
class Row:
    """One row. `anchor` is the target of links, and `mark` precedes the row (a star for the best).

    `tone` is the color of the row's segment in a bar. A row of `depth` 1 is a part of the row above. `choice` is the
    number of the row's configuration, if it is selectable. `is_baseline` is true for the configuration that gains refer
    to.
    """

    cells: tuple[Text, ...]
    anchor: str | None = None
    mark: str = ""
    tone: str = ""
    depth: int = 0
    choice: int | None = None
    is_baseline: bool = False


@dataclass(frozen=True)
class Table(Block):
    """A table with its caption, and a note if it is not complete.

    The rows of a `sortable` table can be sorted. The rows of a `choosing` table select a configuration.
    """

    template = "table"
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str | None = None
    sortable: bool = False
    choosing: bool = False


@dataclass(frozen=True)
class Segment:
    """One segment of a bar. `start` and `share` are its position and length, 0 to 1; `tone` names its color."""

    said: str
    start: float
    share: float
    tone: str


@dataclass(frozen=True, kw_only=True)
class Breakdown(Block):
    """A quantity and its parts, as a bar and in numbers. `missing` says why nothing is known.

    The shares of the segments add up to 1, and their tones match those of the table's rows.
    """

    template = "breakdown"
    title: str
    lead: Text | None = None
    segments: tuple[Segment, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[Fact, ...] = ()
    notes: tuple[Text, ...] = ()
    missing: Value | None = None


@dataclass(frozen=True, kw_only=True)
class Chart(Block):
    """A chart, named after its place in the report. Without scripts, the table below it has its numbers.

    `figures` are Plotly figures from `style.figure`: one, or several to choose from.
    """

    template = "chart"
    name: str
    label: str
    caption: str
    figures: tuple[Json, ...]

    @property
    def least_px(self) -> int:
        """Height of the lowest figure, in pixels. The report reserves it until the chart is drawn."""
        return min((int(figure["height"]) for figure in self.figures), default=0)


@dataclass(frozen=True)
class Details(Block):
    """Blocks behind a line that unfolds them. `count` is the number of items that they hold."""

    template = "details"
    summary: str
    blocks: tuple[Block, ...]
    count: int | None = None

    def within(self) -> Iterable[Block]:
        """The folded blocks."""
        return self.blocks


def data_table(table: Table) -> Details:
    """The numbers of a chart, folded."""
    return Details("Data table", (table,))


@dataclass(frozen=True)
class Columns(Block):
    """Blocks side by side, if the report is wide enough."""

    template = "columns"
    columns: tuple[tuple[Block, ...], ...]

    def within(self) -> Iterable[Block]:
        """The blocks of all columns, from left to right."""
        return (block for column in self.columns for block in column)


Glance = Table | Fact
"""The short form of a section for a terminal or Markdown: a line or a table."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section of the report. `label` is its name in the navigation; without one, it is not listed there.

    `glance` is its short form for a terminal, and with `in_markdown` also for a notebook and a comment. With
    `of_choice`, the section describes the selected configuration. A `narrow` section can share a row with the next.
    `look` is a CSS class. A section without blocks is not drawn. With `only_verbose`, a terminal shows the short form
    only with `-v`.
    """

    id: str
    title: str
    label: str = ""
    blocks: tuple[Block, ...] = ()
    glance: tuple[Glance, ...] = ()
    in_markdown: bool = False
    of_choice: bool = False
    narrow: bool = False
    only_verbose: bool = False
    look: str = ""


B = TypeVar("B", bound=Block)


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """These blocks, each followed by its nested blocks."""
    for block in blocks:
        yield block
        yield from walk(block.within())


@dataclass(frozen=True, kw_only=True)
class Document:
    """A report, ready to be drawn."""

    name: Text
    page_title: str
    state: State
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    made_by: str

    @property
    def links(self) -> tuple[Link, ...]:
        """Links to the drawn sections, for the navigation."""
        return tuple(Link(Text(s.label), s.id) for s in self.sections if s.label and s.blocks)

    def all(self, kind: type[B]) -> list[B]:
        """The blocks of a kind, in the order of the report."""
        return [block for s in self.sections for block in walk(s.blocks) if isinstance(block, kind)]

    def find(self, kind: type[B]) -> B | None:
        """The first block of a kind, or `None`."""
        return next(iter(self.all(kind)), None)
