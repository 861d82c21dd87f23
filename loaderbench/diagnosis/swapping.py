"""Whether the loading processes wait for their own memory, which the kernel had moved to swap."""

from __future__ import annotations

from loaderbench.diagnosis.cpu_use import kernel_cpus
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import ran_at_work
from loaderbench.diagnosis.thresholds import LONGEST_SWAP_FAULT_S, MOST, SWAP_FAULT_S
from loaderbench.records import Evidence, in_bytes

_PAGE_BYTES = 4096  # the smallest page of any system


def waits_for_swap(facts: Facts) -> bool:
    """Whether page faults take most of the loading processes' time at work, and read from swap."""
    return faults_read_from_swap(facts) and fault_share(facts) >= MOST


def fault_share(facts: Facts) -> float:
    """Page faults as a share of the time at work, without waits for a CPU.

    A fault is blocked until the disk answers. Making room for the page takes CPU time in the kernel: as much as the
    wait for a fast disk, and all of the time with compressed memory.
    """
    blocked, ran = facts.blocked_at_work, ran_at_work(facts)
    if blocked + ran <= 0:
        return 0.0
    in_kernel = ran * ((facts.loads.system_share if facts.loads else None) or 0.0)
    return (blocked * blocked_in_faults(facts) + in_kernel * _kernel_share(facts)) / (blocked + ran)


def _kernel_share(facts: Facts) -> float:
    """The share of the kernel's time that major page faults can account for."""
    faults_per_s = (facts.loads.major_faults_per_s if facts.loads else None) or 0.0
    kernel = kernel_cpus(facts)
    return min(1.0, faults_per_s * SWAP_FAULT_S / kernel) if kernel > 0 else 0.0


def faults_read_from_swap(facts: Facts) -> bool:
    """Whether most major page faults of the loading processes can be swap-ins.

    A mapped file causes major faults too, but swaps nothing in. Old pages in swap that nobody reads cause no faults.
    These processes have at least as much memory in swap as they fetch in a second; otherwise, other programs swap.
    """
    faults_per_s = (facts.loads.major_faults_per_s if facts.loads else None) or 0.0
    from_swap = (facts.swap_faults_per_s or 0.0) >= MOST * faults_per_s > 0
    return from_swap and swapped_bytes(facts) >= faults_per_s * _PAGE_BYTES


def blocked_in_faults(facts: Facts) -> bool:
    """Whether page faults take most of the blocked time with work, and are numerous enough to do so.

    A kernel that does not tell page faults from reads shows both as storage. These are then page faults if the
    processes read fewer bytes than came back from swap.
    """
    states = facts.loads
    if states is None or not (seen := states.blocked_on):
        return False
    in_faults = seen.get("page_fault", 0.0) or (seen.get("storage", 0.0) if _reads_little(facts) else 0.0)
    blocked = sum(share for kind, share in seen.items() if kind not in ("running", "queue", "other"))
    if not facts.workers:
        # The process samples its main thread, and Python holds the GIL during a fault, but not during other waits.
        unseen = max(0.0, states.blocked_share - sum(share for kind, share in seen.items() if kind != "running"))
        in_faults, blocked = in_faults + unseen, blocked + unseen
    return in_faults >= MOST * blocked > 0 and _can_fill(states.blocked_share, facts)


def _can_fill(blocked: float, facts: Facts) -> bool:
    """Whether the major faults of a loading process can take this share of its time."""
    faults_per_s = (facts.loads.major_faults_per_s if facts.loads else None) or 0.0
    return faults_per_s / max(1, facts.workers) * LONGEST_SWAP_FAULT_S >= MOST * blocked


def _reads_little(facts: Facts) -> bool:
    read_bytes_per_s = facts.loads.read_bytes_per_s if facts.loads else None
    return read_bytes_per_s is not None and read_bytes_per_s < (facts.swapped_in_bytes_per_s or 0.0)


def swapped_bytes(facts: Facts) -> float:
    """Memory of the workers and of the main process in swap."""
    return sum(size for size in (_of_workers(facts), _of_main(facts)) if size is not None)


def _of_workers(facts: Facts) -> float | None:
    return facts.loads.swapped_bytes if facts.loads and facts.workers else None


def _of_main(facts: Facts) -> float | None:
    states = facts.main or (None if facts.workers else facts.loads)
    return states.swapped_bytes if states else None


def swapping_in_words(facts: Facts) -> tuple[Evidence, ...]:
    """How much memory is in swap, how fast it comes back, and how much memory there is."""
    sizes = (("workers", _of_workers(facts)), ("main process", _of_main(facts)))
    of_each = ", ".join(f"{in_bytes(int(size))} of the {who}" for who, size in sizes if size)
    back = f"{in_bytes(int(facts.swapped_in_bytes_per_s or 0.0))}/s read back"
    found = [Evidence("cause", "Swapped out", f"{of_each}; {back}")]
    if facts.memory_limit_bytes is not None:
        found.append(Evidence("cause", "Memory limit", in_bytes(facts.memory_limit_bytes)))
    elif facts.available_bytes is not None:
        found.append(Evidence("cause", "Memory available", in_bytes(int(facts.available_bytes))))
    return tuple(found)
