"""Trials and readings as tables of pandas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from loaderbench.records import TimelinePoint, Trial, to_dict
from loaderbench.store.writing import TIMELINE_COLUMNS

if TYPE_CHECKING:
    import pandas as pd


def trials_frame(trials: Iterable[Trial]) -> pd.DataFrame:
    """One row per trial: its axes as columns of their own, then every field and metric that is a plain value."""
    import pandas as pd

    return pd.DataFrame([_row(trial) for trial in trials])


def timeline_frame(points: Iterable[TimelinePoint]) -> pd.DataFrame:
    """One row per reading: `trial`, `t_s`, `metric`, `value`."""
    import pandas as pd

    return pd.DataFrame([to_dict(point) for point in points], columns=list(TIMELINE_COLUMNS))


def _row(trial: Trial) -> dict[str, Any]:
    fields = to_dict(trial)
    config, failure = fields.pop("config"), fields.pop("failure")
    gpus, metrics = fields.pop("gpus"), fields.pop("metrics")
    plain = {name: value for name, value in fields.items() if not isinstance(value, dict | list | tuple)}
    device = {
        f"gpu{gpu['index']}_{name}": gpu[name] for gpu in gpus for name in ("utilization_percent", "memory_used_bytes")
    }
    return {**config, **plain, **device, **metrics, "failure": failure and failure["kind"]}
