"""Make one stage of a loader free in a trial's process, by replaying its earlier results."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Freeing:
    """A stage to make free, such as `decode` or `transform/Normalize`; with `None`, only the samples are restricted.

    Each loading process keeps the results of `kept` samples, drawn by `seed`. `repeats_files`: only these samples are
    loaded. Otherwise the loader keeps its sampler, and any other sample gets the results of a kept one.
    """

    stage: str | None
    kept: int
    seed: int = 0
    repeats_files: bool = True


class CannotFreeError(Exception):
    """Why a stage of this loader cannot be made free, as a clause."""
