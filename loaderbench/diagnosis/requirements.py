"""The facts that each limit needs. A rule that finds a limit without its facts names no cause.

Rules run in order, but what excludes a limit does not depend on that order. Rules, measured causes and fixes all use
these facts. Each follows from what the limit means: for example, if there are too few workers, the workers are busy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loaderbench.diagnosis.cpu_use import another_worker_fits, cpus_are_full, cpus_of_workers, least_cpus
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import (
    blocked_by_itself,
    disturbed,
    grows_with_bytes,
    have_library_threads,
    have_work,
    idle_in_wait,
    is_throttled,
    kernel_works,
    main_process_is_busy,
    mostly_at_locks,
    narrow_mask,
    no_worker_would_help,
    own_part_of_main,
    part_of_wait,
    waits_for_a_device,
    wants_cpu,
)
from loaderbench.diagnosis.swapping import waits_for_swap
from loaderbench.diagnosis.thresholds import (
    BLOCKED,
    IDLE,
    LARGE_FILE_BYTES,
    LOCKED,
    MOST,
    NOTICED,
    ONE_THREAD,
    QUEUED,
    RUNNABLE,
)
from loaderbench.records import Limit

Condition = Callable[[Facts], bool]


def a_cpu_is_left(facts: Facts) -> bool:
    """CPUs are left that a worker could use."""
    return not cpus_are_full(facts)


def no_program_disturbs(facts: Facts) -> bool:
    """No other program holds the CPUs that are missing."""
    return not disturbed(facts)


def a_cpu_is_wanted(facts: Facts) -> bool:
    """The loading process runs or is runnable for most of the data wait. Timed stages override this condition."""
    if facts.workers or facts.wall_s or facts.loads is None:
        return True
    return facts.loads.on_cpu_share + facts.loads.run_queue_share >= MOST * facts.wait_share


def loading_uses_a_cpu(facts: Facts) -> bool:
    """A main process that loads by itself, or one of its threads or children, wants a CPU for most of the wait."""
    states = facts.loads
    if facts.workers or states is None:
        return True
    return states.on_cpu_share + states.run_queue_share + facts.helping_share >= MOST * facts.wait_share


def cpus_are_full_or_workers_useless(facts: Facts) -> bool:
    """No CPU is left for another worker, or a worker would cost more than it takes over."""
    return not another_worker_fits(facts) or no_worker_would_help(facts)


def threads_wait_for_a_cpu(facts: Facts) -> bool:
    """Loading processes are often in a run queue, or fewer workers or threads were measured as faster."""
    return facts.less_is_faster or facts.waited_for_cpu >= QUEUED


def more_threads_than_cpus(facts: Facts) -> bool:
    """More threads of this program want to run than there are CPUs; neighbors can cause queues too."""
    enough = 2 * RUNNABLE if disturbed(facts) else 1.0 if facts.less_is_faster else RUNNABLE
    return facts.competing_threads >= enough * facts.cpus


def few_cpus_are_idle(facts: Facts) -> bool:
    """Too few CPUs are idle for another thread, or fewer than half if less was measured as faster.

    Otherwise, threads that queue would fit on the idle ones. Threads that wake each other, as at the GIL, also queue.
    """
    enough = MOST * facts.cpus if facts.less_is_faster else least_cpus(facts)
    return facts.idle_cpus is None or facts.idle_cpus < enough


def less_may_be_faster(facts: Facts) -> bool:
    """Fewer workers or library threads were measured as faster, or could still be, since not all were measured."""
    threads_may_be = have_library_threads(facts) and not facts.one_thread_is_no_faster
    return facts.less_is_faster or threads_may_be or not facts.fewer_are_no_faster


def kept_from_cpus(facts: Facts) -> bool:
    """Runnable work exhausts the quota, or the affinity mask is narrower than the program's and saturated."""
    return (is_throttled(facts) and wants_cpu(facts)) or narrow_mask(facts) is not None


def mostly_blocked(facts: Facts) -> bool:
    """Loading processes are blocked for most of the time they have work, or would be without other programs."""
    return blocked_by_itself(facts) >= BLOCKED


def not_at_locks(facts: Facts) -> bool:
    """Most of the blocked time is not on locks."""
    return not mostly_at_locks(facts)


def not_fed_by_a_process(facts: Facts) -> bool:
    """The loading processes do not receive their data from another process."""
    return not facts.fed_by


def bytes_take_the_time(facts: Facts) -> bool:
    """The time grows with the bytes, or all files are large."""
    return grows_with_bytes(facts) or (facts.bytes_share is None and facts.bytes_read >= LARGE_FILE_BYTES)


def requests_take_the_time(facts: Facts) -> bool:
    """The time does not grow with the bytes."""
    return not grows_with_bytes(facts)


def something_is_serialized(facts: Facts) -> bool:
    """Workers are blocked on a lock or by another process, threads run one at a time, or one does all the work."""
    take_turns = shares_the_gil(facts) or threads_take_turns(facts) or waits_for_a_process(facts)
    return at_a_lock(facts) or take_turns or main_process_is_late(facts) or hand_over_is_serial(facts)


