"""What a report is made of: sections, and the blocks in them.

Every string is final: presenters place it, they compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

Json = dict[str, Any]
Tone = Literal["ok", "warn", "bad"]


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
    """A label and what it says; `label_title` holds the whole of a label that was cut."""

    label: str
    value: Text
    label_title: str | None = None


@dataclass(frozen=True)
class Link:
    """A way to a place on the page, such as a trial's row."""

    text: Text
    anchor: str


@dataclass(frozen=True)
class State:
    """Whether the run came to its end with every trial measured, and what to type when it did not."""

    tone: Tone
    label: str
    hint: str | None = None


class Block:
    """Content of a section. `template` is how the page draws it: a macro, or a file of its own."""

    template: ClassVar[str]

    def within(self) -> Iterable[Block]:
        """The blocks that it holds."""
        return ()


@dataclass(frozen=True)
class Paragraph(Block):
    """A few words. `look` is a class of the page's style sheet."""

    template = "paragraph"
    text: Text
    look: Literal["", "small", "missing"] = ""


@dataclass(frozen=True)
class Heading(Block):
    """The title of what follows it in its section."""

    template = "heading"
    text: str


@dataclass(frozen=True)
class Facts(Block):
    """Labels and what they say, a row for each."""

    template = "facts"
    facts: tuple[Fact, ...]


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

    `tone` is the color of its piece of a bar; a row of `depth` 1 is a part of the one above it. `choice` is the number
    of the configuration that the row is of, where it can be chosen. `is_baseline`: gains are over this configuration.
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
    """A table with its caption, and a note when it does not hold everything.

    A reader can sort one that is `sortable`, and choose a configuration by the rows of one that is `choosing`.
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
    """One piece of a bar: `start` and `share` are its place and length, 0 to 1; `tone` names its color."""

    said: str
    start: float
    share: float
    tone: str


@dataclass(frozen=True, kw_only=True)
class Breakdown(Block):
    """Something and what it is made of, as a bar and in numbers; `missing` says why nothing is known of it.

    The shares of its segments add up to 1, and their tones are those of the table's rows. `title` is what it is called.
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
    """A chart by the name of its place on the page. Without scripts, the table below it has its numbers.

    `figures` are what plotly draws, as `style.figure` makes them: one, or several to choose from.
    """

    template = "chart"
    name: str
    label: str
    caption: str
    figures: tuple[Json, ...]

    @property
    def least_px(self) -> int:
        """Height of the lowest figure, in pixels: the page keeps room for it until it is drawn."""
        return min((int(figure["height"]) for figure in self.figures), default=0)


@dataclass(frozen=True)
class Details(Block):
    """Blocks behind a line that unfolds them; `count` says how many things they hold."""

    template = "details"
    summary: str
    blocks: tuple[Block, ...]
    count: int | None = None

    def within(self) -> Iterable[Block]:
        """Everything behind the line."""
        return self.blocks


def data_table(table: Table) -> Details:
    """The numbers of a chart."""
    return Details("Data table", (table,))


@dataclass(frozen=True)
class Columns(Block):
    """Blocks in one row, where the page is wide enough."""

    template = "columns"
    columns: tuple[tuple[Block, ...], ...]

    def within(self) -> Iterable[Block]:
        """All columns, from left to right."""
        return (block for column in self.columns for block in column)


Glance = Table | Fact
"""What a section says in a line or a table, for a terminal or Markdown."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section of the page: `label` is what the way to it is called, and none leads to one without.

    `glance` is what a terminal shows of it, and with `in_markdown` a notebook and a comment too. With `of_choice` the
    section describes the chosen configuration; a `narrow` one may share a row with the next. `look` is a class of the
    style sheet. A section without blocks is not drawn. `only_verbose`: a terminal shows its glance with `-v` alone.
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
    """These blocks, each followed by its own blocks."""
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
        """The way to each section that is on the page."""
        return tuple(Link(Text(s.label), s.id) for s in self.sections if s.label and s.blocks)

    def all(self, kind: type[B]) -> list[B]:
        """The blocks of a kind, in the order of the page."""
        return [block for s in self.sections for block in walk(s.blocks) if isinstance(block, kind)]

    def find(self, kind: type[B]) -> B | None:
        """The first block of a kind, where there is one."""
        return next(iter(self.all(kind)), None)
