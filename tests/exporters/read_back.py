"""Event files of TensorBoard and offline runs of Weights & Biases, read by their own libraries."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def events(place: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(place), size_guidance={"scalars": 0, "tensors": 0, "images": 0})
    read.Reload()
    return read


def read_wandb(file: Path) -> tuple[str, str, dict[str, Any], list[dict[str, Any]]]:
    """The kind, name, summary and history of an offline run."""
    from wandb.proto.wandb_internal_pb2 import Record

    job, name, summary, history = "", "", dict[str, Any](), list[dict[str, Any]]()
    for data in logged(file.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        if record.HasField("run"):
            job, name = record.run.job_type, record.run.display_name
        for item in record.summary.update:
            summary[item.key or item.nested_key[0]] = json.loads(item.value_json)
        if record.HasField("history"):
            history.append(
                {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            )
    return job, name, summary, history


def logged(content: bytes) -> Iterator[bytes]:
    """The records of a log of LevelDB, in blocks of 32 kB; the client has no reader in Python."""
    at, parts = 7, b""  # after the head of the file
    while at + 7 <= len(content):
        if 32_768 - at % 32_768 < 7:
            at += 32_768 - at % 32_768
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        parts += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""
