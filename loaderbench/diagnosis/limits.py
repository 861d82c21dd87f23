"""The resources that can limit the work: which is saturated or queued for, and whether other programs use it."""

from __future__ import annotations

from loaderbench.diagnosis.cpu_use import another_worker_fits, cpus_are_full, kernel_cpus
from loaderbench.diagnosis.facts import MOST_IDLE, Facts
from loaderbench.diagnosis.thresholds import (
    BLOCKED,
    BYTES_GROW,
    BYTES_SEEN,
    FAULT_S,
    HUGE_FAULT_S,
    IDLE,
    IDLE_CPUS,
    KERNEL,
    LIBRARY_THREADS,
    LOCKED,
    MORE_THAN_ONE,
    MOST,
    NOTICED,
    ONE_THREAD,
    PART_OF_CPUS,
    QUEUED,
    THROTTLED,
)
from loaderbench.records import Limit


def disturbed(facts: Facts) -> bool:
    """Whether other programs hold the CPUs that this program lacks.

    CPUs that are idle on average can be busy whenever this program needs one. Its threads then wait in the run queue,
    even if there are no more threads than CPUs.
    """
    idle, others = facts.idle_cpus, facts.others_cpus
    if idle is None or others is None:
        return False
    own = facts.cpus if facts.own_cpus is None else min(facts.own_cpus, facts.cpus)
    enough = max(IDLE_CPUS, PART_OF_CPUS * own)  # to go faster by a tenth
    return others >= enough and (idle < enough or _queues_behind_others(facts))


def _queues_behind_others(facts: Facts) -> bool:
    """Whether threads wait for a CPU although there are enough CPUs for them, and no quota or mask explains it."""
    queues = facts.waited_for_cpu >= QUEUED and facts.runnable_threads <= facts.cpus
    return queues and not is_throttled(facts) and narrow_mask(facts) is None


def blocked_by_itself(facts: Facts) -> float:
    """The blocked share of working time, estimated without other programs if these hold CPUs.

    Threads of this program would still wait for a CPU if there are more of them than CPUs. A small share is returned as
    measured, because it is too uncertain.
    """
    blocked = facts.blocked_at_work
    if not disturbed(facts) or blocked < LOCKED:
        return blocked
    ran = ran_at_work(facts) * max(1.0, facts.runnable_threads / facts.cpus)
    return max(blocked, blocked / (blocked + ran))


def ran_at_work(facts: Facts) -> float:
    """The share of working time on a CPU."""
    if facts.workers and facts.loads is not None:
        return facts.loads.on_cpu_share / (1 - min(facts.idle_share or 0.0, MOST_IDLE))
    if not facts.wall_s:
        return min(1.0, facts.loads.on_cpu_share / facts.wait_share) if facts.loads and facts.wait_share else 0.0
    return min(1.0, sum(facts.cpu_s.values()) / sum(facts.wall_s.values()))


def limit_of_cpus(facts: Facts) -> Limit:
    """`workers` if this program leaves CPUs idle, `cpu` if it does not, `neighbors` if other programs hold them."""
    if disturbed(facts):
        return "neighbors"
    return "workers" if another_worker_fits(facts) else "cpu"


def limit_of_one_thread(facts: Facts) -> Limit:
    """The limit of work in a single thread, which needs no more CPUs unless all are in use."""
    if is_throttled(facts):
        return "quota"
    own_s = facts.sampler_s if facts.workers else facts.next_s or 0.0
    if (facts.next_cpu_s or 0.0) < MOST * own_s:  # the thread waits for something other than a CPU
        return "lock"
    return "neighbors" if disturbed(facts) else "cpu" if cpus_are_full(facts) else "lock"


def limit_of_transport(facts: Facts) -> Limit:
    """The limit on how fast finished batches arrive."""
    if is_throttled(facts):
        return "quota"
    if disturbed(facts):
        return "neighbors"
    if kernel_works(facts):
        return "memory"
    if cpus_are_full(facts):
        return "cpu"
    if main_process_is_busy(facts) or not have_work(facts):
        return "lock"
    return "workers" if another_worker_fits(facts) else "cpu"


