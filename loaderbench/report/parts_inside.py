"""The branches of the tree that tell of one trial: where its step and its samples go, and what its workers did."""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.report.parts import Fact, Link, Table, Text, Value


@dataclass(frozen=True)
class Segment:
    """One piece of a bar: `start` and `share` are its place and length, 0 to 1; `tone` names its colour."""

    said: str
    start: float
    share: float
    tone: str


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Something and what it is made of, as a bar and in numbers; `missing` says why nothing is known of it.

    The shares of its segments add up to 1, and their tones are those of the table's rows.
    """

    id: str
    title: str
    lead: Text | None = None
    segments: tuple[Segment, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[Fact, ...] = ()
    notes: tuple[Text, ...] = ()
    missing: Value | None = None


@dataclass(frozen=True, kw_only=True)
class InsidePart:
    """One trial from within; `subject` says which of many it is. What has neither a number nor a reason is `None`."""

    subject: Text | None
    step: Breakdown | None
    sample: Breakdown | None
    workers: Breakdown | None
    slow: Breakdown | None
    waits: Breakdown | None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A configuration that can be chosen: what the page then says of it. `number` is its place in the run.

    `missing` says why nothing is known of its inside.
    """

    number: int
    label: Text
    role: str
    facts: tuple[Fact, ...]
    trials: tuple[Link, ...]
    inside: InsidePart | None
    missing: Text | None
