"""The axes of a sweep: which span the heat map, the order of their values, and which are columns of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.ranks import RANKS
from loaderbench.records import Config, RunRecord, Scalar, format_scalar, varying
from loaderbench.report import words
from loaderbench.report.model import Column, Text, Value

_FIRST, _ACROSS, _DOWN = RANKS, "num_workers", "batch_size"
NO_EFFECT = "\u2013"
_MOST_COLUMNS = 6  # of a table; more axes share one
Key = tuple[str, Scalar]
"""A value that is equal only to itself: `True` is not 1, and 1 is not 1.0."""


@dataclass(frozen=True)
class Axes:
    """The axis across, the one down (none when only one axis varies), and the others that vary."""

    across: str
    down: str | None
    others: tuple[str, ...]


def key(value: Scalar) -> Key:
    """The value with its type: Python holds `True == 1` for true, a sweep does not."""
    return type(value).__name__, value


def choose(run: RunRecord) -> Axes | None:
    """Workers across and batch sizes down; where one of them does not vary, the axis with most values instead.

    Where the number of ranks varies, it is across, and workers are down.
    """
    varied = {axis: len(found) for axis, found in axis_values(run).items() if len(found) > 1}
    if not varied:
        return None
    rest = sorted((a for a in varied if a not in (_FIRST, _ACROSS, _DOWN)), key=lambda a: -varied[a])
    ordered = [axis for axis in (_FIRST, _ACROSS, _DOWN) if axis in varied] + rest
    across, down = ordered[0], ordered[1] if len(ordered) > 1 else None
    if across == _DOWN and down is not None:
        across, down = down, across
    return Axes(across, down, tuple(ordered[2:]))


def axis_values(run: RunRecord) -> dict[str, list[Scalar]]:
    """Every axis with the values that were planned or measured, in the order of the axis."""
    found: dict[str, dict[Key, Scalar]] = {}
    for axis, planned in run.plan.axes.items():
        found.setdefault(axis, {}).update({key(value): value for value in planned})
    for configuration in run.configurations:
        for axis, value in configuration.config.items():
            found.setdefault(axis, {}).setdefault(key(value), value)
    return {axis: ordered(list(values.values())) for axis, values in found.items()}


def fixed(run: RunRecord) -> Config:
    """The axes with only one value."""
    return {axis: found[0] for axis, found in axis_values(run).items() if len(found) == 1}


def ordered(values: Sequence[Scalar]) -> list[Scalar]:
    """Numbers by size; anything else as it was written down, `null` last."""
    if all(is_number(value) for value in values):
        return sorted(values, key=lambda value: float(value or 0))
    return sorted(values, key=lambda value: value is None)


def is_number(value: Scalar) -> bool:
    """A number, and not a truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(one: Config, other: Config) -> bool:
    """Whether two configurations are one, value by value and type by type."""
    return one.keys() == other.keys() and all(key(one[axis]) == key(other[axis]) for axis in one)


def label(run: RunRecord, config: Config) -> Text:
    """A configuration by the axes that vary; the whole of it where none does."""
    return words.configuration(varying(config, run.plan.axes) or config)


def combination(config: Config, names: Sequence[str]) -> tuple[Key, ...]:
    """The values of some axes, as a key."""
    return tuple(key(config.get(name)) for name in names)


def columns(run: RunRecord) -> list[str]:
    """The axes with a column of their own in a table: those that vary, up to a limit."""
    varied = [axis for axis, values in axis_values(run).items() if len(values) > 1]
    return varied if len(varied) <= _MOST_COLUMNS else []


def headings(names: Sequence[str]) -> tuple[Column, ...]:
    """The columns that name a configuration: one for each of these axes, or one for all of it."""
    shown = [words.outside(axis, 30) for axis in names]
    return tuple(Column(found.text, numeric=True, title=found.title) for found in shown) or (Column("Config"),)


def cells(run: RunRecord, config: Config, names: Sequence[str]) -> tuple[Text, ...]:
    """The cells of the columns of `headings`."""
    return tuple(_cell(run, config, axis) for axis in names) or (words.configuration(config),)


def value_text(run: RunRecord, axis: str, value: Scalar) -> str:
    """A value in a table or a chart; a dash where the axis has no effect, as `num_workers` with another loader."""
    has_effect = value is not None or None in run.plan.axes.get(axis, [None])
    return format_scalar(value) if has_effect else NO_EFFECT


def _cell(run: RunRecord, config: Config, axis: str) -> Text:
    """The value of an axis, which sorts as the number that it is."""
    value = config.get(axis)
    shown = words.outside(value_text(run, axis, value) if axis in config else NO_EFFECT, 40)
    return Value(shown.text, shown.title, sort=float(value)) if isinstance(value, (int, float)) else shown
