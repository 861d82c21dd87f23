"""Which parts can be taken away from a run, and why another would tell nothing."""

from __future__ import annotations

import os

from loaderbench.records import RungName

MOST_ROUNDS = 3
"""Of the ladder: the fewest that give an interval worth reading."""

REPLAYED_TO = ("model", "target")  # consumers whose own pace is not known beforehand
NO_CONSUMER = "nothing consumes the batches"


def why_not(*, consumer: str, cache: str, files: bool, accelerator: bool) -> dict[RungName, str]:
    """The reason against each rung, empty for those to be measured.

    `consumer` is a resolved kind, `cache` the suite's regime; `files`: the dataset is an image folder.
    """
    cold = _not_cold(cache, files)
    return {
        "replay_device": _not_replayed(consumer) or ("" if accelerator else "there is no accelerator"),
        "replay_host": _not_replayed(consumer),
        "loader_warm": _not_warm(consumer, cache, cold),
        "loader_cold": cold,
    }


def _not_replayed(consumer: str) -> str:
    if consumer == "emulated":
        return "an emulated accelerator takes its demand and looks at no batch: its ceiling is known"
    return "" if consumer in REPLAYED_TO else NO_CONSUMER


def _not_warm(consumer: str, cache: str, cold: str) -> str:
    """With no consumer the sweep is the loader alone, unless it is to be compared with another page cache."""
    alone = consumer == "none" and cache == "warm" and cold
    return f"{NO_CONSUMER}: the sweep's own trials are the loader alone" if alone else ""


def _not_cold(cache: str, files: bool) -> str:
    if not files:
        return "the files that a target reads are not known, so that they cannot be evicted"
    if cache == "cold":
        return "the suite's own trials begin with a cold page cache"
    return "" if hasattr(os, "posix_fadvise") else "this system has no posix_fadvise to evict files with"
