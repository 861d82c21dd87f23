"""The heat map and its cells: measured, failed and missing configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loaderbench.records import Config, Configuration, Trial
from loaderbench.records.metrics import Metric
from loaderbench.report import axes, metrics, numbers, words
from loaderbench.report.model import Block, Fact, Link, Section, Text
from loaderbench.report.view import View, failures_in_words, trials_of

CellState = Literal["measured", "failed", "not_measured", "not_run", "not_planned"]

_STATES = {
    "failed": "failed",
    "not_measured": numbers.NOT_MEASURED,
    "not_run": numbers.NOT_RUN,
    "not_planned": "\u2013",
}
REPEATED = "same measurement as in the first panel"
"""Without workers, torch rejects some axes. One measurement then counts for all their values."""


@dataclass(frozen=True)
class CellReading:
    """The content of a cell for one metric.

    `place` is its position on the color scale, 0 to 1, or `None` for no color.
    """

    metric: str
    text: str
    place: float | None


@dataclass(frozen=True, kw_only=True)
class HeatCell:
    """One configuration on the heat map."""

    state: CellState
    readings: tuple[CellReading, ...]
    title: str
    best: bool = False
    tied: bool = False
    remark: str = ""
    anchor: str | None = None
    choice: int | None = None


@dataclass(frozen=True)
class HeatRow:
    """The configurations of one value of the vertical axis."""

    label: Text
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True)
class Facet:
    """One table of the heat map, for one combination of all axes but the two that span it."""

    title: Text | None
    rows: tuple[HeatRow, ...]


@dataclass(frozen=True)
class HeatMetric:
    """One choice of the metric selector, with the ends of its color scale."""

    id: str
    label: str
    low: str
    high: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A selectable configuration, and what the report shows when it is selected. `number` is its index in the run.

    `inside` are the sections about it, or `missing` says why there are none.
    """

    number: int
    label: Text
    role: str
    facts: tuple[Fact, ...]
    trials: tuple[Link, ...]
    inside: tuple[Section, ...]
    missing: Text | None


@dataclass(frozen=True, kw_only=True)
class HeatMap(Block):
    """The configurations by two axes. `y_axis` is `None` if only one axis was swept.

    `shown` is the choice selected initially.
    """

    template = "heat_map.html"
    x_axis: Text
    y_axis: Text | None
    x_labels: tuple[Text, ...]
    metrics: tuple[HeatMetric, ...]
    facets: tuple[Facet, ...]
    legend: tuple[str, ...]
    choices: tuple[Choice, ...]
    shown: Choice | None


@dataclass(frozen=True)
class ColorScale:
    """The range of a metric over the complete sweep: all facets share its colors."""

    metric: Metric
    low: float
    high: float

    def place(self, value: float | None) -> float | None:
        """The position of a value on the scale, 0 to 1."""
        if value is None:
            return None
        return 0.5 if self.high == self.low else round((value - self.low) / (self.high - self.low), 3)


class Cells:
    """Draws the cell for a combination of values. Axes that do not vary need not be given."""

    def __init__(self, view: View, scales: Sequence[ColorScale]) -> None:
        self._view, self._scales, self.run = view, scales, view.run
        run = view.run
        self._choices = {id(run.configurations[number]): number for number in view.choices}
        self._axes = [axis for axis, values in axes.axis_values(run).items() if len(values) > 1]
        self._by_values = {axes.combination(c.config, self._axes): c for c in reversed(run.configurations)}

    def cell(self, wanted: Config, in_first_panel: Config | None = None) -> HeatCell:
        """The cell of the configuration with the `wanted` values, with a remark if the first panel already shows it."""
        configuration = self._find(wanted)
        if configuration is None:
            state: CellState = "not_planned" if self.run.complete else "not_run"
            why = "not planned" if self.run.complete else "not run: the run was interrupted"
            return self._drawn(state, None, f"{words.configuration(wanted).text}: {why}")
        trials = trials_of(configuration, self._view.trials)
        title = self._say(configuration, trials)
        if in_first_panel is not None and self._find(in_first_panel) is configuration:
            title = f"{title}; {REPEATED}"
        return self._drawn(self._state(configuration, trials), configuration, title, trials)

    def _find(self, wanted: Config) -> Configuration | None:
        """The configuration with these values. Without workers, the axes that torch then rejects are ignored."""
        configuration, ignored = self._first_with(wanted), axes.without_effect(self.run, wanted)
        if configuration is None and ignored:
            configuration = self._first_with({axis: value for axis, value in wanted.items() if axis not in ignored})
        return configuration

    def _first_with(self, wanted: Config) -> Configuration | None:
        if wanted.keys() == set(self._axes):
            return self._by_values.get(axes.combination(wanted, self._axes))
        return next((c for c in self.run.configurations if axes.holds(c.config, wanted)), None)

    def _state(self, configuration: Configuration, trials: Sequence[Trial]) -> CellState:
        if configuration.samples_per_s is not None:
            return "measured"
        if any(trial.status != "completed" for trial in trials):
            return "failed"
        return "not_measured" if self.run.complete or trials else "not_run"

    def _say(self, configuration: Configuration, trials: Sequence[Trial]) -> str:
        rate = metrics.rate(metrics.of_configuration(metrics.SAMPLES, configuration, self.run.environment))
        reached = rate if configuration.samples_per_s else _STATES[self._state(configuration, trials)]
        text = f"{words.configuration(configuration.config).text}: {reached}"
        return "; ".join([text, *failures_in_words(trials)])

    def _drawn(
        self, state: CellState, configuration: Configuration | None, title: str, trials: Sequence[Trial] = ()
    ) -> HeatCell:
        mark = self._view.mark(configuration) if configuration else ""
        failed = sum(trial.status != "completed" for trial in trials)
        return HeatCell(
            state=state,
            readings=tuple(_reading(scale, configuration, state) for scale in self._scales),
            title=title,
            best=mark == "best",
            tied=mark == "tied",
            remark=f"{failed} failed" if failed and state == "measured" else "",
            anchor=next((self._view.anchors[t.id] for t in trials if t.id in self._view.anchors), None),
            choice=self._choices.get(id(configuration)),
        )


def _reading(scale: ColorScale, configuration: Configuration | None, state: CellState) -> CellReading:
    if state != "measured" or configuration is None:
        return CellReading(scale.metric.id, _STATES.get(state, numbers.NOT_MEASURED), None)
    text = metrics.short(scale.metric, configuration) or numbers.NOT_MEASURED
    return CellReading(scale.metric.id, text, scale.place(metrics.estimate(scale.metric, configuration)))
