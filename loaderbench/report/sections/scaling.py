"""The scaling curves: samples/s by number of workers, a line for each batch size, and the target or the ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loaderbench.consumers import consumer_kind, demand_of
from loaderbench.ranks import process_count
from loaderbench.records import Config, Configuration, Interval, RunRecord, Scalar, config_label
from loaderbench.report import axes, metrics, numbers, style, words
from loaderbench.report.model import Chart, Column, Json, Row, Section, Table, Text, data_table
from loaderbench.report.view import View
from loaderbench.statistics.target_rate import target_rate

_MOST_CURVES = 8  # more lines cannot be distinguished; the table below the heat map has all of them
_MARGIN = 1.08  # space above the highest interval, for the name of the level
_MOST_ABOVE = 1.6  # limit on the axis relative to the highest estimate or level: intervals can be several times that
_GRAY = "rgba(128,128,128,0.9)"


@dataclass(frozen=True)
class Level:
    """The rates to compare with, by value of the horizontal axis: a `target` of an emulated GPU, or a `ceiling`."""

    name: str
    rates: Mapping[axes.Key, float]

    @property
    def constant(self) -> float | None:
        """The rate, if it is the same everywhere."""
        return next(iter(self.rates.values())) if len(set(self.rates.values())) == 1 else None


def section(view: View) -> Section | None:
    """The chart, or `None` unless an axis has two measured values."""
    run = view.run
    chosen = None if view.profile else axes.choose(run)
    if chosen is None:
        return None
    fixed = _fixed(run, chosen)
    shown = [c for c in run.configurations if c.samples_per_s and axes.holds(c.config, _with_effect(run, c, fixed))]
    if len({axes.key(c.config.get(chosen.across)) for c in shown}) < 2:
        return None
    lines, level = _lines(run, chosen, shown), _level(run, chosen, shown)
    table = _table(run, chosen, list({id(c): c for _, line in lines for c in line}.values()), level)
    blocks = (_chart(run, chosen, fixed, lines, level), data_table(table))
    return Section(id="scaling", title="Scaling", label="Scaling", blocks=blocks)


Lines = Sequence[tuple[str, Sequence[Configuration]]]


def _chart(run: RunRecord, chosen: axes.Axes, fixed: Config, lines: Lines, level: Level | None) -> Chart:
    """Lines with error bars, and the level to compare them with."""
    drawn = [c.samples_per_s for _, line in lines[:_MOST_CURVES] for c in line if c.samples_per_s]
    top = _top(drawn, level)
    x_axis = words.plain(chosen.across, words.NAME_LIMIT)
    places, axis = _x_axis(run, chosen.across)
    traces = [_trace(i, name, line, chosen.across, places) for i, (name, line) in enumerate(lines[:_MOST_CURVES])]
    traces += [_trace_of_level(level, places)] if level and level.constant is None else []

    def layout(theme: str) -> Json:
        return {
            "margin": {"l": 64, "r": 16, "t": 16, "b": 56},
            "xaxis": {"title": style.axis_title(x_axis), **style.axis(theme), **axis},
            "yaxis": {"title": style.axis_title("samples/s"), "range": [0, top], **style.axis(theme)},
            "showlegend": len(traces) > 1,
            "legend": style.LEGEND,
            **_drawn_level(level, theme),
        }

    return Chart(
        name="scaling",
        label=f"Samples/s vs {x_axis}",
        caption=" ".join([_caption(run, fixed, len(lines), level), *_cut_off(drawn, top)]),
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


def _level(run: RunRecord, chosen: axes.Axes, shown: Sequence[Configuration]) -> Level | None:
    """The level; `None` if configurations with the same horizontal position have different ones.

    A target belongs to a number of ranks and a batch size. A measured ceiling is that of one number of ranks.
    """
    places = [axes.key(c.config.get(chosen.across)) for c in shown]
    if _has_target(run):
        targets = {(place, target_rate(run, c.config) or 0.0) for place, c in zip(places, shown, strict=True)}
        return Level("target", dict(targets)) if len(dict(targets)) == len(targets) else None
    if run.ceiling is None or len({process_count(c.config) for c in shown}) > 1:
        return None
    return Level("ceiling", dict.fromkeys(places, run.ceiling.samples_per_s))


def _has_target(run: RunRecord) -> bool:
    """Whether an emulated GPU took the samples at a known rate."""
    return run.ceiling is not None and consumer_kind(run.consumer).capped and demand_of(run) is not None


def _trace_of_level(level: Level, places: Mapping[axes.Key, float]) -> Json:
    """A level that differs along the horizontal axis, as a dashed line."""
    points = sorted((places[place], rate) for place, rate in level.rates.items())
    return {
        "type": "scatter",
        "mode": "lines",
        "name": level.name,
        "x": [x for x, _ in points],
        "y": [rate for _, rate in points],
        "text": [style.safe(f"{level.name}: {numbers.quantity(rate).text} samples/s") for _, rate in points],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"dash": "dash", "width": 1.5, "color": _GRAY},
    }


def _drawn_level(found: Level | None, theme: str) -> Json:
    """The dashed level with its name above it at the left, on an opaque background to stay readable."""
    level, color = found.constant if found else None, style.MUTED[theme]
    if found is None or level is None:
        return {}
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level}
    label = {"xref": "paper", "x": 0, "xanchor": "left", "y": level, "yanchor": "bottom", "showarrow": False}
    name = style.safe(f"{found.name} {numbers.quantity(level).text}")
    label |= {"text": name, "bgcolor": style.PAGE[theme], "borderpad": 1, "yshift": 2}
    return {
        "shapes": [{**line, "line": {"dash": "dash", "width": 1.5, "color": color}}],
        "annotations": [{**label, "font": {"color": color}}],
    }


def _fixed(run: RunRecord, chosen: axes.Axes) -> Config:
    """The values of the other axes, from the best configuration's facet.

    If it has no workers, arguments of workers have the values of the fastest configuration that is otherwise equal.
    """
    measured = sorted((c for c in run.configurations if c.samples_per_s), key=lambda c: (c.rank is None, c.rank or 0))
    config = run.best.config if run.best else next((c.config for c in run.configurations if c.samples_per_s), {})
    fixed = {axis: config[axis] for axis in chosen.others if axis in config}
    unset = axes.without_effect(run, config) & fixed.keys()
    own = {axis: value for axis, value in fixed.items() if axis not in unset}
    with_workers = (c.config for c in measured if axes.holds(c.config, own) and not axes.without_workers(c.config))
    return fixed | {axis: other.get(axis) for other in list(with_workers)[:1] for axis in unset}


def _with_effect(run: RunRecord, configuration: Configuration, values: Config) -> Config:
    """The values without those of axes that have no effect in this configuration."""
    ignored = axes.without_effect(run, configuration.config)
    return {axis: value for axis, value in values.items() if axis not in ignored}


def _lines(run: RunRecord, chosen: axes.Axes, shown: Sequence[Configuration]) -> Lines:
    """The configurations of each line. One without workers is in the lines of all values of an argument of workers."""
    order = {axes.key(v): i for i, v in enumerate(axes.axis_values(run)[chosen.across])}
    if chosen.down is None:
        named = [("samples/s", list(shown))]
    else:
        values = axes.axis_values(run)[chosen.down]
        down, varied = chosen.down, [c for c in shown if chosen.down not in axes.without_effect(run, c.config)]
        own = {axes.key(c.config.get(down)) for c in varied or shown}
        named = [(_name(run, down, v), _with_value(run, down, v, shown)) for v in values if axes.key(v) in own]
    return [(n, sorted(line, key=lambda c: order[axes.key(c.config.get(chosen.across))])) for n, line in named if line]


def _with_value(run: RunRecord, axis: str, value: Scalar, shown: Sequence[Configuration]) -> list[Configuration]:
    """The configurations with this value, or for which the axis has no effect."""
    return [c for c in shown if axes.holds(c.config, _with_effect(run, c, {axis: value}))]


def _name(run: RunRecord, axis: str, value: Scalar) -> str:
    return words.plain(f"{axis} {axes.value_text(run, axis, value)}", 40)


def _hover(configuration: Configuration, interval: Interval) -> str:
    return f"{words.configuration(configuration.config).text}: {metrics.rate(numbers.interval(interval))}"


def _top(drawn: Sequence[Interval], level: Level | None) -> float:
    """The end of the samples/s axis: above all intervals, unless a very wide one would flatten the curves."""
    highest = max([*(found.est for found in drawn), *(level.rates.values() if level else ())])
    reach = max([highest] + [found.hi for found in drawn if found.hi is not None])
    return min(_MARGIN * reach, _MOST_ABOVE * highest) or 1.0


def _cut_off(drawn: Sequence[Interval], top: float) -> list[str]:
    beyond = sum(found.hi is not None and found.hi > top for found in drawn)
    if not beyond:
        return []
    reach = "interval exceeds" if beyond == 1 else "intervals exceed"
    return [f"{beyond} {reach} the chart; see the table."]


def _caption(run: RunRecord, fixed: Config, lines: int, level: Level | None) -> str:
    sentences = [
        "Error bars: 95% intervals over rounds." if _has_intervals(run) else "One round: no intervals (n = 1)."
    ]
    if fixed:
        of_best = " as in the best config" if run.best and axes.holds(run.best.config, fixed) else ""
        sentences.append(f"Fixed{of_best}: {words.plain(config_label(fixed), words.LABEL_LIMIT)}.")
    if level:
        basis = f" ({words.plain(run.ceiling.basis, 200)})" if run.ceiling and level.name == "ceiling" else ""
        sentences.append(f"Dashed: {level.name}{basis}.")
    elif _has_target(run):
        sentences.append("Targets differ between lines; see the table.")
    if lines > _MOST_CURVES:
        sentences.append(f"{_MOST_CURVES} of {lines} lines shown; the table has all.")
    return " ".join(sentences)


def _has_intervals(run: RunRecord) -> bool:
    return any(c.samples_per_s and c.samples_per_s.lo is not None for c in run.configurations)


def _table(run: RunRecord, chosen: axes.Axes, points: Sequence[Configuration], level: Level | None) -> Table:
    """The points of the lines, with their targets if these differ."""
    names = [chosen.down, chosen.across] if chosen.down else [chosen.across]
    differ = _has_target(run) and (level is None or level.constant is None)
    labels = (*names, "samples/s", *(["target"] if differ else []))
    columns = tuple(Column(words.plain(name, words.NAME_LIMIT), numeric=True) for name in labels)
    rows = tuple(
        Row(
            (
                *_values(run, found, names),
                numbers.interval(found.samples_per_s),
                *([numbers.quantity(target_rate(run, found.config))] if differ else []),
            )
        )
        for found in points
    )
    return Table("Samples/s by config", columns, rows)


def _values(run: RunRecord, configuration: Configuration, names: Sequence[str]) -> list[Text]:
    return [words.name(axes.value_text(run, name, configuration.config.get(name))) for name in names]
