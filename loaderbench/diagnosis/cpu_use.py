"""CPUs: how many this program uses and leaves idle, in which processes, and how many workers they can feed."""

from __future__ import annotations

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.thresholds import MOST, MOST_OF_A_CPU, PART_OF_CPUS, SPARE_CPUS
from loaderbench.records import WorkerStates


def cpus_of_workers(facts: Facts) -> float:
    """CPUs that all workers use together."""
    return facts.workers * (facts.loads.on_cpu_share if facts.loads else 0.0)


def main_process_takes_the_cpus(facts: Facts) -> bool:
    """Whether the main process uses more CPU time than all of its worker processes."""
    if not facts.workers or facts.main is None or facts.loads is None or facts.loads.are_threads:
        return False
    return _cpus_used(facts.main) > facts.workers * _cpus_used(facts.loads)


def _cpus_used(states: WorkerStates) -> float:
    return states.on_cpu_share + (states.other_threads_cpu_share or 0.0)


def kernel_cpus(facts: Facts) -> float:
    """CPUs that all loading processes use in the kernel."""
    states = facts.loads
    if states is None:
        return 0.0
    return (states.system_share or 0.0) * _cpus_used(states) * max(1, facts.workers)


def cpus_left(facts: Facts) -> float:
    """CPUs that this program leaves idle; all of them if its use is unknown."""
    return facts.cpus if facts.spare_cpus is None else facts.spare_cpus


def least_cpus(facts: Facts) -> float:
    """The CPUs from which on another thread matters: `SPARE_CPUS`, half of a smaller quota, or a tenth of many CPUs."""
    return max(min(SPARE_CPUS, MOST * facts.cpus), PART_OF_CPUS * facts.cpus)


def cpus_are_full(facts: Facts) -> bool:
    """Whether the rest is too small for another thread to matter."""
    return cpus_left(facts) < least_cpus(facts)


def workers_that_fit(facts: Facts) -> int:
    """The workers that idle CPUs can feed, at least one more if CPUs are left, and at least one per CPU.

    Ranks share the CPUs.
    """
    each = max(MOST_OF_A_CPU, (facts.own_cpus or 1.0) / max(1, facts.workers * facts.ranks))
    spare = (facts.spare_cpus or 0.0) / facts.ranks
    more = max(int(spare / each), 0 if facts.spare_cpus is None or cpus_are_full(facts) else 1)
    return max(1, int(facts.cpus / facts.ranks), facts.workers + more)


def fewer_workers(facts: Facts) -> int:
    """The smaller worker count to try: one per CPU of a rank, or one fewer than now if there are not more workers.

    0 if a rank has less than one CPU; its main process then loads.
    """
    fewest = 0 if facts.ranks > 1 else 1
    return max(fewest, min(int(facts.cpus / facts.ranks), facts.workers - 1))


def another_worker_fits(facts: Facts) -> bool:
    """Whether CPUs are left for more workers, and no measurement shows that more are no faster."""
    return not cpus_are_full(facts) and not facts.more_are_no_faster