def main_process_is_busy(facts: Facts) -> bool:
    """Whether the main process runs or is runnable for most of its time."""
    return facts.main is not None and facts.main.on_cpu_share + facts.main.run_queue_share >= MOST


def waits_for_the_gil(facts: Facts) -> bool:
    """Whether the loop is blocked in `next()` while workers are idle and another Python thread of its process runs."""
    is_blocked = (facts.next_cpu_s or 0.0) < MOST * (facts.next_s or 0.0)
    return bool(facts.busy_thread) and facts.workers > 0 and is_blocked and not have_work(facts)


def have_work(facts: Facts) -> bool:
    """Whether the loading processes are busy. If workers are idle, there are already enough of them."""
    if not facts.workers:
        return True
    if facts.idle_share is not None or facts.ended_share >= IDLE:
        return idle_time(facts) < IDLE
    return facts.loads is None or facts.loads.on_cpu_share + facts.loads.run_queue_share >= MOST


def idle_time(facts: Facts) -> float:
    """The share of time in which workers have ended or have no work; the latter is at most their blocked share."""
    without_work = min(facts.idle_share or 0.0, facts.loads.blocked_share if facts.loads else 1.0)
    return facts.ended_share + (1 - facts.ended_share) * without_work


def idle_in_wait(facts: Facts) -> float:
    """The smallest share of the wait in which workers must have been idle, if all other time was idle too."""
    if not facts.workers or facts.wait_share <= 0:
        return 0.0
    return max(0.0, idle_time(facts) - (1 - facts.wait_share)) / facts.wait_share


def is_throttled(facts: Facts) -> bool:
    """Whether the CPU quota was exhausted in many of its periods."""
    return (facts.throttled_share or 0.0) >= THROTTLED


def narrow_mask(facts: Facts) -> tuple[int, int] | None:
    """The CPUs of a loading process and of this program, if the loading process's mask is narrower and saturated."""
    allowed = facts.loads.allowed_cpus if facts.loads else None
    of_all = (facts.main.allowed_cpus if facts.main else None) or int(facts.cpus)
    of_all = facts.cpus_online if allowed == of_all == 1 else of_all
    return (allowed, of_all) if allowed is not None and allowed < of_all and crowded(facts, allowed) else None


def no_worker_would_help(facts: Facts) -> bool:
    """Whether adding workers would slow down a loader without any: measured, or else because its batches are tiny."""
    if facts.workers or facts.more_are_faster:
        return False
    return facts.workers_are_slower or (facts.is_loader and facts.tiny_batches)


def mostly_at_locks(facts: Facts) -> bool:
    """Whether locks take most of the blocked time with work; without workers, most of the wait.

    A main process without workers waits at a lock for its own threads. If these use no CPU, they wait for a device.
    """
    states = facts.loads
    if states is None or not (seen := states.blocked_on):
        return False
    locked = seen.get("lock", 0.0)
    if not facts.workers:
        others = states.other_threads_cpu_share
        if others is not None and others < LOCKED * facts.wait_share:
            return False
        return locked - (1 - facts.wait_share) >= MOST * facts.wait_share > 0
    return locked >= MOST * sum(share for kind, share in seen.items() if kind not in ("running", "queue")) > 0


def wants_cpu(facts: Facts) -> bool:
    """Whether the loading processes would run if they could."""
    return facts.blocked_at_work < BLOCKED


def waits_for_a_device(facts: Facts) -> bool:
    """Whether a main process that loads by itself is blocked, but rarely on a lock; false if the kernel hides this.

    Its other threads can keep a CPU busy the entire time: OpenMP's threads spin until the next operation.
    """
    seen = facts.loads.blocked_on if facts.loads and not facts.workers else None
    if not seen:
        return False
    blocked = sum(share for kind, share in seen.items() if kind not in ("running", "queue"))
    return seen.get("lock", 0.0) < LOCKED * facts.wait_share * blocked


