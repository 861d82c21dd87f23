"""What keeps work from going faster: which resource is used up, or queued for, and whether others use it."""

from __future__ import annotations

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.thresholds import (
    BLOCKED,
    BYTES_GROW,
    BYTES_SEEN,
    DISTURBING_CPUS,
    FAULT_S,
    HUGE_FAULT_S,
    IDLE_CPUS,
    KERNEL,
    LOCKED,
    MOST,
    ONE_THREAD,
    QUEUED,
    SPARE_CPUS,
)
from loaderbench.records import Limit


def disturbed(facts: Facts) -> bool:
    """Whether other programs hold the CPUs that are missing here."""
    idle, others = facts.idle_cpus, facts.others_cpus
    return idle is not None and others is not None and idle < IDLE_CPUS and others >= DISTURBING_CPUS


def limit_of_cpus(facts: Facts) -> Limit:
    """More workers where this program leaves CPUs, cheaper work where it does not, unless others hold them."""
    if disturbed(facts):
        return "neighbors"
    return "workers" if cpus_left(facts) >= SPARE_CPUS else "cpu"


def limit_of_one_thread(facts: Facts) -> Limit:
    """One thread does it all: what it needs is not more CPUs, unless there are none."""
    own_s = facts.sampler_s if facts.workers else facts.next_s or 0.0
    if (facts.next_cpu_s or 0.0) < MOST * own_s:  # it waits, for something else than a CPU
        return "lock"
    return "neighbors" if disturbed(facts) else "lock" if cpus_left(facts) >= SPARE_CPUS else "cpu"


def limit_of_transport(facts: Facts) -> Limit:
    """What keeps batches from coming faster that are made already."""
    if disturbed(facts):
        return "neighbors"
    if kernel_works(facts):
        return "memory"
    if cpus_left(facts) < SPARE_CPUS:
        return "cpu"
    alone = facts.main.on_cpu_share + facts.main.run_queue_share if facts.main else 0.0
    return "lock" if alone >= MOST else "workers"


def wants_cpu(facts: Facts) -> bool:
    """Whether who loads would run if it could."""
    return facts.blocked_at_work < BLOCKED


def waits_for_a_device(facts: Facts) -> bool:
    """Whether a main process that loads by itself is blocked, but rarely on a lock; false where the kernel hides it.

    Its other threads may keep a CPU busy all the while: OpenMP's threads spin until the next operation.
    """
    seen = facts.loads.blocked_on if facts.loads and not facts.workers else None
    if not seen:
        return False
    blocked = sum(share for kind, share in seen.items() if kind not in ("running", "queue"))
    return seen.get("lock", 0.0) < LOCKED * facts.wait_share * blocked


def crowded(facts: Facts, cpus: float) -> bool:
    """Whether more wants to run on these CPUs than they can."""
    on_cpu = facts.loads.on_cpu_share * max(1, facts.workers) if facts.loads else 0.0
    return facts.waited_for_cpu >= QUEUED or (wants_cpu(facts) and on_cpu >= ONE_THREAD * cpus)


def grows_with_bytes(facts: Facts) -> bool:
    """Whether the bytes explain the time: of a file alone, or together with those that share the way with it."""
    share = facts.bytes_share or 0.0
    return share >= BYTES_GROW or (share >= BYTES_SEEN and share * max(1, facts.workers) >= BYTES_GROW)


def kernel_works(facts: Facts) -> bool:
    """Whether the CPU time is mostly the kernel's, and page faults explain it: not system calls, such as reads."""
    share = facts.loads.system_share if facts.loads else None
    return (share or 0.0) >= KERNEL and busiest(facts) != "read" and _faults_explain(facts)


def _faults_explain(facts: Facts) -> bool:
    """Whether page faults account for most of the kernel's time."""
    states = facts.loads
    if states is None:
        return False
    kernel_s = (states.system_share or 0.0) * (states.on_cpu_share + (states.other_threads_cpu_share or 0.0))
    faults_s = (states.minor_faults_per_s or 0.0) * FAULT_S + facts.huge_faults_per_s * HUGE_FAULT_S
    return faults_s >= MOST * kernel_s * max(1, facts.workers)


def cpus_left(facts: Facts) -> float:
    """CPUs that this program leaves; all where its use is not known."""
    return facts.cpus if facts.spare_cpus is None else facts.spare_cpus


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
    return min(1.0, sum(facts.wall_s.values()) * (facts.batch_samples or 0.0) / (facts.next_s or 1.0))


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
