"""The axis `shuffle_buffer` of loaders that read shards sequentially and draw the next sample from a buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loaderbench.options import Check, integer
from loaderbench.records import Config

AXIS = "shuffle_buffer"

SHUFFLE_BUFFER = 1_000
"""Number of encoded files in the buffer: WebDataset's default."""

ARGUMENT: Mapping[str, Check] = {AXIS: integer(1, 10_000_000, or_null=True)}

WITHOUT_EFFECT: Mapping[str, str] = {
    AXIS: "no effect without shuffle: measured once",
}


def buffer_of(arguments: Mapping[str, Any]) -> int | None:
    """Size of the shuffle buffer; `None` if samples are read in order."""
    return arguments.get(AXIS) or SHUFFLE_BUFFER if arguments.get("shuffle") else None


def of_data_loader(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `DataLoader` whose samples determine their own order."""
    return {name: value for name, value in arguments.items() if name not in ("shuffle", AXIS)}


def without_idle_buffer(config: Config, fixed: Mapping[str, Any]) -> Config:
    """The configuration without a buffer size if nothing is shuffled; `fixed` are the suite's fixed arguments."""
    if AXIS in config and not config.get("shuffle", fixed.get("shuffle", False)):
        return {**config, AXIS: None}
    return config
