"""Throughput vs resources: samples/s over GPU memory, host memory and CPUs, with the Pareto frontier of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loaderbench.records import Configuration
from loaderbench.report import axes, metrics, numbers, style, tables
from loaderbench.report.model import Chart, Column, Columns, Json, Paragraph, Row, Section, Table, Text, data_table
from loaderbench.report.view import View

_MOST_ROWS = 20
_LINE_COLOR, _BEST_COLOR = ({theme: style.LINES[theme][i] for theme in style.THEMES} for i in (0, 1))
_CAPTION = (
    "One point per config. On the Pareto frontier, no other config has more samples/s with the same or less of the "
    "resource. Points are estimates; nearby points may be tied."
)


@dataclass(frozen=True)
class CostPoint:
    """A configuration by its use of a resource (`x`, in the unit of the axis) and its rate (`y`, samples/s)."""

    x: float
    y: float
    hover: str
    on_line: bool
    best: bool


def _figure(x_axis: str, points: Sequence[CostPoint]) -> Json:
    """The Pareto frontier as a line, and all other configurations as points."""
    line = [point for point in points if point.on_line]
    beaten = [point for point in points if not point.on_line and not point.best]
    best = [point for point in points if point.best]
    named = [
        (style.MUTED, _trace("dominated", beaten, {"symbol": "circle-open", "size": 8}, "markers")),
        (_LINE_COLOR, _trace("Pareto frontier", line, {"symbol": "circle", "size": 9}, "lines+markers")),
        (_BEST_COLOR, _trace("best", best, {"symbol": "star", "size": 14}, "markers")),
    ]
    drawn = [(color, trace) for color, trace in named if trace["x"]]

    def layout(theme: str) -> Json:
        axis = {"rangemode": "tozero", **style.axis(theme)}
        return {
            "colorway": [color[theme] for color, _ in drawn],
            "margin": {"l": 56, "r": 12, "t": 30, "b": 48},
            "xaxis": {"title": style.axis_title(x_axis), **axis},
            "yaxis": {"title": style.axis_title("samples/s"), **axis},
            "legend": style.LEGEND,
            "showlegend": True,
        }

    return style.figure([trace for _, trace in drawn], layout, 300)


def _trace(name: str, points: list[CostPoint], marker: Json, mode: str) -> Json:
    return {
        "type": "scatter",
        "mode": mode,
        "name": name,
        "x": [point.x for point in points],
        "y": [point.y for point in points],
        "text": [style.safe(point.hover) for point in points],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"shape": "hv", "width": 1.5},
        "marker": marker,
    }


@dataclass(frozen=True)
class _Resource:
    id: str
    axis: str
    taken: Callable[[Configuration, View], float | None]


def _cores(configuration: Configuration, view: View) -> float | None:
    share = configuration.cpu_percent_of_allotted
    return None if share is None else share / 100 * view.run.environment.cpus_allotted


_RESOURCES = (
    _Resource(
        "gpu-memory", metrics.named_with_unit(metrics.GPU_MEMORY), lambda c, _: metrics.estimate(metrics.GPU_MEMORY, c)
    ),
    _Resource(
        "host-memory",
        metrics.named_with_unit(metrics.HOST_MEMORY),
        lambda c, _: metrics.estimate(metrics.HOST_MEMORY, c),
    ),
    _Resource("cores", "CPUs in use", _cores),
)


def section(view: View) -> Section | None:
    """Charts of the resources whose use differs among configurations; `None` if there are none."""
    if view.profile:
        return None
    measured = [c for c in view.run.configurations if c.samples_per_s is not None]
    charts = [(resource, _chart(resource, measured, view)) for resource in _RESOURCES]
    drawn = [(resource, chart) for resource, chart in charts if chart is not None]
    if not drawn:
        return None
    return Section(
        id="cost",
        title="Throughput vs resources",
        label="Resources",
        blocks=(
            Paragraph(Text(_CAPTION), "small"),
            Columns(tuple((chart,) for _, chart in drawn)),
            data_table(_table(view, measured, [resource for resource, _ in drawn])),
        ),
    )


def pareto(taken: Sequence[float], given: Sequence[float]) -> list[int]:
    """Indices of the Pareto frontier, in order of use: each gives more than all others that take as little or less."""
    line: list[int] = []
    for place in sorted(range(len(taken)), key=lambda i: (taken[i], -given[i])):
        if not line or given[place] > given[line[-1]]:
            line.append(place)
    return line


def _chart(resource: _Resource, measured: Sequence[Configuration], view: View) -> Chart | None:
    known = [(c, taken) for c in measured if (taken := resource.taken(c, view)) is not None]
    if len({taken for _, taken in known}) < 2:
        return None
    line = set(_line(resource, measured, view))
    points = [_point(c, taken, view, on_line=id(c) in line, axis=resource.axis) for c, taken in known]
    return Chart(
        name=f"cost-{resource.id}",
        label=f"Samples/s vs {resource.axis}",
        caption="",
        figures=(_figure(resource.axis, sorted(points, key=lambda point: (point.x, point.y))),),
    )


def _line(resource: _Resource, measured: Sequence[Configuration], view: View) -> list[int]:
    known = [
        (c, taken, c.samples_per_s.est)
        for c in measured
        if c.samples_per_s and (taken := resource.taken(c, view)) is not None
    ]
    frontier = pareto([taken for _, taken, _ in known], [rate for _, _, rate in known])
    return [id(known[place][0]) for place in frontier]


def _point(configuration: Configuration, taken: float, view: View, *, on_line: bool, axis: str) -> CostPoint:
    rate = configuration.samples_per_s.est if configuration.samples_per_s else 0.0
    level, label = numbers.number(rate), axes.label(view.run, configuration.config).text
    name, _, unit = axis.partition(", ")
    hover = f"{label}: {level} samples/s, {name} {numbers.with_unit(numbers.number(taken), unit)}"
    return CostPoint(float(f"{taken:.4g}"), float(f"{rate:.5g}"), hover, on_line, view.is_best(configuration))


def _table(view: View, measured: Sequence[Configuration], resources: Sequence[_Resource]) -> Table:
    lines = {resource.id: set(_line(resource, measured, view)) for resource in resources}
    named = axes.columns(view.run)
    columns = (
        *axes.headings(named),
        Column(metrics.SAMPLES.label, numeric=True),
        *(Column(resource.axis, numeric=True) for resource in resources),
        Column("On the frontier of", prose=True),
    )
    unbeaten = [c for c in measured if any(id(c) in line for line in lines.values())]
    unbeaten.sort(key=lambda c: -(c.samples_per_s.est if c.samples_per_s else 0))
    rows = tuple(_row(view, found, named, resources, lines) for found in unbeaten[:_MOST_ROWS])
    note = tables.left_out(len(unbeaten) - len(rows), "on a Pareto frontier")
    return Table("Configs on a Pareto frontier", columns, rows, note)


def _row(
    view: View,
    configuration: Configuration,
    named: Sequence[str],
    resources: Sequence[_Resource],
    lines: Mapping[str, set[int]],
) -> Row:
    taken = (numbers.quantity(resource.taken(configuration, view)) for resource in resources)
    where = ", ".join(r.axis.partition(",")[0] for r in resources if id(configuration) in lines[r.id])
    rate = metrics.of_configuration(metrics.SAMPLES, configuration, view.run.environment)
    cells = (*axes.cells(view.run, configuration.config, named), rate, *taken, Text(where))
    return Row(cells, mark="best" if view.is_best(configuration) else "")