def crowded(facts: Facts, cpus: float) -> bool:
    """Whether more threads want to run on these CPUs than fit."""
    on_cpu = facts.loads.on_cpu_share * max(1, facts.workers) if facts.loads else 0.0
    fills = ONE_THREAD * cpus <= on_cpu <= cpus / ONE_THREAD  # with more CPU time than that, the workers' masks differ
    return facts.waited_for_cpu >= QUEUED or (wants_cpu(facts) and fills)


def grows_with_bytes(facts: Facts) -> bool:
    """Whether bytes explain the time: those of a file, or those of all readers that share the path to storage."""
    share = facts.bytes_share or 0.0
    return share >= BYTES_GROW or (share >= BYTES_SEEN and share * max(1, facts.workers) >= BYTES_GROW)


def kernel_works(facts: Facts) -> bool:
    """Whether CPU time is mostly in the kernel and explained by page faults, not by system calls such as reads.

    Idle workers count only if their other threads, which hand over batches, use a CPU for most of the wait.
    """
    share = facts.loads.system_share if facts.loads else None
    if (share or 0.0) < KERNEL or busiest(facts) == "read" or not faults_explain(facts):
        return False
    return have_work(facts) or kernel_cpus(facts) >= MOST * facts.wait_share


def faults_explain(facts: Facts) -> bool:
    """Whether page faults account for most of the kernel's time."""
    states = facts.loads
    if states is None:
        return False
    faults = states.minor_faults_per_s or 0.0
    huge = min(facts.huge_faults_per_s, faults)  # counted for all programs, so at most this program's own faults
    faults_s = faults * FAULT_S + huge * HUGE_FAULT_S
    return faults_s >= MOST * kernel_cpus(facts) > 0


def have_library_threads(facts: Facts) -> bool:
    """Whether libraries run their own threads in workers, or in a main process that loads by itself.

    Otherwise, threads that compete with workers can be those of a training step on the CPU.
    """
    others = facts.library_share
    in_workers = not facts.workers or others is None or others >= LIBRARY_THREADS
    return in_workers and facts.threads_per_loading > MORE_THAN_ONE


def part_of_wait(facts: Facts, name: str) -> float:
    """One part of the wait, as a share of the complete wait."""
    parts = facts.parts
    if parts is None:
        return 0.0
    all_s = parts.not_begun_s + parts.making_s + parts.order_s + parts.transport_s + parts.main_process_s
    part_s: float = getattr(parts, name)
    return part_s / all_s if all_s > 0 else 0.0


def hand_over_takes_longer(facts: Facts) -> bool:
    """Whether the loop waits longer for a batch in transit than a worker takes to make one; true if unknown."""
    made_s = sum(facts.wall_s.values()) * (facts.batch_samples or 0.0)
    return facts.parts is None or facts.parts.transport_s >= made_s


def own_part_of_main(facts: Facts) -> float:
    """The share of the wait that is the main process's own work, outside the making of samples."""
    if facts.workers:
        return part_of_wait(facts, "main_process_s") + part_of_wait(facts, "not_begun_s")
    if not facts.next_s:
        return 0.0
    if facts.is_loader and not (facts.wall_s and facts.batch_samples):
        return 0.0  # the time of its samples is unknown
    if not facts.is_loader:  # its processes make the samples; work here is in addition
        return (facts.next_cpu_s or 0.0) / facts.next_s if facts.processes else 0.0
    return 1 - _stages_of_next(facts)


def code_around(facts: Facts) -> str:
    """The location of the code around the loader, if it takes most of the main process's own part of the wait."""
    if facts.around is None:
        return ""
    return facts.around.place if facts.around.wall_s >= MOST * _own_s_of_main(facts) else ""


def is_mostly_sampler(facts: Facts) -> bool:
    """Whether the sampler takes most of the main process's own part of the wait."""
    around_s = facts.around.wall_s if facts.around and facts.workers else 0.0  # `sampler_s` includes it
    return facts.sampler_s - around_s >= MOST * _own_s_of_main(facts) > 0


