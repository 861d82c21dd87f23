"""What a sample costs with more workers, and how much of it the cores explain."""

from __future__ import annotations

from loaderbench.records import Contention, Interval, RunRecord
from loaderbench.report import numbers
from loaderbench.report.parts import Column, Fact, Row, Table, Text, Value
from loaderbench.report.parts_inside import Breakdown

_COLUMNS = (
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


def contention(run: RunRecord) -> Breakdown | None:
    """A row for each number of workers; `None` where there are not two to compare."""
    if not run.contention:
        return None
    rows = tuple(_row(found) for found in run.contention)
    caption = "The configuration of the verdict with each number of workers"
    return Breakdown(
        id="contention",
        title="What more workers share",
        tables=(Table(caption, _COLUMNS, rows),),
        notes=(Text(_READING),),
    )


def workers_in_short(run: RunRecord) -> Fact | None:
    """What the most workers cost beside the fewest; nothing where it is not known."""
    least = run.contention[0].workers if run.contention else 0
    told = [found for found in run.contention if found.cpu_ratio or found.beyond_cores]
    if not told:
        return None
    most = told[-1]
    beside = f"with {numbers.count(most.workers, 'worker')} beside {least}"
    said = [f"a sample takes {_times(most.cpu_ratio).text} the CPU time"] if most.cpu_ratio else []
    said += [f"worker time is {_beyond(most.beyond_cores)}"] if most.beyond_cores else []
    return Fact("Contention", Text(f"{beside} {', '.join(said)}"))


def _row(found: Contention) -> Row:
    why = found.not_measured
    cells: list[Text] = [Value(str(found.workers), sort=found.workers)]
    for cost, ratio in (("cpu_s_per_sample", "cpu_ratio"), ("wall_s_per_sample", "wall_ratio")):
        value: Interval | None = getattr(found, cost)
        cells.append(numbers.interval(numbers.scaled(value, 1e3) if value else None, why.get(cost)))
        cells.append(_times(getattr(found, ratio), why.get(ratio)))
    return Row((*cells, _times(found.beyond_cores, why.get("beyond_cores"))))


def _times(ratio: Interval | None, reason: str | None = None) -> Value:
    return numbers.interval(ratio, reason, numbers.TIMES)


def _beyond(ratio: Interval) -> str:
    """Only what lies wholly above 1 is beyond; a single round decides nothing."""
    shown = _times(ratio).text
    if ratio.lo is None or ratio.hi is None:
        return f"{shown} what that and the cores explain"
    if ratio.lo > 1:
        return f"{shown} what that and the cores explain: a lock, the GIL or a disk is shared"
    return f"no more than that and the cores explain ({shown})"
