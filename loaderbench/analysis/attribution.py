"""Where the time of a wait, and the work of a sample, is put down to."""

from __future__ import annotations

from loaderbench.analysis.facts import Facts


def part_of_wait(facts: Facts, name: str) -> float:
    """A part of the wait, as a share of all of it."""
    parts = facts.parts
    if parts is None:
        return 0.0
    all_s = parts.not_begun_s + parts.making_s + parts.order_s + parts.transport_s + parts.main_process_s
    part_s: float = getattr(parts, name)
    return part_s / all_s if all_s > 0 else 0.0


def own_part_of_main(facts: Facts) -> float:
    """The part of the wait that is the main process's own, beside every sample that is made somewhere."""
    if facts.workers:
        return part_of_wait(facts, "main_process_s") + part_of_wait(facts, "not_begun_s")
    if not facts.next_s:
        return 0.0
    if not facts.is_loader:  # its processes make samples, and what runs here is beside them
        return (facts.next_cpu_s or 0.0) / facts.next_s if facts.processes else 0.0
    return 1 - _stages_of_next(facts)


def _stages_of_next(facts: Facts) -> float:
    """The share of `next()` that the stages of samples and batches explain."""
    return min(1.0, sum(facts.wall_s.values()) * facts.batch_samples / (facts.next_s or 1.0))


def busiest(facts: Facts) -> str:
    """The stage that takes most CPU time; `sample` where no stage is known."""
    return max(facts.cpu_s, key=lambda stage: facts.cpu_s[stage]) if facts.cpu_s else "sample"


def most_blocked(facts: Facts) -> str:
    """The stage that takes most time without using a CPU."""
    return max(facts.wall_s, key=facts.blocked_s) if facts.wall_s else "sample"


def share_of_cpu(facts: Facts) -> float:
    """The busiest stage's share of a sample's CPU time; 0 where it is not known."""
    whole_s = sum(facts.cpu_s.values())
    return max(facts.cpu_s.values()) / whole_s if whole_s > 0 else 0.0