def _own_s_of_main(facts: Facts) -> float:
    """The main process's own part of the wait, in seconds per batch."""
    parts = facts.parts if facts.workers else None
    return parts.main_process_s + parts.not_begun_s if parts else (facts.next_s or 0.0) * own_part_of_main(facts)


def _stages_of_next(facts: Facts) -> float:
    """The share of `next()` that the stages of samples and batches explain."""
    return min(1.0, sum(facts.wall_s.values()) * (facts.batch_samples or 0.0) / (facts.next_s or 1.0))


def making_takes_the_cpus(facts: Facts) -> bool:
    """Whether the CPUs are saturated, mostly by making batches, so finished batches wait for a CPU on their way."""
    rate = facts.samples_per_s * facts.ranks / facts.ranks_of_rate
    made_by = sum(facts.cpu_s.values()) * rate
    return facts.own_cpus is not None and cpus_are_full(facts) and made_by >= MOST * facts.own_cpus > 0


def sampler_starts_slowly(facts: Facts) -> bool:
    """Whether the sampler takes most of each epoch's start, before it returns its first indices."""
    return facts.sampler_start_s >= MOST * (facts.startup_s or 0.0) > 0


def first_making_share(facts: Facts) -> float:
    """The share of total time in which the loop waits for the first batches of epochs while they are made."""
    return facts.startup_share * facts.first_making_s / facts.startup_s if facts.startup_s else 0.0


def startup_without_making(facts: Facts) -> float:
    """The share of total time that is lost to startup if making the first batch is not part of it."""
    wait_s = facts.wait_share * (facts.batch_samples or 0.0) / (facts.own_samples_per_s or 1.0)
    beyond = max(0.0, facts.first_making_s - wait_s) / facts.startup_s if facts.startup_s else 0.0
    return facts.startup_share * max(0.0, 1 - beyond)


def making_is_too_slow(facts: Facts) -> bool:
    """Whether the workers make batches more slowly than the loop uses them, however long its epochs are."""
    made_s = sum(facts.wall_s.values()) / max(1, facts.workers)
    used_s = (1 - facts.wait_share) / facts.own_samples_per_s if facts.own_samples_per_s else 0.0
    return made_s * (1 - NOTICED) > used_s > 0


def busiest(facts: Facts) -> str:
    """The stage with the most CPU time; `sample` if no stages are known."""
    return max(facts.cpu_s, key=lambda stage: facts.cpu_s[stage]) if facts.cpu_s else "sample"


def most_blocked(facts: Facts) -> str:
    """The stage with the most blocked time: neither on a CPU, nor waiting for one that other programs hold."""
    return max(facts.wall_s, key=lambda stage: stage_blocked_s(facts, stage)) if facts.wall_s else "sample"


def stage_blocked_s(facts: Facts, stage: str) -> float:
    """Blocked seconds per sample, minus the stage's share (by CPU time) of waits for CPUs that other programs hold."""
    whole_s = sum(facts.cpu_s.values())
    share = facts.cpu_s.get(stage, 0.0) / whole_s if whole_s else 0.0
    wait_s = share * _queued_s(facts) if disturbed(facts) else 0.0
    return max(0.0, facts.blocked_s(stage) - wait_s)


def _queued_s(facts: Facts) -> float:
    """Seconds per sample in the run queue: in the kernel's ratio to CPU time, and at most its share of the time.

    Stacks sampled from outside find more CPU time than the kernel reports.
    """
    loads = facts.loads
    if loads is None or not loads.on_cpu_share:
        return 0.0
    by_cpu_time_s = sum(facts.cpu_s.values()) * loads.run_queue_share / loads.on_cpu_share
    working = max(1 - MOST_IDLE, 1 - (facts.idle_share or 0.0))
    return min(by_cpu_time_s, sum(facts.wall_s.values()) * min(1.0, loads.run_queue_share / working))


def share_of_cpu(facts: Facts) -> float:
    """The largest stage's share of a sample's CPU time; 0 if unknown."""
    whole_s = sum(facts.cpu_s.values())
    return max(facts.cpu_s.values()) / whole_s if whole_s > 0 else 0.0
