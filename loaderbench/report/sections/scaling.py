"""The scaling curves: samples/s by number of workers, a line for each batch size, and the target or the ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loaderbench.consumers import consumer_kind
from loaderbench.records import Config, Configuration, Interval, RunRecord, Scalar, config_label
from loaderbench.report import axes, metrics, numbers, style, words
from loaderbench.report.model import Chart, Column, Json, Row, Section, Table, Text, data_table
from loaderbench.report.view import View

_MOST_CURVES = 8  # more lines cannot be distinguished; the table below the heat map has all of them
_MARGIN = 1.08  # space above the highest interval, for the name of the level
_MOST_ABOVE = 1.6  # limit on the axis relative to the highest estimate or level: intervals can be several times that


def section(view: View) -> Section | None:
    """The chart, or `None` unless an axis has two measured values."""
    run = view.run
    chosen = None if view.profile else axes.choose(run)
    if chosen is None:
        return None
    fixed = _fixed(run, chosen)
    shown = [c for c in run.configurations if c.samples_per_s and axes.holds(c.config, fixed)]
    if len({axes.key(c.config.get(chosen.across)) for c in shown}) < 2:
        return None
    lines = _lines(run, chosen, shown)
    table = _table(run, chosen, [c for _, line in lines for c in line])
    blocks = (_chart(run, chosen, fixed, lines), data_table(table))
    return Section(id="scaling", title="Scaling", label="Scaling", blocks=blocks)


Lines = Sequence[tuple[str, Sequence[Configuration]]]


def _chart(run: RunRecord, chosen: axes.Axes, fixed: Config, lines: Lines) -> Chart:
    """Lines with error bars, and the level to compare them with."""
    drawn = [c.samples_per_s for _, line in lines[:_MOST_CURVES] for c in line if c.samples_per_s]
    top = _top(run, drawn)
    x_axis = words.plain(chosen.across, words.NAME_LIMIT)
    places, axis = _x_axis(run, chosen.across)
    traces = [_trace(i, name, line, chosen.across, places) for i, (name, line) in enumerate(lines[:_MOST_CURVES])]

    def layout(theme: str) -> Json:
        return {
            "margin": {"l": 64, "r": 16, "t": 16, "b": 56},
            "xaxis": {"title": style.axis_title(x_axis), **style.axis(theme), **axis},
            "yaxis": {"title": style.axis_title("samples/s"), "range": [0, top], **style.axis(theme)},
            "showlegend": len(traces) > 1,
            "legend": style.LEGEND,
            **_level(run, theme),
        }

    return Chart(
        name="scaling",
        label=f"Samples/s vs {x_axis}",
        caption=" ".join([_caption(run, fixed, len(lines)), *_cut_off(drawn, top)]),
        figures=(style.figure(traces, layout, 420),),
    )


def _x_axis(run: RunRecord, across: str) -> tuple[Mapping[axes.Key, float], Json]:
    """Positions of the values, and the ticks. Values that are not numbers have positions 0, 1, 2 and so on."""
    values = axes.axis_values(run)[across]
    numeric = all(axes.is_number(value) for value in values)
    places = {axes.key(value): float(value or 0) if numeric else float(i) for i, value in enumerate(values)}
    axis: Json = {"tickmode": "array", "tickvals": list(places.values())}
    if not numeric:
        labels = [style.safe(words.axis_value(axes.value_text(run, across, value), 24).text) for value in values]
        axis |= {"ticktext": labels, "range": [-0.5, len(places) - 0.5]}
    return places, axis


def _trace(i: int, name: str, line: Sequence[Configuration], across: str, places: Mapping[axes.Key, float]) -> Json:
    points = [(c, c.samples_per_s) for c in line if c.samples_per_s is not None]
    trace: Json = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": style.safe(name),
        "x": [places[axes.key(c.config.get(across))] for c, _ in points],
        "y": [found.est for _, found in points],
        "text": [style.safe(_hover(c, found)) for c, found in points],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"dash": style.DASHES[i % len(style.DASHES)], "width": 2},
        "marker": {"symbol": style.SYMBOLS[i % len(style.SYMBOLS)], "size": 9},
    }
    above = [None if found.hi is None else max(found.hi - found.est, 0) for _, found in points]
    if any(length is not None for length in above):
        below = [None if found.lo is None else max(found.est - found.lo, 0) for _, found in points]
        ends = {"array": above, "arrayminus": below}
        trace["error_y"] = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 5, **ends}
    return trace


def _level(run: RunRecord, theme: str) -> Json:
    """The dashed level with its name above it at the left, on an opaque background to stay readable."""
    if run.ceiling is None:
        return {}
    level, color = run.ceiling.samples_per_s, style.MUTED[theme]
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level}
    label = {"xref": "paper", "x": 0, "xanchor": "left", "y": level, "yanchor": "bottom", "showarrow": False}
    name = style.safe(f"{_level_name(run)} {numbers.quantity(level).text}")
    label |= {"text": name, "bgcolor": style.PAGE[theme], "borderpad": 1, "yshift": 2}
    return {
        "shapes": [{**line, "line": {"dash": "dash", "width": 1.5, "color": color}}],
        "annotations": [{**label, "font": {"color": color}}],
    }


def _fixed(run: RunRecord, chosen: axes.Axes) -> Config:
    """The values of the other axes, from the best configuration's facet."""
    config = run.best.config if run.best else next((c.config for c in run.configurations if c.samples_per_s), {})
    return {axis: config[axis] for axis in chosen.others if axis in config}


