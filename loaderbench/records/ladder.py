"""One configuration with parts of it taken away, and what a sample costs with more workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loaderbench.records.trial import Trial
from loaderbench.records.words import Config, Interval, Reasons, RungName


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One rung of the isolation ladder. `time_s` is per batch or per sample, as the ladder's `per` says.

    `trials` are ids: of the ladder's own trials, or for `end_to_end` of the run's.
    """

    name: RungName
    time_s: Interval | None
    samples_per_s: Interval | None
    trials: tuple[str, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """What is left of one configuration's time when parts of it are taken away: every rung, measured or not.

    Differences are in seconds per batch (or sample), paired by round. `transfer_s` is replaying from the host less
    from the device; `fetch_s` the loader with a cold page cache less with a warm one; `interference_s` what end to end
    takes beyond the slower of loader and consumer alone. An interval that holds 0 saw nothing. `trials` are the rungs'
    own, apart from those of the run; `notes` say what is to be known of how they were measured.
    """

    config: Config
    per: Literal["batch", "sample"]
    rounds: int
    rungs: tuple[Rung, ...]
    transfer_s: Interval | None
    fetch_s: Interval | None
    interference_s: Interval | None
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Contention:
    """What a sample costs with so many workers, all else being the configuration that the verdict is about.

    `wall_s_per_sample` are seconds of all workers together, `cpu_s_per_sample` those that its stages were on a CPU.
    The ratios are over the smallest number of workers, paired by round. `beyond_cores` is the wall time over what this
    CPU time and the allotted cores explain: above 1 something else is shared, such as a lock, the GIL or a disk.
    """

    workers: int
    wall_s_per_sample: Interval | None
    cpu_s_per_sample: Interval | None
    wall_ratio: Interval | None
    cpu_ratio: Interval | None
    beyond_cores: Interval | None
    not_measured: Reasons = field(default_factory=dict)
