"""What a trial makes free, and over which samples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Freeing:
    """One stage that costs nothing, such as `decode` or `transform/Normalize`; `None` changes nothing but the samples.

    Each loading process keeps the results of `kept` samples, drawn by `seed`. `repeats_files`: all samples come from
    these. Without it the sampler is the loader's own, and any other sample gets the results of a kept one.
    """

    stage: str | None
    kept: int
    seed: int = 0
    repeats_files: bool = True


class CannotFreeError(Exception):
    """Why a stage of this loader cannot be made free, as a clause."""
