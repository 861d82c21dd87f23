"""Isolation runs: one configuration with parts of the pipeline removed, the cost of each part, and contention."""

from __future__ import annotations

from typing import TypeGuard

from loaderbench.consumers import consumer_kind
from loaderbench.records import Contention, CopyBandwidth, Interval, Isolation, IsolationRun, RunRecord
from loaderbench.records.words import IsolationRunName, count
from loaderbench.report import numbers, words
from loaderbench.report.model import Breakdown, Column, Fact, Glance, Heading, Row, Section, Table, Text, Value
from loaderbench.report.sections.verdict import ceiling
from loaderbench.report.view import View

_TITLE = "Isolation runs"
_INCLUDES: dict[IsolationRunName, str] = {
    "replay_device": "consumer only",
    "replay_host": "host-to-device copy, consumer",
    "loader_warm": "reads from memory, decode, transform, collate",
    "loader_cold": "reads from storage, decode, transform, collate",
    "end_to_end": "full pipeline, as in the sweep",
}
_MINUS = numbers.MINUS
_DIFFERENCES = (
    (f"Host-to-device copy (host {_MINUS} GPU cache)", "transfer_s"),
    (f"Storage cost (cold {_MINUS} warm)", "fetch_s"),
    (f"Interference (both {_MINUS} the slower one alone)", "interference_s"),
)
_PER_WORKERS = (
    Column("Workers", numeric=True),
    Column("CPU ms/sample", numeric=True, title="CPU time in the timed stages"),
    Column("growth", numeric=True, title="vs the fewest workers"),
    Column("Worker ms/sample", numeric=True, title="workers / samples per second"),
    Column("growth", numeric=True, title="vs the fewest workers"),
    Column(
        "Unexplained slowdown",
        numeric=True,
        title="worker time \u00f7 the time that CPU use and available CPUs explain",
    ),
)
_READING = (
    "CPU growth points to shared caches or memory bandwidth. An unexplained slowdown points to a lock, the GIL or a "
    "disk."
)
_BEYOND = ": shared lock, GIL or disk"
_TAKE_TURNS = "num_workers=0: loading and training alternate, so their times add up."


def section(view: View) -> Section | None:
    """The isolation runs, and the cost of more workers, as far as they were measured."""
    if view.profile:
        return None
    isolation = view.run.isolation
    parts = [_runs(isolation, view.run)] if _measured(isolation) else []
    parts += [_contention(view.run.contention)] if view.run.contention else []
    return Section(
        id="isolation",
        title=_TITLE,
        label="Isolation",
        blocks=tuple(block for part in parts for block in (Heading(part.title), part)),
        glance=tuple(_summary(view.run)),
        only_verbose=True,
    )


def _summary(run: RunRecord) -> list[Glance]:
    """The measured isolation runs, and a line for each result."""
    found, said = run.isolation, list[Glance]()
    if _measured(found):
        rows = tuple(_row(one, run) for one in found.runs if one.time_s)
        said = [Table(_TITLE, _columns(found)[:-1], tuple(Row(row.cells[:-1]) for row in rows))]
        said += [fact for fact in _differences(found) if not (isinstance(fact.value, Value) and fact.value.missing)]
    if run.ceiling and not consumer_kind(run.consumer).why_not_replayed:
        said.append(Fact("Ceiling", words.sentence(ceiling(run.ceiling))))
    workers = _contention_summary(run)
    return [*said, workers] if workers else said


def _measured(isolation: Isolation | None) -> TypeGuard[Isolation]:
    return isolation is not None and any(one.time_s for one in isolation.runs if one.name != "end_to_end")


def _runs(isolation: Isolation, run: RunRecord) -> Breakdown:
    shown = words.configuration(isolation.config).text
    rounds = count(isolation.rounds, "round")
    rows = tuple(_row(one, run) for one in isolation.runs if one.time_s)  # differences say why others are missing
    return Breakdown(
        title="Cost of each part",
        lead=words.sentence(f"{shown}: {rounds}, one process per row, after the sweep."),
        tables=(Table("Time with parts of the pipeline removed", _columns(isolation), rows),),
        facts=tuple(_differences(isolation)),
        notes=(*(words.sentence(f"{words.capitalised(note)}.") for note in isolation.notes), *_serial_notes(isolation)),
    )


def _columns(isolation: Isolation) -> tuple[Column, ...]:
    return (
        Column("Run"),
        Column(f"ms per {isolation.per}", numeric=True),
        Column("Samples/s", numeric=True),
        Column("Includes", prose=True),
    )


