"""What tells one cause of a wait from another: where the awaited batch was, what reading took, who had the CPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Reasons


@dataclass(frozen=True, kw_only=True)
class WaitParts:
    """Where the awaited batch was while the consumer waited for it: seconds per batch, which add up to the wait.

    `not_begun_s`: no worker had begun it. `making_s`: its worker was at it. `order_s`: a later batch lay ready and a
    worker idle, for batches are handed out in order. `transport_s`: it was made and not yet there.
    `main_process_s`: the main process was at its sampler. `batches` is what they are the means of.
    """

    batches: int
    not_begun_s: float
    making_s: float
    order_s: float
    transport_s: float
    main_process_s: float


@dataclass(frozen=True, kw_only=True)
class Taking:
    """What the main process did inside `next()`, in seconds per batch. `sampler_s` of it went to the sampler."""

    wall_s: float
    cpu_s: float
    sampler_s: float


@dataclass(frozen=True, kw_only=True)
class EpochCost:
    """Seconds that every epoch loses beside its steady state, and their share of it; `None` for an unknown length.

    `name`: `first_batch` (with the start of the workers), `boundary` (from one epoch to the next) or `stragglers`.
    """

    name: str
    s_per_epoch: float
    share: float | None


@dataclass(frozen=True, kw_only=True)
class Reads:
    """Time that samples stood blocked, against the bytes they read: a line of `latency_s` and `s_per_byte`.

    `bytes_share` is the part of that time that grows with the bytes; the rest is the same for the smallest file.
    """

    samples: int
    bytes_per_sample: float
    blocked_s: float
    bytes_share: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MachineUse:
    """All programs together, on the CPUs that this one may use. `own_cpus` of `busy_cpus` are this program's.

    It has `processes` below its main one. `throttled_share` is the part of the periods of a control group's quota in
    which it was used up.
    """

    cpus: int
    own_cpus: float
    busy_cpus: float
    throttled_share: float | None
    processes: int = 0
    not_measured: Reasons = field(default_factory=dict)

    @property
    def idle_cpus(self) -> float:
        """CPUs that nobody used."""
        return max(0.0, self.cpus - self.busy_cpus)

    @property
    def others_cpus(self) -> float:
        """CPUs that other programs used, and what a hypervisor took away."""
        return max(0.0, self.busy_cpus - self.own_cpus)
