"""One configuration with parts of it taken away: what is left of its time, and what each part and more workers cost."""

from __future__ import annotations

from typing import TypeGuard

from loaderbench.consumers import consumer_kind
from loaderbench.records import Contention, Interval, Isolation, IsolationRun, RunRecord
from loaderbench.report import numbers, words
from loaderbench.report.model import Breakdown, Column, Fact, Glance, Heading, Row, Section, Table, Text, Value
from loaderbench.report.sections.verdict import ceiling
from loaderbench.report.view import View

_TITLE = "With parts taken away"
_LEFT: dict[words.IsolationRunName, str] = {
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
_PER_WORKERS = (
    Column("Workers", numeric=True),
    Column("CPU ms per sample", numeric=True, title="on a CPU, in the stages that were timed"),
    Column("growth", numeric=True, title="over the smallest number of workers"),
    Column("worker ms per sample", numeric=True, title="all workers together: workers / samples per second"),
    Column("growth", numeric=True, title="over the smallest number of workers"),
    Column("beyond the cores", numeric=True, title="worker time over what its CPU time and the allotted cores explain"),
)
_READING = (
    "CPU time that grows says that caches and memory are shared; worker time beyond what it and the cores explain says "
    "that something else is: a lock, the GIL, a disk."
)
_TAKE_TURNS = "without workers loader and consumer take turns, so that their times add up"


def section(view: View) -> Section | None:
    """The isolation runs, and what more workers cost, as far as they were measured."""
    if view.profile:
        return None
    found = view.run.isolation
    parts = [_runs(found)] if _measured(found) else []
    parts += [_contention(view.run.contention)] if view.run.contention else []
    return Section(
        id="isolation",
        title="Where the time goes when parts are taken away",
        label="Parts",
        blocks=tuple(block for part in parts for block in (Heading(part.title), part)),
        glance=tuple(_in_short(view.run)),
        only_verbose=True,
    )


def _in_short(run: RunRecord) -> list[Glance]:
    """The isolation runs that were measured, and a line for each thing they tell."""
    found, said = run.isolation, list[Glance]()
    if _measured(found):
        rows = tuple(_row(one) for one in found.runs if one.time_s)
        said = [Table(_TITLE, _columns(found)[:-1], tuple(Row(row.cells[:-1]) for row in rows))]
        said += [fact for fact in _differences(found) if not (isinstance(fact.value, Value) and fact.value.missing)]
    if run.ceiling and not consumer_kind(run.consumer).why_not_replayed:
        said.append(Fact("Ceiling", words.sentence(ceiling(run.ceiling))))
    workers = _workers_in_short(run)
    return [*said, workers] if workers else said


def _measured(found: Isolation | None) -> TypeGuard[Isolation]:
    return found is not None and any(one.time_s for one in found.runs if one.name != "end_to_end")


def _runs(found: Isolation) -> Breakdown:
    shown = words.configuration(found.config).text
    rounds = numbers.count(found.rounds, "round")
    rows = tuple(_row(one) for one in found.runs if one.time_s)  # why others are not there, the differences say
    return Breakdown(
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


def _row(one: IsolationRun) -> Row:
    """One isolation run, and what was left of it."""
    time = numbers.interval(numbers.scaled(one.time_s, 1e3) if one.time_s else None)
    return Row((Text(words.ISOLATION_RUNS[one.name]), time, numbers.interval(one.samples_per_s), Text(_LEFT[one.name])))


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
    return f"{words.capitalised(text)}."


def _contention(found: tuple[Contention, ...]) -> Breakdown:
    """A row for each number of workers."""
    caption = "The configuration of the verdict with each number of workers"
    return Breakdown(
        title="What more workers share",
        tables=(Table(caption, _PER_WORKERS, tuple(map(_contention_row, found))),),
        notes=(Text(_READING),),
    )


def _workers_in_short(run: RunRecord) -> Fact | None:
    """What the most workers cost beside the fewest; nothing where it is not known."""
    least = run.contention[0].workers if run.contention else 0
    measured = [found for found in run.contention if found.cpu_ratio or found.beyond_cores]
    if not measured:
        return None
    most = measured[-1]
    beside = f"with {numbers.count(most.workers, 'worker')} beside {least}"
    said = [f"a sample takes {numbers.times(most.cpu_ratio).text} the CPU time"] if most.cpu_ratio else []
    said += [f"worker time is {_beyond(most.beyond_cores)}"] if most.beyond_cores else []
    return Fact("Contention", Text(f"{beside} {', '.join(said)}"))


def _contention_row(found: Contention) -> Row:
    why = found.not_measured
    cells: list[Text] = [Value(str(found.workers), sort=found.workers)]
    for cost, ratio in (("cpu_s_per_sample", "cpu_ratio"), ("wall_s_per_sample", "wall_ratio")):
        value: Interval | None = getattr(found, cost)
        cells.append(numbers.interval(numbers.scaled(value, 1e3) if value else None, why.get(cost)))
        cells.append(numbers.times(getattr(found, ratio), why.get(ratio)))
    return Row((*cells, numbers.times(found.beyond_cores, why.get("beyond_cores"))))


def _beyond(ratio: Interval) -> str:
    """Only what lies wholly above 1 is beyond; a single round decides nothing."""
    shown = numbers.times(ratio).text
    if ratio.lo is None or ratio.hi is None:
        return f"{shown} what that and the cores explain"
    if ratio.lo > 1:
        return f"{shown} what that and the cores explain: a lock, the GIL or a disk is shared"
    return f"no more than that and the cores explain ({shown})"
