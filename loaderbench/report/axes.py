"""The axes of a sweep: the two that span the heat map, the order of their values, and the columns of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.loaders.torch_loader import NEEDS_WORKERS
from loaderbench.ranks import RANKS
from loaderbench.records import Config, RunRecord, Scalar, format_scalar, varying
from loaderbench.report import words
from loaderbench.report.model import Column, Text, Value

_FIRST, _ACROSS, _DOWN = RANKS, "num_workers", "batch_size"
NO_EFFECT = "\u2013"
_MOST_COLUMNS = 6  # axes with separate columns in a table; more share one column
Key = tuple[str, Scalar]
"""A value with its type, because `True == 1 == 1.0`."""


@dataclass(frozen=True)
class Axes:
    """The horizontal axis, the vertical one (`None` if only one axis varies), and the others that vary."""

    across: str
    down: str | None
    others: tuple[str, ...]


def key(value: Scalar) -> Key:
    """The value with its type. In Python, `True == 1`, but a sweep distinguishes them."""
    return type(value).__name__, value


def choose(run: RunRecord) -> Axes | None:
    """Choose the axes of the heat map: workers across and batch sizes down.

    If one of these does not vary, the axis with the most values replaces it. If the number of ranks varies, ranks are
    across and workers down.
    """
    varied = {axis: len(values) for axis, values in axis_values(run).items() if len(values) > 1}
    if not varied:
        return None
    rest = sorted((a for a in varied if a not in (_FIRST, _ACROSS, _DOWN)), key=lambda a: -varied[a])
    ordered = [axis for axis in (_FIRST, _ACROSS, _DOWN) if axis in varied] + rest
    across, down = ordered[0], ordered[1] if len(ordered) > 1 else None
    if across == _DOWN and down is not None:
        across, down = down, across
    return Axes(across, down, tuple(ordered[2:]))


def axis_values(run: RunRecord) -> dict[str, list[Scalar]]:
    """Every axis with its planned or measured values, in order."""
    values_by_axis: dict[str, dict[Key, Scalar]] = {}
    for axis, planned in run.plan.axes.items():
        values_by_axis.setdefault(axis, {}).update({key(value): value for value in planned})
    for configuration in run.configurations:
        for axis, value in configuration.config.items():
            values_by_axis.setdefault(axis, {}).setdefault(key(value), value)
    return {axis: ordered(list(values.values())) for axis, values in values_by_axis.items()}


def fixed(run: RunRecord) -> Config:
    """The axes with only one value."""
    return {axis: values[0] for axis, values in axis_values(run).items() if len(values) == 1}


def ordered(values: Sequence[Scalar]) -> list[Scalar]:
    """Numbers by size. Other values keep their order, with `null` last."""
    if all(is_number(value) for value in values):
        return sorted(values, key=lambda value: float(value or 0))
    return sorted(values, key=lambda value: value is None)


def is_number(value: Scalar) -> bool:
    """Whether the value is a number and not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(one: Config, other: Config) -> bool:
    """Whether two configurations are equal in all values and their types."""
    return one.keys() == other.keys() and all(key(one[axis]) == key(other[axis]) for axis in one)


def holds(config: Config, wanted: Config) -> bool:
    """Whether a configuration has all wanted values, with their types. A missing axis has the value `None`."""
    return all(key(config.get(axis)) == key(value) for axis, value in wanted.items())


def without_workers(config: Config) -> bool:
    """Whether the main process loads the data. In that case, torch rejects arguments that apply only to workers."""
    return key(config.get("num_workers")) == key(0)


def without_effect(run: RunRecord, config: Config) -> frozenset[str]:
    """The axes that were not varied for this configuration, because torch rejects them without workers."""
    return frozenset(NEEDS_WORKERS.keys() & run.plan.collapsed.keys()) if without_workers(config) else frozenset()


def label(run: RunRecord, config: Config) -> Text:
    """A configuration by the axes that vary, or by all axes if none does."""
    return words.configuration(varying(config, run.plan.axes) or config)


def combination(config: Config, names: Sequence[str]) -> tuple[Key, ...]:
    """The values of some axes, as a hashable key."""
    return tuple(key(config.get(name)) for name in names)


def columns(run: RunRecord) -> list[str]:
    """The axes with a separate column in a table: those that vary, unless there are too many."""
    varied = [axis for axis, values in axis_values(run).items() if len(values) > 1]
    return varied if len(varied) <= _MOST_COLUMNS else []


def headings(names: Sequence[str]) -> tuple[Column, ...]:
    """The columns that name a configuration: one for each axis, or one for the complete configuration."""
    shown = [words.outside(axis, 30) for axis in names]
    return tuple(Column(heading.text, numeric=True, title=heading.title) for heading in shown) or (Column("Config"),)


def cells(run: RunRecord, config: Config, names: Sequence[str]) -> tuple[Text, ...]:
    """The cells below `headings`."""
    return tuple(_cell(run, config, axis) for axis in names) or (words.configuration(config),)


def value_text(run: RunRecord, axis: str, value: Scalar) -> str:
    """A value for a table or a chart.

    A dash means that the axis has no effect, such as `num_workers` with another loader.
    """
    has_effect = value is not None or None in run.plan.axes.get(axis, [None])
    return format_scalar(value) if has_effect else NO_EFFECT


def _cell(run: RunRecord, config: Config, axis: str) -> Text:
    """The value of an axis. A number sorts as a number."""
    value = config.get(axis)
    shown = words.axis_value(value_text(run, axis, value) if axis in config else NO_EFFECT, 40)
    return Value(shown.text, shown.title, sort=float(value)) if isinstance(value, (int, float)) else shown
