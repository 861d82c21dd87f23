"""The sweep: the heat map, its selectable configurations, and all configurations, the fastest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.records import Config, Configuration, RunRecord, Scalar, Trial, config_label
from loaderbench.records.metrics import Metric
from loaderbench.records.words import count
from loaderbench.report import axes, metrics, numbers, words
from loaderbench.report.model import Column, Details, Fact, Link, Paragraph, Row, Section, Table, Text
from loaderbench.report.sections import inside
from loaderbench.report.sections.heat_map import (
    Cells,
    Choice,
    ColorScale,
    Facet,
    HeatMap,
    HeatMetric,
    HeatRow,
)
from loaderbench.report.view import MOST_ROWS, View, failures_in_words, trials_of

_ONE_CONFIGURATION = "One config was measured. To find the best one, sweep an axis: -P num_workers=0,2,4"


@dataclass(frozen=True)
class Ranking(Table):
    """The configurations by rank, and why the best one was chosen."""

    why: Text | None = None


def section(view: View) -> Section | None:
    """The heat map with the ranking below it, or a hint on how to measure a sweep."""
    if view.profile:
        return None
    ranking, heat_map = _ranking(view), _heat_map(view)
    by_rank = Details("All configs, fastest first", (ranking,), len(ranking.rows)) if ranking else None
    glance = (ranking,) if ranking else ()
    if heat_map is None:
        hint = (Paragraph(Text(_ONE_CONFIGURATION)),) if len(view.run.configurations) == 1 else ()
        return Section(id="sweep", title="Sweep", blocks=hint, glance=glance, in_markdown=True)
    return Section(
        id="sweep",
        title="Sweep",
        label="Sweep",
        blocks=(Paragraph(Text(_caption(view)), "small"), heat_map, *((by_rank,) if by_rank else ())),
        glance=glance,
        in_markdown=True,
        look="sweep",
    )


def _heat_map(view: View) -> HeatMap | None:
    """The heat map; `None` if no axis varies or nothing was measured."""
    run = view.run
    chosen = axes.choose(run)
    shown = metrics.with_data(metrics.IN_HEAT_MAP, run.configurations, run)
    if chosen is None or not shown:
        return None
    values = axes.axis_values(run)
    scales = [_scale(metric, run.configurations) for metric in shown]
    cells = Cells(view, scales)
    across = values[chosen.across]
    down: list[Scalar] = values[chosen.down] if chosen.down else [None]
    facets = _facets(run, chosen.others)
    choices = tuple(_choice(view, number) for number in view.choices)
    return HeatMap(
        x_axis=words.name(chosen.across),
        y_axis=words.name(chosen.down) if chosen.down else None,
        x_labels=tuple(_label(run, chosen.across, value) for value in across),
        metrics=tuple(_in_selector(scale) for scale in scales),
        facets=tuple(
            Facet(_title(fixed), tuple(_row(chosen, y, across, (fixed, facets[0]), cells) for y in down))
            for fixed in facets
        ),
        legend=_legend(view),
        choices=choices,
        shown=next((choice for choice in choices if choice.number == view.shown), None),
    )


def _scale(metric: Metric, configurations: Sequence[Configuration]) -> ColorScale:
    values = [v for c in configurations if (v := metrics.estimate(metric, c)) is not None]
    return ColorScale(metric, min(values), max(values))


def _in_selector(scale: ColorScale) -> HeatMetric:
    low, high = (numbers.number(end, metrics.SCALES[scale.metric.unit].digits) for end in (scale.low, scale.high))
    return HeatMetric(scale.metric.id, metrics.named_with_unit(scale.metric), low, high)


def _facets(run: RunRecord, others: Sequence[str]) -> list[Config]:
    """Each measured combination of the other axes, in axis order, or one empty combination if there are no other axes.

    A configuration without workers adds no panel if it belongs to another one in all axes that it has.
    """
    if not others:
        return [{}]
    panels: dict[tuple[axes.Key, ...], Config] = {}
    for configuration in sorted(run.configurations, key=lambda c: axes.without_workers(c.config)):
        fixed = {axis: configuration.config[axis] for axis in others if axis in configuration.config}
        ignored = axes.without_effect(run, configuration.config)
        own = {axis: value for axis, value in fixed.items() if axis not in ignored}
        if len(own) < len(fixed) and any(axes.holds(panel, own) for panel in panels.values()):
            continue
        panels.setdefault(axes.combination(configuration.config, others), fixed)
    order = axes.axis_values(run)
    places = {axis: [axes.key(v) for v in order[axis]] for axis in others}
    return sorted(
        panels.values(),
        key=lambda fixed: [places[a].index(axes.key(fixed[a])) if a in fixed else -1 for a in others],
    )


def _title(fixed: Config) -> Text | None:
    return words.configuration(fixed) if fixed else None


def _label(run: RunRecord, axis: str, value: Scalar) -> Text:
    return words.axis_value(axes.value_text(run, axis, value), words.NAME_LIMIT)


def _row(
    chosen: axes.Axes, y: Scalar, across: Sequence[Scalar], panels: tuple[Config, Config], cells: Cells
) -> HeatRow:
    """A row of one panel. `panels` are the fixed values of that panel and of the first one."""
    own: Config = {chosen.down: y} if chosen.down else {}
    label = _label(cells.run, chosen.down, y) if chosen.down else Text("")
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


def _caption(view: View) -> str:
    run = view.run
    rounds = max((len(c.trials) for c in run.configurations), default=0)
    text = f"Each cell is one config: its estimate over {count(rounds, 'round')}"
    fixed = axes.fixed(run)
    text += f". Fixed: {words.plain(config_label(fixed), 200)}." if fixed else "."
    ran = sum(bool(c.trials) for c in run.configurations)
    if 0 < len(view.choices) < ran:
        text += f" The {len(view.choices):,} best of {ran:,} can be selected; the others link to their trials."
    return text


def _legend(view: View) -> tuple[str, ...]:
    """A legend of the signs that this map uses."""
    marks = {view.mark(configuration) for configuration in view.run.configurations}
    failed = any(trial.status != "completed" for trial in view.run.sweep)
    signs = (("best", view.run.best is not None), ("tied", "tied" in marks), ("failed", failed))
    return tuple(sign for sign, is_shown in signs if is_shown)


def _ranking(view: View) -> Ranking | None:
    """All configurations, the fastest first, without empty columns; `None` if none was measured."""
    run = view.run
    if not any(c.samples_per_s for c in run.configurations):
        return None
    shown = metrics.with_data(metrics.OF_CONFIGURATIONS, run.configurations, run)
    names = axes.columns(run)
    columns = (*axes.headings(names), *(Column(m.label, numeric=True, title=m.hint) for m in shown))
    ranked = sorted(enumerate(run.configurations), key=lambda found: (found[1].rank is None, found[1].rank or 0))
    return Ranking(
        "All configs, fastest first",
        columns,
        tuple(_ranked(view, number, names, shown) for number, _ in ranked[:MOST_ROWS]),
        sortable=True,
        choosing=bool(view.choices),
        why=words.sentence(run.best.why_this_one) if run.best else None,
    )


def _ranked(view: View, number: int, names: list[str], shown: Sequence[Metric]) -> Row:
    configuration = view.run.configurations[number]
    values = (metrics.of_configuration(metric, configuration, view.run.environment) for metric in shown)
    choice = number if number in view.choices else None
    cells = (*axes.cells(view.run, configuration.config, names), *values)
    return Row(cells, mark=view.mark(configuration), choice=choice, is_baseline=view.is_baseline(configuration))


def _choice(view: View, number: int) -> Choice:
    configuration = view.run.configurations[number]
    trials = trials_of(configuration, view.trials)
    within = inside.of_configuration(view, number)
    known = metrics.with_data(metrics.OF_CONFIGURATIONS, (configuration,), view.run)
    return Choice(
        number=number,
        label=words.configuration(configuration.config),
        role=inside.role(view, configuration),
        facts=tuple(Fact(m.label, metrics.of_configuration(m, configuration, view.run.environment)) for m in known),
        trials=tuple(Link(words.name(t.id), view.anchors[t.id]) for t in trials if t.id in view.anchors),
        inside=within,
        missing=None if within else _missing(trials),
    )


def _missing(trials: Sequence[Trial]) -> Text:
    """Why nothing is known about the inside of these trials."""
    failures = ", ".join(failures_in_words(trials))
    return words.sentence(f"Stages not measured: {failures}." if failures else "Stages not measured: tracing was off.")
