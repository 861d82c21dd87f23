"""Trials and readings as pandas data frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from loaderbench.records import TimelinePoint, Trial, to_dict
from loaderbench.records.words import axis_column
from loaderbench.store.writing import TIMELINE_COLUMNS

if TYPE_CHECKING:
    import pandas as pd


def trials_frame(trials: Iterable[Trial]) -> pd.DataFrame:
    """One row per trial: its axes as separate columns, then every field and metric that is a plain value.

    An axis named like another column is prefixed with `axis_`.
    """
    import pandas as pd

    hints = get_type_hints(Trial)
    plain = [field.name for field in fields(Trial) if _is_plain(hints[field.name])]
    rows = [_row(trial, plain) for trial in trials]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=[*plain, "failure"])


def timeline_frame(points: Iterable[TimelinePoint]) -> pd.DataFrame:
    """One row per reading: `trial`, `t_s`, `metric`, `value`."""
    import pandas as pd

    return pd.DataFrame([to_dict(point) for point in points], columns=list(TIMELINE_COLUMNS))


def _is_plain(declared: Any) -> bool:
    """Whether a field holds a string or a number, possibly `None`; fields that hold a record get no column."""
    if get_origin(declared) in (Union, UnionType):
        return all(map(_is_plain, get_args(declared)))
    return get_origin(declared) is Literal or declared in (str, int, float, bool, NoneType)


_OF_GPUS = (
    *("utilization_percent", "memory_used_bytes", "power_w", "energy_per_sample_j", "sm_clock_mhz", "memory_clock_mhz"),
    *("pcie_generation", "pcie_width"),
)


def _row(trial: Trial, plain: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(trial, name) for name in plain}
    device = {f"gpu{gpu.index}_{name}": getattr(gpu, name) for gpu in trial.gpus for name in _OF_GPUS}
    parts = {
        f"gpu{gpu.index}_{name}": value
        for gpu in trial.gpus
        if gpu.performance is not None
        for name, value in vars(gpu.performance).items()
        if name != "not_measured"
    }
    fields = {**values, **device, **parts, **trial.metrics, "failure": trial.failure and trial.failure.kind}
    return {axis_column(name, fields): value for name, value in trial.config.items()} | fields
