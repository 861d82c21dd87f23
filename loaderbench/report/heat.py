"""The heat map: every configuration in its place, with its state, its readings and their places on the colour scale."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from loaderbench.records import Config, Configuration, RunRecord, Scalar, config_label, format_scalar
from loaderbench.report import axes, numbers, words
from loaderbench.report.heat_cells import Cells, Scale, without_workers
from loaderbench.report.parts import Facet, HeatMetric, HeatRow, SweepPart, Text
from loaderbench.report.readings import HEAT_METRICS, SAMPLES, Metric, with_data

ONE_CONFIGURATION = (
    "One configuration was measured. To see where the best one lies, sweep an axis: -P num_workers=0,2,4"
)


def sweep(run: RunRecord, anchors: Mapping[str, str], choosable: Container[int] = ()) -> SweepPart | None:
    """The heat map, or `None` where no axis varies or nothing at all was measured. `choosable`: by number."""
    chosen = axes.choose(run)
    metrics = with_data(HEAT_METRICS, run.configurations)
    if chosen is None or not metrics:
        return None
    values = axes.axis_values(run)
    scales = [_scale(metric, run.configurations) for metric in metrics]
    cells = Cells(run, anchors, scales, choosable)
    across = values[chosen.across]
    down: list[Scalar] = values[chosen.down] if chosen.down else [None]
    facets = _facets(run, chosen.others)
    return SweepPart(
        x_axis=words.name(chosen.across),
        y_axis=words.name(chosen.down) if chosen.down else None,
        x_labels=tuple(words.name(format_scalar(value)) for value in across),
        metrics=tuple(_choice(scale) for scale in scales),
        facets=tuple(
            Facet(_title(fixed), tuple(_row(chosen, y, across, (fixed, facets[0]), cells) for y in down))
            for fixed in facets
        ),
        caption=_caption(run, sum(i in choosable for i in range(len(run.configurations)))),
        legend=_legend(run),
    )


def _scale(metric: Metric, configurations: Sequence[Configuration]) -> Scale:
    found = [v for v in map(metric.estimate, configurations) if v is not None]
    return Scale(metric, min(found), max(found))


def _choice(scale: Scale) -> HeatMetric:
    unit = "" if scale.metric is SAMPLES else f", {scale.metric.unit}"
    digits = scale.metric.digits
    return HeatMetric(
        scale.metric.id,
        scale.metric.label + unit,
        numbers.number(scale.low, digits),
        numbers.number(scale.high, digits),
    )


def _facets(run: RunRecord, others: Sequence[str]) -> list[Config]:
    """Each combination of the other axes that was measured, in the order of the axes; one without any where none is.

    What has no workers opens no panel of its own where the values that torch refuses it were left out of the plan.
    """
    if not others:
        return [{}]
    found: dict[tuple[axes.Key, ...], Config] = {}
    for configuration in sorted(run.configurations, key=lambda c: without_workers(c.config)):
        known = without_workers(configuration.config) and any(axis in run.plan.collapsed for axis in others)
        if known and found:
            continue
        fixed = {axis: configuration.config[axis] for axis in others if axis in configuration.config}
        found.setdefault(axes.combination(configuration.config, others), fixed)
    order = axes.axis_values(run)
    places = {axis: [axes.key(v) for v in order[axis]] for axis in others}
    return sorted(
        found.values(),
        key=lambda fixed: [places[a].index(axes.key(fixed[a])) if a in fixed else -1 for a in others],
    )


def _title(fixed: Config) -> Text | None:
    return words.configuration(fixed) if fixed else None


def _row(
    chosen: axes.Axes, y: Scalar, across: Sequence[Scalar], panels: tuple[Config, Config], cells: Cells
) -> HeatRow:
    """A row of one panel; `panels` are the fixed values of that panel and of the first one."""
    own: Config = {chosen.down: y} if chosen.down else {}
    label = words.name(format_scalar(y)) if chosen.down else Text("")
    fixed, first = panels
    return HeatRow(
        label,
        tuple(
            cells.cell(
                {**own, **fixed, chosen.across: x}, None if fixed is first else {**own, **first, chosen.across: x}
            )
            for x in across
        ),
    )


def _caption(run: RunRecord, choosable: int) -> str:
    rounds = max((len(c.trials) for c in run.configurations), default=0)
    said = f"Each cell is one configuration, its value the estimate over {numbers.count(rounds, 'round')}"
    fixed = axes.fixed(run)
    said += f"; the same everywhere: {words.plain(config_label(fixed), 200)}." if fixed else "."
    ran = sum(bool(c.trials) for c in run.configurations)
    if 0 < choosable < ran:
        said += f" The {choosable:,} best of {ran:,} can be chosen; the others lead to their trials."
    return said


def _legend(run: RunRecord) -> tuple[str, ...]:
    """A key for the signs that are on this map, and for no others."""
    said = []
    if run.best is not None:
        said.append("best")
        if any(c.tied_with_best and not axes.same(c.config, run.best.config) for c in run.configurations):
            said.append("tied")
    if any(trial.status != "completed" for trial in run.sweep):
        said.append("failed")
    return tuple(said)
