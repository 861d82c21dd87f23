"""What the workers were doing: on a CPU, waiting for one, or blocked, with what else the system tells of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loaderbench.records import Trial, WorkerStates
from loaderbench.report import numbers, stacks
from loaderbench.report.parts import Column, Fact, Row, Table, Text, Value
from loaderbench.report.parts_inside import Breakdown
from loaderbench.report.trials import why

TITLE = "What the workers were doing"
_STATES = (
    ("on a CPU", "1", "they computed"),
    ("waiting for a CPU", "3", "they could have run, but every allotted core was taken"),
    ("blocked", stacks.REST, "they waited for a disk, a lock, or the loop to take a batch"),
)
_COLUMNS = (Column("State"), Column("Share", numeric=True), Column("What it means", prose=True))


@dataclass(frozen=True)
class _Reading:
    """One field of the workers' states: how it is called, read and written, and what it counts."""

    label: str
    field: str
    write: Callable[[float], Value]
    of: str = ""
    factor: float = 1.0

    def fact(self, states: WorkerStates) -> Fact | None:
        """What is known, or why it is not; nothing where not even that was recorded."""
        found, reason = getattr(states, self.field), states.not_measured.get(self.field)
        if found is None:
            return Fact(self.label, numbers.missing(reason)) if reason else None
        said = self.write(found * self.factor).text
        return Fact(self.label, Text(f"{said} {self.of}".rstrip()))


_READINGS = (
    _Reading("Page cache hits", "page_cache_hit_share", numbers.percent, "of what they read came without a disk", 100),
    _Reading("Page faults, major", "major_faults_per_s", numbers.quantity, "per second, answered by a disk"),
    _Reading("Page faults, minor", "minor_faults_per_s", numbers.quantity, "per second, answered by memory"),
    _Reading("Threads per worker", "threads_per_worker", lambda threads: numbers.quantity(threads, digits=2)),
    _Reading("Their other threads", "other_threads_cpu_share", numbers.percent, "of the same time on a CPU", 100),
    _Reading("Memory (PSS)", "pss_bytes", numbers.memory, "of all workers, shared pages counted once"),
)


def workers(trial: Trial) -> Breakdown:
    """The main threads of all workers over the steady state."""
    found = trial.workers
    lengths = [found.on_cpu_share, found.run_queue_share, found.blocked_share] if found else []
    if found is None or sum(lengths) <= 0:
        return Breakdown(id="workers", title=TITLE, missing=numbers.missing(why(trial, "workers")))
    parts = stacks.shares(lengths)
    names, tones = [name for name, _, _ in _STATES], [tone for _, tone, _ in _STATES]
    rows = tuple(
        Row((Text(name), share, Text(meaning)), tone=tone)
        for (name, tone, meaning), share in zip(_STATES, stacks.percentages(parts), strict=True)
    )
    facts = [reading.fact(found) for reading in _READINGS]
    return Breakdown(
        id="workers",
        title=TITLE,
        segments=stacks.segments(names, parts, tones),
        tables=(Table(_caption(found), _COLUMNS, rows),),
        facts=tuple(fact for fact in facts if fact),
    )


def _caption(states: WorkerStates) -> str:
    if states.count is None:
        return "The time of the workers\u2019 main threads"
    if states.count == 1:
        return "The time of one worker\u2019s main thread"
    return f"The time of {numbers.count(states.count, 'worker')}, each by its main thread"