def _row(one: IsolationRun, run: RunRecord) -> Row:
    """One isolation run, and what it includes."""
    time = numbers.interval(one.time_s.scaled(1e3) if one.time_s else None)
    name = _loader_and_consumer(run) if one.name == "end_to_end" else words.ISOLATION_RUNS[one.name]
    return Row((Text(name), time, numbers.interval(one.samples_per_s), Text(_INCLUDES[one.name])))


def _loader_and_consumer(run: RunRecord) -> str:
    """The loader with its consumer."""
    kind = consumer_kind(run.consumer)
    return f"loader + {kind.who if kind.capped else 'training step'}" if kind.consumes else "loader"


def _differences(isolation: Isolation) -> list[Fact]:
    """The cost of each part, and the bandwidth of copies. An interval that includes 0 is not significant."""
    facts = [_difference(isolation, label, field) for label, field in _DIFFERENCES]
    return [*facts, _bandwidth(isolation.copy)] if isolation.copy else facts


def _bandwidth(copy: CopyBandwidth) -> Fact:
    pinned, pageable = (numbers.interval(rate).text for rate in (copy.pinned_gb_per_s, copy.pageable_gb_per_s))
    parts = [f"pinned {pinned}", f"pageable {pageable}"]
    parts += [] if copy.wanted_gb_per_s is None else [f"training needs {numbers.number(copy.wanted_gb_per_s)}"]
    parts += [] if copy.link_gb_per_s is None else [f"PCIe limit {numbers.number(copy.link_gb_per_s)}"]
    return Fact("Copy bandwidth, GB/s", Text("; ".join(parts)))


def _difference(isolation: Isolation, label: str, field: str) -> Fact:
    value: Interval | None = getattr(isolation, field)
    shown = numbers.difference(value.scaled(1e3) if value else None, "ms", isolation.not_measured.get(field))
    if shown.missing:
        return Fact(label, shown)
    if shown.main == numbers.NONE_SEEN:
        return Fact(label, Text(f"{shown.main} ({shown.detail} per {isolation.per})"))
    return Fact(label, Text(f"{shown.main} per {isolation.per} ({shown.detail})"))


def _serial_notes(isolation: Isolation) -> tuple[Text, ...]:
    return (Text(_TAKE_TURNS),) if isolation.config.get("num_workers") == 0 else ()


def _contention(found: tuple[Contention, ...]) -> Breakdown:
    """A table with a row for each number of workers."""
    caption = "Cost per sample by number of workers, same config otherwise"
    return Breakdown(
        title="Contention between workers",
        tables=(Table(caption, _PER_WORKERS, tuple(map(_contention_row, found))),),
        notes=(Text(_READING),),
    )


def _contention_summary(run: RunRecord) -> Fact | None:
    """The cost of the most workers relative to the fewest; `None` if unknown."""
    least = run.contention[0].workers if run.contention else 0
    measured = [contention for contention in run.contention if contention.cpu_ratio or contention.beyond_cores]
    if not measured:
        return None
    most = measured[-1]
    costs = [_ratio("CPU time per sample", most.cpu_ratio)] if most.cpu_ratio else []
    costs += [_ratio("unexplained slowdown", most.beyond_cores, _BEYOND)] if most.beyond_cores else []
    return Fact(f"Contention ({most.workers} vs {count(least, 'worker')})", Text(", ".join(costs)))


def _contention_row(contention: Contention) -> Row:
    why = contention.not_measured
    cells: list[Text] = [Value(str(contention.workers), sort=contention.workers)]
    for cost, ratio in (("cpu_s_per_sample", "cpu_ratio"), ("wall_s_per_sample", "wall_ratio")):
        value: Interval | None = getattr(contention, cost)
        cells.append(numbers.interval(value.scaled(1e3) if value else None, why.get(cost)))
        cells.append(numbers.times(getattr(contention, ratio), why.get(ratio)))
    return Row((*cells, numbers.times(contention.beyond_cores, why.get("beyond_cores"))))


def _ratio(label: str, ratio: Interval, cause: str = "") -> str:
    """A ratio in words. Only an interval entirely above 1 is a slowdown, with its cause; one round decides nothing."""
    shown = numbers.times(ratio)
    if ratio.lo is None or ratio.hi is None:
        return f"{label} {shown.text}"
    if ratio.lo > 1:
        return f"{label} {shown.text}{cause}"
    return f"{label} {numbers.NONE_SEEN} ({shown.detail})"
