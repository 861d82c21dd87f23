"""What speed costs: samples/s over accelerator memory, host memory and cores, with what nothing else beats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loaderbench.records import Configuration, RunRecord
from loaderbench.report import axes, numbers, words
from loaderbench.report.parts import Column, Row, Table, Text
from loaderbench.report.parts_charts import CostChart, CostPart, CostPoint
from loaderbench.report.readings import GIB, SAMPLES
from loaderbench.report.trials import axis_column, own_columns, value_cell

_MOST_ROWS = 20
_CAPTION = (
    "Each point is a configuration. On the line are those that nothing beats: no other gives more samples/s and takes "
    "as little or less (the Pareto line). Estimates: neighbours may be within the noise of each other."
)


@dataclass(frozen=True)
class _Resource:
    id: str
    axis: str
    taken: Callable[[Configuration, RunRecord], float | None]


def _gpu_memory(found: Configuration, _: RunRecord) -> float | None:
    return None if found.gpu_memory_used_bytes is None else found.gpu_memory_used_bytes / GIB


def _host_memory(found: Configuration, _: RunRecord) -> float | None:
    return None if found.pss_bytes is None else found.pss_bytes / GIB


def _cores(found: Configuration, run: RunRecord) -> float | None:
    share = found.cpu_percent_of_allotted
    return None if share is None else share / 100 * run.environment.cpus_allotted


_RESOURCES = (
    _Resource("gpu-memory", "GPU memory, GiB", _gpu_memory),
    _Resource("host-memory", "Host memory (PSS), GiB", _host_memory),
    _Resource("cores", "CPU cores in use", _cores),
)


def cost(run: RunRecord) -> CostPart | None:
    """The charts of the resources in which configurations differ; `None` where there are none."""
    measured = [c for c in run.configurations if c.samples_per_s is not None]
    charts = [(resource, _chart(resource, measured, run)) for resource in _RESOURCES]
    drawn = [(resource, chart) for resource, chart in charts if chart is not None]
    if not drawn:
        return None
    return CostPart(tuple(chart for _, chart in drawn), _CAPTION, _table(run, measured, [r for r, _ in drawn]))


def pareto(taken: Sequence[float], given: Sequence[float]) -> list[int]:
    """The places of those that give more than all that take as little or less, in the order of what they take."""
    line: list[int] = []
    for place in sorted(range(len(taken)), key=lambda i: (taken[i], -given[i])):
        if not line or given[place] > given[line[-1]]:
            line.append(place)
    return line


def _chart(resource: _Resource, measured: Sequence[Configuration], run: RunRecord) -> CostChart | None:
    known = [(c, taken) for c in measured if (taken := resource.taken(c, run)) is not None]
    if len({taken for _, taken in known}) < 2:
        return None
    line = set(_line(resource, measured, run))
    points = [_point(c, taken, run, on_line=id(c) in line, axis=resource.axis) for c, taken in known]
    return CostChart(resource.id, resource.axis, tuple(sorted(points, key=lambda point: (point.x, point.y))))


def _line(resource: _Resource, measured: Sequence[Configuration], run: RunRecord) -> list[int]:
    known = [
        (c, taken, c.samples_per_s.est)
        for c in measured
        if c.samples_per_s and (taken := resource.taken(c, run)) is not None
    ]
    found = pareto([taken for _, taken, _ in known], [rate for _, _, rate in known])
    return [id(known[place][0]) for place in found]


def _point(found: Configuration, taken: float, run: RunRecord, *, on_line: bool, axis: str) -> CostPoint:
    rate = found.samples_per_s.est if found.samples_per_s else 0.0
    level, label = numbers.number(rate), axes.label(run, found.config).text
    said = f"{label}: {level} samples/s, {axis}: {numbers.number(taken)}"
    best = run.best is not None and axes.same(run.best.config, found.config)
    return CostPoint(float(f"{taken:.4g}"), float(f"{rate:.5g}"), said, on_line, best)


def _table(run: RunRecord, measured: Sequence[Configuration], resources: Sequence[_Resource]) -> Table:
    lines = {resource.id: set(_line(resource, measured, run)) for resource in resources}
    named = own_columns(run)
    columns = (
        *(axis_column(axis) for axis in named),
        *(() if named else (Column("Configuration"),)),
        Column(SAMPLES.label, numeric=True),
        *(Column(resource.axis, numeric=True) for resource in resources),
        Column("Unbeaten in", prose=True),
    )
    unbeaten = [c for c in measured if any(id(c) in line for line in lines.values())]
    unbeaten.sort(key=lambda c: -(c.samples_per_s.est if c.samples_per_s else 0))
    rows = tuple(_row(run, found, named, resources, lines) for found in unbeaten[:_MOST_ROWS])
    left = len(unbeaten) - len(rows)
    note = f"{numbers.count(left, 'more configuration')} that nothing beats." if left else None
    return Table("Configurations that nothing beats", columns, rows, note)


def _row(
    run: RunRecord,
    found: Configuration,
    named: Sequence[str],
    resources: Sequence[_Resource],
    lines: Mapping[str, set[int]],
) -> Row:
    config = [value_cell(found.config, axis) for axis in named]
    taken = (numbers.quantity(resource.taken(found, run)) for resource in resources)
    where = ", ".join(r.axis.partition(",")[0] for r in resources if id(found) in lines[r.id])
    first = config or [words.configuration(found.config)]
    best = run.best is not None and axes.same(run.best.config, found.config)
    cells = (*first, SAMPLES.read(found, run.environment), *taken, Text(where))
    return Row(cells, mark="best" if best else "")