def _lines(run: RunRecord, chosen: axes.Axes, shown: Sequence[Configuration]) -> Lines:
    order = {axes.key(v): i for i, v in enumerate(axes.axis_values(run)[chosen.across])}
    if chosen.down is None:
        named = [("samples/s", list(shown))]
    else:
        values = axes.axis_values(run)[chosen.down]
        named = [
            (_name(run, chosen.down, v), [c for c in shown if axes.holds(c.config, {chosen.down: v})]) for v in values
        ]
    return [(n, sorted(line, key=lambda c: order[axes.key(c.config.get(chosen.across))])) for n, line in named if line]


def _name(run: RunRecord, axis: str, value: Scalar) -> str:
    return words.plain(f"{axis} {axes.value_text(run, axis, value)}", 40)


def _hover(configuration: Configuration, interval: Interval) -> str:
    return f"{words.configuration(configuration.config).text}: {metrics.rate(numbers.interval(interval))}"


def _top(run: RunRecord, drawn: Sequence[Interval]) -> float:
    """The end of the samples/s axis: above all intervals, unless a very wide one would flatten the curves."""
    highest = max([found.est for found in drawn] + ([run.ceiling.samples_per_s] if run.ceiling else []))
    reach = max([highest] + [found.hi for found in drawn if found.hi is not None])
    return min(_MARGIN * reach, _MOST_ABOVE * highest) or 1.0


def _cut_off(drawn: Sequence[Interval], top: float) -> list[str]:
    beyond = sum(found.hi is not None and found.hi > top for found in drawn)
    if not beyond:
        return []
    reach = "interval exceeds" if beyond == 1 else "intervals exceed"
    return [f"{beyond} {reach} the chart; see the table."]


def _level_name(run: RunRecord) -> str:
    """The name of the level: a target for an emulated GPU, or the measured ceiling for a real consumer."""
    return "target" if consumer_kind(run.consumer).capped else "ceiling"


def _caption(run: RunRecord, fixed: Config, lines: int) -> str:
    sentences = [
        "Error bars: 95% intervals over rounds." if _has_intervals(run) else "One round: no intervals (n = 1)."
    ]
    if fixed:
        sentences.append(f"Fixed as in the best config: {words.plain(config_label(fixed), words.LABEL_LIMIT)}.")
    if run.ceiling:
        name = _level_name(run)
        sentences.append(f"Dashed: {name if name == 'target' else f'{name} ({words.plain(run.ceiling.basis, 200)})'}.")
    if lines > _MOST_CURVES:
        sentences.append(f"{_MOST_CURVES} of {lines} lines shown; the table has all.")
    return " ".join(sentences)


def _has_intervals(run: RunRecord) -> bool:
    return any(c.samples_per_s and c.samples_per_s.lo is not None for c in run.configurations)


def _table(run: RunRecord, chosen: axes.Axes, points: Sequence[Configuration]) -> Table:
    names = [chosen.down, chosen.across] if chosen.down else [chosen.across]
    columns = (*(Column(words.plain(name, words.NAME_LIMIT), numeric=True) for name in (*names, "samples/s")),)
    rows = tuple(Row((*_values(run, found, names), numbers.interval(found.samples_per_s))) for found in points)
    return Table("Samples/s by config", columns, rows)


def _values(run: RunRecord, configuration: Configuration, names: Sequence[str]) -> list[Text]:
    return [words.name(axes.value_text(run, name, configuration.config.get(name))) for name in names]
