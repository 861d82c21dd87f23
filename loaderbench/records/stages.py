"""Names of stages, and the order in which a sample passes them."""

from __future__ import annotations

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
