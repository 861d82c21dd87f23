"""The throughput limit of each resource: the smallest is the bound, and changing one is a what-if.

`rate(W) = min(W / wall per sample, cores / CPU per sample, 1 / main process per sample, demand)`, in samples/s: the
asymptotic bounds of operational analysis (Denning and Buzen 1978, "The Operational Analysis of Queueing Network
Models", ACM Computing Surveys 10(3)), with one station each for workers, CPUs and the main process.
"""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.diagnosis.facts import Facts
from loaderbench.records import Evidence


@dataclass(frozen=True)
class Bounds:
    """The samples/s that each resource allows; `None` if unknown."""

    workers: float | None
    cpus: float | None
    main_process: float | None
    demand: float | None = None

    @property
    def known(self) -> dict[str, float]:
        """The known bounds, tightest first."""
        return dict(sorted(((k, v) for k, v in vars(self).items() if v is not None), key=lambda item: item[1]))

    @property
    def tightest(self) -> tuple[str, float] | None:
        """The resource with the lowest bound, and that bound."""
        return next(iter(self.known.items()), None)


SHORTEST_S = 1e-9
"""Seconds of a sample below which a clock cannot measure it, so it bounds nothing."""


def operational_bounds(facts: Facts, demand: float | None = None, *, workers: int | None = None) -> Bounds:
    """The bounds of a configuration as measured, or with another number of `workers`.

    A sample's wall time excludes waiting for a CPU, which the CPU bound covers.
    """
    count = facts.workers * (1 - facts.ended_share) if workers is None else workers
    if facts.from_outside:
        return Bounds(None, None, None, demand)
    wall_s = sum(at_work_s(facts, stage) for stage in facts.wall_s)
    cpu_s = (
        facts.own_cpus / facts.samples_per_s if facts.own_cpus and facts.samples_per_s else sum(facts.cpu_s.values())
    )
    main_s = 0.0
    if count and facts.workers and facts.batch_samples:  # without workers, the main process also makes the samples
        main_s = (facts.next_cpu_s or 0.0) / facts.batch_samples
    return Bounds(
        workers=max(1, count) * facts.ranks_of_rate / wall_s if wall_s > SHORTEST_S else None,
        cpus=facts.cpus / cpu_s if cpu_s > SHORTEST_S else None,
        main_process=facts.ranks_of_rate / main_s if main_s > SHORTEST_S else None,
        demand=demand,
    )


LIMIT_NAMES = {"workers": "workers", "cpus": "CPUs", "main_process": "main process", "demand": "target"}


def bounds_in_words(bounds: Bounds) -> tuple[Evidence, ...]:
    """All bounds in one line, tightest first; empty if fewer than two are known."""
    if len(bounds.known) < 2:
        return ()
    limits = [f"{LIMIT_NAMES[name]} {rate:,.0f}" for name, rate in bounds.known.items()]
    return (Evidence("limits", "Throughput limits", f"{', '.join(limits)} samples/s"),)


def at_work_s(facts: Facts, stage: str) -> float:
    """Seconds per sample that a stage keeps a worker busy: its wall time without waiting for a CPU."""
    without_queueing_s = facts.wall_s.get(stage, 0.0) * (1 - facts.waited_for_cpu)
    return max(facts.cpu_s.get(stage, 0.0), without_queueing_s)
