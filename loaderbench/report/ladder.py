"""One configuration with parts of it taken away: what is left of a batch's time, and what each part costs."""

from __future__ import annotations

from typing import Literal, TypeGuard

from loaderbench.consumers import consumer_kind
from loaderbench.records import Interval, Isolation, IsolationName, IsolationRun, RunRecord
from loaderbench.report import numbers, words
from loaderbench.report.contention import contention, workers_in_short
from loaderbench.report.parts import Column, Fact, Row, Table, Text
from loaderbench.report.parts_inside import Breakdown
from loaderbench.report.verdict import ceiling

TITLE = "With parts taken away"
RUNGS: dict[IsolationName | Literal["end_to_end"], str] = {
    "replay_device": "cached batches replayed from the device",
    "replay_host": "cached batches replayed from the host",
    "loader_warm": "the loader alone, files in memory",
    "loader_cold": "the loader alone, files evicted",
    "end_to_end": "loader and consumer",
}
_LEFT: dict[IsolationName | Literal["end_to_end"], str] = {
    "replay_device": "the consumer, with no loading and no transfer",
    "replay_host": "the consumer and the transfer, with no loading",
    "loader_warm": "reading from memory, decoding and everything up to the batch, with no consumer",
    "loader_cold": "the same with reading from storage",
    "end_to_end": "everything, as in the sweep",
}
_DIFFERENCES = (
    ("Transfer", "transfer_s", "replayed from the host, less replayed from the device"),
    ("Fetch", "fetch_s", "files evicted, less files in memory"),
    ("Interference", "interference_s", "loader and consumer, less the slower of the two alone"),
)
_TAKE_TURNS = "without workers loader and consumer take turns, so that their times add up"


def apart(run: RunRecord) -> tuple[Breakdown, ...]:
    """The rungs of the ladder, and what more workers cost; nothing where neither was measured."""
    workers = contention(run)
    return (*((_ladder(run.isolation),) if _measured(run.isolation) else ()), *((workers,) if workers else ()))


def apart_in_short(run: RunRecord) -> tuple[Table | Fact, ...]:
    """What a terminal says of it: the rungs that were measured, and a line for each thing they tell."""
    found, said = run.isolation, list[Table | Fact]()
    if found is not None and _measured(found):
        rows = tuple(_row(rung) for rung in found.runs if rung.time_s)
        said = [Table(TITLE, _columns(found)[:-1], tuple(Row(row.cells[:-1]) for row in rows))]
        said += [fact for fact in _differences(found) if not fact.value.text.startswith(numbers.NOT_MEASURED)]
    if run.ceiling and not consumer_kind(run.consumer).why_not_replayed:
        said.append(Fact("Ceiling", Text(ceiling(run.ceiling).text.partition(": ")[2])))
    workers = workers_in_short(run)
    return (*said, workers) if workers else tuple(said)


def _measured(found: Isolation | None) -> TypeGuard[Isolation]:
    return found is not None and any(rung.time_s for rung in found.runs if rung.name != "end_to_end")


def _ladder(found: Isolation) -> Breakdown:
    shown = words.configuration(found.config).text
    rounds = numbers.count(found.rounds, "round")
    rows = tuple(_row(rung) for rung in found.runs if rung.time_s)  # why others are not there, the differences say
    return Breakdown(
        id="ladder",
        title="One configuration, part by part",
        lead=words.sentence(f"{shown}, {rounds}: each row in a process of its own, after the sweep."),
        tables=(Table("What is left of it, and how long that takes", _columns(found), rows),),
        facts=tuple(_differences(found)),
        notes=(*(words.sentence(_sentence(note)) for note in found.notes), *_turns(found)),
    )


def _columns(found: Isolation) -> tuple[Column, ...]:
    return (
        Column("What ran"),
        Column(f"ms per {found.per}", numeric=True),
        Column("Samples/s", numeric=True),
        Column("What is left", prose=True),
    )


def _row(rung: IsolationRun) -> Row:
    """One rung, and what was left of it."""
    time = numbers.interval(numbers.scaled(rung.time_s, 1e3) if rung.time_s else None)
    return Row((Text(RUNGS[rung.name]), time, numbers.interval(rung.samples_per_s), Text(_LEFT[rung.name])))


def _differences(found: Isolation) -> list[Fact]:
    """What each part costs; an interval that holds 0 saw nothing."""
    return [_difference(found, *names) for names in _DIFFERENCES]


def _difference(found: Isolation, label: str, field: str, of: str) -> Fact:
    value: Interval | None = getattr(found, field)
    shown = numbers.difference(numbers.scaled(value, 1e3) if value else None, "ms", found.not_measured.get(field))
    return Fact(label, shown if shown.missing else Text(f"{shown.text} per {found.per}: {of}"))


def _turns(found: Isolation) -> tuple[Text, ...]:
    return (Text(_sentence(_TAKE_TURNS)),) if found.config.get("num_workers") == 0 else ()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
