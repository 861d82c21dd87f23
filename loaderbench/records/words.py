"""Words that records share: plain values, intervals, and how a configuration is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, Literal

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, SCHEMA_VERSION)

OWN_LOADER = "loaderbench.tuning.own_loader:changed_loader"
"""The target of a suite by which `tune` measures the loader of a script: no other process has it."""

NOT_READ_TWICE = "no worker was read twice"
NO_WORKER_PROCESSES = "no worker processes: batches are loaded in the main process"
"""Reasons that several parts of a run give."""

SMALLEST, LARGEST = 1e-30, 1e30
"""The magnitudes of numbers in a saved run, apart from 0: arithmetic on others may leave what a float can hold."""

OUT_OF_RANGE = f"expected a number between {SMALLEST:g} and {LARGEST:g} in magnitude"

Scalar = bool | int | float | str | None
Config = dict[str, Scalar]
"""A value for every axis of the sweep."""

Reasons = dict[str, str]
"""Field name to the reason why it holds `None`."""

Status = Literal["completed", "failed", "timed_out", "unavailable"]
Bound = Literal["input", "compute", "transfer", "unknown"]
Confidence = Literal["high", "medium", "low"]
Basis = Literal["measured", "predicted", "heuristic"]
"""How a gain is known. `predicted` is reserved: nothing predicts gains."""

Kind = Literal["sweep", "profile", "ab"]
Standing = Literal["open", "already_ok", "not_checked"]
Role = Literal["sweep", "twin", "final", "isolation", "freed", "remedy", "probe", "profile", "rank", "ab"]
"""What a trial was measured for; `freed` is one with a free stage or other workers, or the unchanged loader that it is
compared with; `rank` is one of a distributed job, but not the one that its verdict is about. `probe` is reserved: none
is made."""

Side = Literal["before", "after"]
"""Which of two versions a trial of `ab` measured."""

IsolationName = Literal["replay_device", "replay_host", "loader_warm", "loader_cold"]
"""What is left of a configuration when parts are removed, from the least to the most."""

WorkerSettingName = Literal["more_workers", "fewer_workers", "one_library_thread"]
"""A change of how many load at the same time, or of the threads in each."""

Stage = Literal[
    "read", "decode", "transform", "collate", "transport", "main_process", "startup", "stragglers", "sample"
]
Limit = Literal[
    "workers", "cpu", "oversubscription", "quota", "storage_latency", "storage_bandwidth", "lock", "order", "startup",
    "memory", "neighbors", "imbalance", "none",
]  # fmt: skip
About = Literal[
    "cause", "free", "wait", "rate", "consumer", "target", "inside", "limits", "epoch", "shortage", "failure", "ranks"
]
"""What a line of evidence is about."""

Answer = Literal["gain", "loss", "no gain", "undecided", "failed"]
CostName = Literal["first_batch", "boundary", "stragglers"]
Outcome = Literal["improved", "regressed", "within noise", "inconclusive", "incomparable"]


def out_of_range(number: float) -> bool:
    """Whether no saved run may hold this number."""
    return number != 0 and not SMALLEST < abs(number) < LARGEST


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval, in the unit of the field that holds it.

    `lo` and `hi` are `None` if one round alone was measured.
    """

    est: float
    lo: float | None
    hi: float | None


def to_dict(record: Any) -> dict[str, Any]:
    """Plain dicts, tuples and scalars of a record, fit for `json.dumps(..., allow_nan=False)`."""
    return asdict(record)


def config_label(config: Mapping[str, Scalar]) -> str:
    """`batch_size=32 num_workers=2`: how a configuration is written in a line."""
    return " ".join(f"{axis}={format_scalar(value)}" for axis, value in config.items())


def config_name(config: Mapping[str, Scalar]) -> str:
    """The label; `unmodified config` for a user's own loader, of which nothing is set."""
    return config_label(config) or "unmodified config"


def varying(config: Config, axes: Mapping[str, Sequence[object]]) -> Config:
    """A configuration without the axes that have one value, or no effect on it: what distinguishes it from others."""
    return {
        axis: value
        for axis, value in config.items()
        if len(axes.get(axis, ())) > 1 and (value is not None or None in axes[axis])
    }


def format_scalar(value: Scalar) -> str:
    """A value as YAML writes it: it can be pasted back."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def in_bytes(count: int) -> str:
    """`64 MiB`, `1.5 GiB`."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def utc_now() -> str:
    """Date and time now as records write them, in UTC and to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def moment(text: str) -> datetime | None:
    """A date and time of a record, in UTC; `None` for what is none."""
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found.astimezone(timezone.utc)
    except (ValueError, OverflowError):  # 0001-01-01 with an offset lies before the first day there is
        return None
