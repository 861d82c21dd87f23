"""Words that records share: plain values, intervals, and how a configuration is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

SCHEMA_VERSION = 1

Scalar = bool | int | float | str | None
Config = dict[str, Scalar]
"""A value for every axis of the sweep."""

Reasons = dict[str, str]
"""Field name to the reason why it holds `None`."""

Status = Literal["completed", "failed", "timed_out", "unavailable"]
Bound = Literal["input", "compute", "transfer", "unknown"]
Confidence = Literal["high", "medium", "low"]
Basis = Literal["measured", "predicted", "heuristic"]
Kind = Literal["sweep", "profile"]
Standing = Literal["open", "already_ok", "not_checked"]
RungName = Literal["replay_device", "replay_host", "loader_warm", "loader_cold", "end_to_end"]
"""What of a run is left when parts are taken away, from the least to all of it."""

Outcome = Literal["improved", "regressed", "within noise", "inconclusive", "incomparable"]


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; `lo` and `hi` are `None` when one round alone was measured."""

    est: float
    lo: float | None
    hi: float | None


def to_dict(record: Any) -> dict[str, Any]:
    """Plain dicts, tuples and scalars of a record, fit for `json.dumps(..., allow_nan=False)`."""
    return asdict(record)


def config_label(config: Mapping[str, Scalar]) -> str:
    """`batch_size=32 num_workers=2`: how a configuration is written wherever it stands in a line."""
    return " ".join(f"{axis}={format_scalar(value)}" for axis, value in config.items())


def varying(config: Config, axes: Mapping[str, Sequence[object]]) -> Config:
    """A configuration without the axes that have one value: what tells it from the others."""
    return {axis: value for axis, value in config.items() if len(axes.get(axis, ())) > 1}


def format_scalar(value: Scalar) -> str:
    """A value as YAML writes it, so that what is read can be pasted back."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
