"""Vocabulary shared by records: plain values, intervals, names of stages, and the notation of a configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, Literal, TypeVar

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, SCHEMA_VERSION)

OWN_LOADER = "loaderbench.tuning.own_loader:changed_loader"
"""The suite target with which `tune` measures a script's own loader. It works only in that process."""

NOT_READ_TWICE = "no worker was read twice"
NO_WORKER_PROCESSES = "no worker processes: batches are loaded in the main process"
SENT_BY_RANK_0 = "rank 0 loads the batches of this rank and sends them"
"""Reasons that several parts of a run record."""

SMALLEST, LARGEST = 1e-30, 1e30
"""Limits on the magnitude of nonzero numbers in a saved run. Arithmetic on numbers beyond them can overflow a float."""

OUT_OF_RANGE = f"expected a number between {SMALLEST:g} and {LARGEST:g} in magnitude"

Scalar = bool | int | float | str | None
Config = dict[str, Scalar]
"""A value for every axis of the sweep."""

Reasons = dict[str, str]
"""Maps the name of a field that is `None` to the reason."""

Status = Literal["completed", "failed", "timed_out", "unavailable"]
Bound = Literal["input", "compute", "transfer", "unknown"]
Confidence = Literal["high", "medium", "low"]
Basis = Literal["measured", "predicted", "heuristic"]
"""How a gain was obtained. `predicted` is reserved: no gain is predicted."""

Kind = Literal["sweep", "profile", "ab"]
Standing = Literal["open", "already_ok", "not_checked"]
Role = Literal["sweep", "twin", "final", "isolation", "freed", "remedy", "probe", "profile", "rank", "ab"]
"""The purpose of a trial.

`freed` is a trial with a free stage or other workers, or the unchanged loader that it is compared with. `rank` is a
rank of a distributed job other than the one that the verdict is about. `probe` is reserved and not used.
"""

Side = Literal["before", "after"]
"""Which of two versions a trial of `ab` measures."""

IsolationName = Literal["replay_device", "replay_host", "loader_warm", "loader_cold"]
"""What remains of a configuration when parts are removed, from the least to the most."""

IsolationRunName = IsolationName | Literal["end_to_end"]

WorkerSettingName = Literal["more_workers", "fewer_workers", "one_library_thread"]
"""A change of the number of workers, or of the threads in each worker."""

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
"""The topic of a line of evidence."""

Answer = Literal["gain", "loss", "no gain", "undecided", "failed"]
CostName = Literal["first_batch", "boundary", "stragglers"]
Outcome = Literal["improved", "regressed", "within noise", "inconclusive", "incomparable"]

_Number = TypeVar("_Number", int, float)

_TWO_DIGITS = 9.95  # rounds to 10


def out_of_range(number: float) -> bool:
    """Whether the number is too large or too small to be saved in a run."""
    return number != 0 and not SMALLEST < abs(number) < LARGEST


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval, in the unit of the field that holds it.

    `lo` and `hi` are `None` if only one round was measured.
    """

    est: float
    lo: float | None
    hi: float | None

    def scaled(self, factor: float, added: float = 0.0) -> Interval:
        """The interval in another unit."""
        low, high = (None if bound is None else bound * factor + added for bound in (self.lo, self.hi))
        return Interval(self.est * factor + added, low, high)


def sum_if_all_known(values: Iterable[_Number | None]) -> _Number | None:
    """The sum, or `None` if any value is unknown, since a partial sum would look complete."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def to_dict(record: Any) -> dict[str, Any]:
    """Convert a record to plain dicts, tuples and scalars for `json.dumps(..., allow_nan=False)`."""
    return asdict(record)


def config_label(config: Mapping[str, Scalar]) -> str:
    """A configuration in one line: `batch_size=32 num_workers=2`."""
    return " ".join(f"{axis}={format_scalar(value)}" for axis, value in config.items())


def config_name(config: Mapping[str, Scalar]) -> str:
    """The label, or `unmodified config` for a user's own loader with no changes."""
    return config_label(config) or "unmodified config"


def varying(config: Config, axes: Mapping[str, Sequence[object]]) -> Config:
    """A configuration without the axes that have one value or no effect: what distinguishes it from others."""
    return {
        axis: value
        for axis, value in config.items()
        if len(axes.get(axis, ())) > 1 and (value is not None or None in axes[axis])
    }


def format_scalar(value: Scalar) -> str:
    """A value in YAML notation, text unquoted."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


_PLAIN = re.compile(r"[A-Za-z_/.][\w./:-]*(?<!:)")
_OTHER_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", ".nan", ".inf"}


def as_yaml(value: Scalar) -> str:
    """A value in YAML notation. Text that YAML would interpret differently is quoted like JSON."""
    if isinstance(value, str) and (not _PLAIN.fullmatch(value) or value.lower() in _OTHER_WORDS):
        return json.dumps(value)
    return format_scalar(value)


def axis_text(config: Config, axis: str) -> str:
    """The value of an axis in YAML notation; empty if the configuration does not have the axis."""
    return format_scalar(config[axis]) if axis in config else ""


def axis_column(axis: str, others: Container[str]) -> str:
    """The column of an axis in a table: its name, with the prefix `axis_` if another column has that name."""
    return f"axis_{axis}" if axis in others else axis


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 trial`, `3 trials`, `1,200 trials`; `many` is the plural if it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def in_bytes(number: int) -> str:
    """Format a number of bytes: `3 bytes`, `1.5 KiB`, `64 MiB`, `1.5 GiB`."""
    if number < 2**10:
        return f"{number} byte{'' if number == 1 else 's'}"
    if number >= 2**30:
        return f"{number / 2**30:.1f} GiB"
    size, unit = (number / 2**20, "MiB") if number >= 2**20 else (number / 2**10, "KiB")
    return f"{size:.0f} {unit}" if size >= _TWO_DIGITS else f"{f'{size:.1f}'.removesuffix('.0')} {unit}"


def utc_now() -> str:
    """The current date and time as records write them: in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def moment(text: str) -> datetime | None:
    """Parse a date and time of a record, in UTC; `None` if the text is not a valid one."""
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return parsed.replace(tzinfo=timezone.utc) if parsed.tzinfo is None else parsed.astimezone(timezone.utc)
    except (ValueError, OverflowError):  # 0001-01-01 with an offset is before datetime.min
        return None


IPC = "worker-to-main IPC"

WITHOUT_GRADIENTS = "forward without gradients"
"""Calls of a model in a loop that trains, but without gradients: an evaluation, or a frozen model."""

STAGE_NAMES = {
    "sample": "other __getitem__ code",
    "transport": IPC,
    "transfer": "host-to-device copy",
    "main_process": "the main process",
    "stragglers": "slow samples",
    "startup": "epoch startup",
}
"""Names for use in a sentence. Stages that keep their own name, such as `decode` or a user's stage, are not listed."""

_FIRST = ("read", "decode", "transform")
_LAST = ("sample", "collate", "transport")


def stage_place(stage: str) -> int:
    """Sort key: the order in which a sample passes stages. A user's own stages come after `transform`."""
    if stage in _FIRST:
        return _FIRST.index(stage)
    return len(_FIRST) + 1 + _LAST.index(stage) if stage in _LAST else len(_FIRST)