def waits_for_a_process(facts: Facts) -> bool:
    """Loading processes are blocked while they receive data from another process, and CPUs are idle."""
    return bool(facts.fed_by) and mostly_blocked(facts) and a_cpu_is_left(facts) and have_work(facts)


def at_a_lock(facts: Facts) -> bool:
    """Workers with work are blocked on a lock while CPUs are idle."""
    return facts.workers > 0 and a_cpu_is_left(facts) and have_work(facts) and facts.blocked_on_share("lock") >= LOCKED


def shares_the_gil(facts: Facts) -> bool:
    """Loading threads of one process use about one CPU together, and otherwise wait at a lock: the GIL."""
    one_at_a_time = facts.workers > 1 and ONE_THREAD <= cpus_of_workers(facts) <= 2 - ONE_THREAD
    waits = facts.blocked_at_work >= LOCKED and mostly_at_locks(facts)
    return facts.in_threads and one_at_a_time and waits and a_cpu_is_left(facts) and have_work(facts)


def threads_take_turns(facts: Facts) -> bool:
    """The main thread is blocked, but not on a device, while other threads of its process run one at a time."""
    states = facts.loads
    if states is None or facts.blocked_at_work < LOCKED or (facts.library_share or 0.0) < LOCKED:
        return False
    total = states.on_cpu_share + (facts.library_share or 0.0)
    at_work = (states.competing_threads or total) / max(1, facts.workers)
    one_at_a_time = at_work >= ONE_THREAD and total <= 2 - ONE_THREAD
    return one_at_a_time and a_cpu_is_left(facts) and have_work(facts) and not waits_for_a_device(facts)


def main_process_is_late(facts: Facts) -> bool:
    """Most of the wait is the main process's own work."""
    return own_part_of_main(facts) >= MOST


def batches_are_in_transit(facts: Facts) -> bool:
    """Most of the wait is for finished batches."""
    return facts.workers > 0 and part_of_wait(facts, "transport_s") >= MOST


def hand_over_is_serial(facts: Facts) -> bool:
    """Batches are in transit, and the main process or its pinning thread is busy, or the workers are idle."""
    alone = main_process_is_busy(facts) or facts.pinning_share >= ONE_THREAD or not have_work(facts)
    return batches_are_in_transit(facts) and alone


def several_workers(facts: Facts) -> bool:
    """There are several workers; a single one cannot be ahead or behind."""
    return facts.workers > 1


def ready_batches_wait(facts: Facts) -> bool:
    """For most of the wait, a later batch is ready."""
    return part_of_wait(facts, "order_s") >= MOST


def a_batch_is_made(facts: Facts) -> bool:
    """For most of the wait, a worker is making the batch."""
    return part_of_wait(facts, "making_s") >= MOST


def others_are_idle(facts: Facts) -> bool:
    """Workers are idle while the loop waits for the batch, or one has no data left for most of the wait."""
    return idle_in_wait(facts) >= IDLE or part_of_wait(facts, "ended_s") >= MOST


def page_faults_cost(facts: Facts) -> bool:
    """Page faults take most of the kernel's time, or the loading processes wait for memory that was swapped out."""
    return kernel_works(facts) or waits_for_swap(facts)


def epochs_cost(facts: Facts) -> bool:
    """Starting epochs takes a noticeable share of the time."""
    return facts.startup_share >= NOTICED


NEEDED: Mapping[Limit, tuple[Condition, ...]] = {
    "workers": (have_work, loading_uses_a_cpu, another_worker_fits, no_program_disturbs),
    "cpu": (cpus_are_full_or_workers_useless, no_program_disturbs, a_cpu_is_wanted),
    "oversubscription": (
        threads_wait_for_a_cpu, more_threads_than_cpus, few_cpus_are_idle, less_may_be_faster
    ),
    "quota": (kept_from_cpus,),
    "storage_latency": (mostly_blocked, not_at_locks, not_fed_by_a_process, requests_take_the_time),
    "storage_bandwidth": (mostly_blocked, not_at_locks, not_fed_by_a_process, bytes_take_the_time),
    "lock": (something_is_serialized,),
    "order": (several_workers, ready_batches_wait),
    "startup": (epochs_cost,),
    "memory": (page_faults_cost,),
    "neighbors": (disturbed, a_cpu_is_wanted),
    "imbalance": (several_workers, a_batch_is_made, others_are_idle),
}  # fmt: skip
"""The facts that each limit needs. `none` belongs to a loader that keeps up, for which no rules run."""

_MADE_BY_WORKERS = ("read", "decode", "transform", "sample", "collate", "stragglers")
_OF_IDLE_WORKERS: tuple[Limit, ...] = ("order", "imbalance", "startup", "lock")


def holds(limit: Limit, stage: str, facts: Facts) -> bool:
    """Whether the facts allow this limit for this stage. The loop does not wait for the work of idle workers."""
    if not all(condition(facts) for condition in NEEDED.get(limit, ())):
        return False
    if not facts.workers:
        return stage != "transport"
    if stage == "transport" and limit == "lock":
        return hand_over_is_serial(facts)
    if stage not in _MADE_BY_WORKERS:
        return True
    if limit == "neighbors" and not have_work(facts):
        return False
    return limit in _OF_IDLE_WORKERS or not others_are_idle(facts)
