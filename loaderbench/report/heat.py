"""The heat map: every configuration in its place, with its state, its readings and their places on the colour scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loaderbench.records import Config, Configuration, RunRecord, Scalar, Trial, config_label, format_scalar
from loaderbench.report import axes, numbers, words
from loaderbench.report.parts import CellReading, CellState, Facet, HeatCell, HeatMetric, HeatRow, SweepPart, Text
from loaderbench.report.readings import HEAT_METRICS, SAMPLES, Metric, with_data

_STATES = {
    "failed": "failed",
    "not_measured": numbers.NOT_MEASURED,
    "not_run": "not run",
    "not_planned": "\u2013",
}
ONE_CONFIGURATION = (
    "One configuration was measured. To see where the best one lies, sweep an axis: -P num_workers=0,2,4"
)


@dataclass(frozen=True)
class _Scale:
    metric: Metric
    low: float
    high: float

    def place(self, value: float | None) -> float | None:
        if value is None:
            return None
        return 0.5 if self.high == self.low else round((value - self.low) / (self.high - self.low), 3)


def sweep(run: RunRecord, anchors: Mapping[str, str]) -> SweepPart | None:
    """The heat map, or `None` where no axis varies or nothing at all was measured."""
    chosen = axes.choose(run)
    metrics = with_data(HEAT_METRICS, run.configurations)
    if chosen is None or not metrics:
        return None
    values = axes.axis_values(run)
    scales = [_scale(metric, run.configurations) for metric in metrics]
    cells = _Cells(run, anchors, scales)
    across = values[chosen.across]
    down: list[Scalar] = values[chosen.down] if chosen.down else [None]
    return SweepPart(
        x_axis=words.name(chosen.across),
        y_axis=words.name(chosen.down) if chosen.down else None,
        x_labels=tuple(words.name(format_scalar(value)) for value in across),
        metrics=tuple(_choice(scale) for scale in scales),
        facets=tuple(
            Facet(_title(fixed), tuple(_row(chosen, x, across, fixed, cells) for x in down))
            for fixed in _facets(run, chosen.others)
        ),
        caption=_caption(run),
        legend=_legend(run),
    )


def _scale(metric: Metric, configurations: Sequence[Configuration]) -> _Scale:
    found = [v for v in map(metric.estimate, configurations) if v is not None]
    return _Scale(metric, min(found), max(found))


def _choice(scale: _Scale) -> HeatMetric:
    unit = "" if scale.metric is SAMPLES else f", {scale.metric.unit}"
    digits = scale.metric.digits
    return HeatMetric(
        scale.metric.id,
        scale.metric.label + unit,
        numbers.number(scale.low, digits),
        numbers.number(scale.high, digits),
    )


def _facets(run: RunRecord, others: Sequence[str]) -> list[Config]:
    """Each combination of the other axes that was measured, in the order of the axes; one without any where none is."""
    if not others:
        return [{}]
    found: dict[tuple[axes.Key, ...], Config] = {}
    with_workers = [c for c in run.configurations if not _without_workers(c.config)]
    for configuration in with_workers or run.configurations:
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


def _row(chosen: axes.Axes, y: Scalar, across: Sequence[Scalar], fixed: Config, cells: _Cells) -> HeatRow:
    own: Config = {chosen.down: y, **fixed} if chosen.down else dict(fixed)
    label = words.name(format_scalar(y)) if chosen.down else Text("")
    return HeatRow(label, tuple(cells.cell({**own, chosen.across: x}) for x in across))


class _Cells:
    """Draws the cell of a combination of values; axes that do not vary need not be named."""

    def __init__(self, run: RunRecord, anchors: Mapping[str, str], scales: Sequence[_Scale]) -> None:
        self._run, self._anchors, self._scales = run, anchors, scales
        self._trials = {trial.id: trial for trial in run.trials}

    def cell(self, wanted: Config) -> HeatCell:
        found = self._find(wanted)
        if found is None:
            state: CellState = "not_planned" if self._run.complete else "not_run"
            why = "not part of the plan" if self._run.complete else "the run was interrupted before it"
            return self._drawn(state, None, f"{words.configuration(wanted).text}: {why}")
        trials = [self._trials[id_] for id_ in found.trials if id_ in self._trials]
        return self._drawn(self._state(found, trials), found, self._say(found, trials), trials)

    def _find(self, wanted: Config) -> Configuration | None:
        """The configuration with these values; without workers, axes that torch then refuses do not tell it apart."""
        found = next((c for c in self._run.configurations if _holds(c.config, wanted)), None)
        if found is None and _without_workers(wanted):
            told = {axis: value for axis, value in wanted.items() if axis not in self._run.plan.collapsed}
            found = next((c for c in self._run.configurations if _holds(c.config, told)), None)
        return found

    def _state(self, found: Configuration, trials: Sequence[Trial]) -> CellState:
        if found.samples_per_s is not None:
            return "measured"
        if any(trial.status != "completed" for trial in trials):
            return "failed"
        return "not_measured" if self._run.complete or trials else "not_run"

    def _say(self, found: Configuration, trials: Sequence[Trial]) -> str:
        said = f"{words.configuration(found.config).text}: {SAMPLES.read(found, self._run.environment).text} samples/s"
        if found.samples_per_s is None:
            said = f"{words.configuration(found.config).text}: {_STATES[self._state(found, trials)]}"
        kinds = Counter(trial.failure.kind if trial.failure else trial.status for trial in _failed(trials))
        return "; ".join([said, *(f"{words.plain(kind, 40)} in {_of(n, trials)}" for kind, n in kinds.items())])

    def _drawn(
        self, state: CellState, found: Configuration | None, title: str, trials: Sequence[Trial] = ()
    ) -> HeatCell:
        best = self._run.best is not None and found is not None and found.config == self._run.best.config
        failed = len(_failed(trials))
        return HeatCell(
            state=state,
            readings=tuple(_reading(scale, found, state) for scale in self._scales),
            title=title,
            best=best,
            tied=found is not None and found.tied_with_best and not best,
            remark=f"{failed} failed" if failed and state == "measured" else "",
            anchor=next((self._anchors[t.id] for t in trials if t.id in self._anchors), None),
        )


def _holds(config: Config, wanted: Config) -> bool:
    return all(axes.key(config.get(axis)) == axes.key(value) for axis, value in wanted.items())


def _without_workers(config: Config) -> bool:
    return axes.key(config.get("num_workers")) == axes.key(0)


def _failed(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.status != "completed"]


def _of(some: int, trials: Sequence[Trial]) -> str:
    return f"{some} of {numbers.count(len(trials), 'trial')}"


def _reading(scale: _Scale, found: Configuration | None, state: CellState) -> CellReading:
    if state != "measured" or found is None:
        return CellReading(scale.metric.id, _STATES.get(state, numbers.NOT_MEASURED), None)
    text = scale.metric.short(found) or numbers.NOT_MEASURED
    return CellReading(scale.metric.id, text, scale.place(scale.metric.estimate(found)))


def _caption(run: RunRecord) -> str:
    rounds = max((len(c.trials) for c in run.configurations), default=0)
    said = f"Each cell is one configuration, its value the estimate over {numbers.count(rounds, 'round')}"
    fixed = axes.fixed(run)
    return said + (f"; the same everywhere: {words.plain(config_label(fixed), 200)}." if fixed else ".")


def _legend(run: RunRecord) -> tuple[str, ...]:
    """A key for the signs that are on this map, and for no others."""
    said = []
    if run.best is not None:
        said.append("best")
    if any(c.tied_with_best and (run.best is None or c.config != run.best.config) for c in run.configurations):
        said.append("tied")
    if any(trial.status != "completed" for trial in run.trials):
        said.append("failed")
    return tuple(said)
