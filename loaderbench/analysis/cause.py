"""The one cause of a wait: rules in the order in which they are asked, each a sentence; the first that holds names it.

First what lies outside of the workers' work (an epoch's beginning, the order, the main process, transport), then what
keeps the work from a CPU (quota, too many threads, blocking), last the work itself. Worker states decide between these
as in Linux's "off-CPU analysis" (Gregg, Systems Performance, 2nd ed., 5.5) and the USE method: a resource is the limit
when it is used up or queued for, not when it is merely used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loaderbench.analysis.facts import Facts
from loaderbench.analysis.thresholds import (
    ALMOST,
    BLOCKED,
    BYTES_GROW,
    BYTES_SEEN,
    DISTURBING_CPUS,
    FEWEST_FAULTS,
    IDLE_CPUS,
    KERNEL,
    LARGE_FILE_BYTES,
    LOCKED,
    MOST,
    MUCH_READ_BYTES,
    NOTICED,
    ONE_THREAD,
    QUEUED,
    RUNNABLE,
    SPARE_CPUS,
    THROTTLED,
)


@dataclass(frozen=True)
class Cause:
    """Stage, limit, and the facts they follow from. `limit` is `None` where other programs leave it open."""

    stage: str
    limit: str | None
    why: str
    margin: float = 1.0
    """How much of the time the cause explains, 0 to 1."""


def find_cause(facts: Facts) -> Cause | None:
    """Ask the rules one after the other; `None` where none has anything to go by."""
    return next((cause for rule in RULES if (cause := rule(facts)) is not None), None)


def epochs_begin_too_often(facts: Facts) -> Cause | None:
    """More time is lost before the first batch of each epoch than in all waits after it."""
    if facts.startup_s is None or facts.startup_share < max(NOTICED, facts.wait_share * (1 - facts.startup_share)):
        return None
    why = f"each epoch begins with {_s(facts.startup_s)} of waiting: {_percent(facts.startup_share)} of all time"
    return Cause("startup", "startup", why, facts.startup_share)


def finished_batches_wait(facts: Facts) -> Cause | None:
    """Most of the wait passes while a later batch lies ready and a worker has nothing to do."""
    share = _part(facts, "order_s")
    if share < MOST:
        return None
    why = f"in {_percent(share)} of the wait a later batch lay ready, and a worker idle: they are handed out in order"
    return Cause("stragglers", "order", why, share)


def quota_holds_back(facts: Facts) -> Cause | None:
    """The work wants a CPU and is kept from one by a quota, or by a mask that is narrower than the machine."""
    if _wants_cpu(facts) and (facts.throttled_share or 0.0) >= THROTTLED:
        why = f"the CPU quota was used up in {_percent(facts.throttled_share or 0.0)} of its periods"
        return Cause(_busiest(facts), "quota", why)
    allowed = facts.loads.allowed_cpus if facts.loads else None
    of_all = (facts.main.allowed_cpus if facts.main else None) or int(facts.cpus)
    of_all = facts.cpus_online if allowed == of_all == 1 else of_all
    if allowed is None or allowed >= of_all or not _crowded(facts, allowed):
        return None
    who = "the workers" if facts.workers else "this process"
    waited = f"{_percent(facts.waited_for_cpu)} of the time is spent waiting for one"
    why = f"{who} may use {allowed:.0f} of {of_all:.0f} CPUs, and {waited}"
    return Cause(_busiest(facts), "quota", why)


def threads_outnumber_cpus(facts: Facts) -> Cause | None:
    """Threads of this program stand in the run queue, for there are more of them than CPUs."""
    enough = (2 * RUNNABLE if disturbed(facts) else RUNNABLE) * facts.cpus  # neighbours make queues, too
    if facts.waited_for_cpu < QUEUED or facts.runnable_threads < enough or facts.fewer_are_slower:
        return None
    threads = f"{facts.runnable_threads:.1f} threads want to run on {facts.cpus:g} CPUs"
    why = f"{threads}, and {_percent(facts.waited_for_cpu)} of the time is spent waiting for one"
    return Cause(_busiest(facts), "oversubscription", why)


def main_process_is_late(facts: Facts) -> Cause | None:
    """Most of the wait is the main process's own: at its sampler, or at anything that is no part of a sample."""
    share = _own_part_of_main(facts)
    if share < MOST:
        return None
    why = f"{_percent(share)} of the wait is the main process's own work, outside of every sample"
    return Cause("main_process", _limit_of_one_thread(facts), why, share)


def batches_are_long_on_the_way(facts: Facts) -> Cause | None:
    """Most of the wait passes between a batch's being made and its arrival, or in pages of memory to be shared."""
    if not facts.workers:
        return None
    share = _part(facts, "transport_s")
    shared = _busiest(facts) == "collate" and _kernels(facts)
    if share < MOST and not shared:
        return None
    if shared:
        return Cause("transport", "memory", f"batches are written to shared memory: {_in_kernel(facts)}")
    why = f"{_percent(share)} of the wait is for batches that are made, and on their way to the main process"
    return Cause("transport", _limit_of_transport(facts), why, share)


def workers_stand_at_a_lock(facts: Facts) -> Cause | None:
    """Threads that could run wait for one another, and leave CPUs idle."""
    if _spare(facts) < SPARE_CPUS:
        return None
    if facts.workers and (share := facts.stood_at("lock")) >= LOCKED:
        return Cause(_most_blocked(facts), "lock", f"workers stood at a lock in {_percent(share)} of the looks", share)
    states = facts.loads
    if states is None or facts.blocked_at_work < LOCKED or (states.other_threads_cpu_share or 0.0) < LOCKED:
        return None
    total = states.on_cpu_share + (states.other_threads_cpu_share or 0.0)
    if not ONE_THREAD <= total <= 2 - ONE_THREAD:
        return None
    why = f"its threads use {total:.2f} CPUs together, as if only one of them could run at a time (the GIL)"
    return Cause(_busiest(facts) if facts.is_loader else "main_process", "lock", why)


def workers_stand_blocked(facts: Facts) -> Cause | None:
    """Most of the working time neither runs nor waits for a CPU: it waits for a device or a network."""
    share = facts.blocked_at_work
    if share < BLOCKED:
        return None
    stage = _most_blocked(facts)
    if stage in ("sample", "decode") and facts.wall_s:
        stage = "read"  # nothing else in a sample waits for a device
    per_sample = f", {_s(max(facts.blocked_s(name) for name in facts.wall_s))} a sample" if facts.wall_s else ""
    who = "workers stand" if facts.workers else "the main process stands"
    why = f"{who} blocked for {_percent(share)} of the time they have work{per_sample}"
    if facts.tail_share >= MOST:
        stage = "stragglers"
    if _grows_with_bytes(facts):
        return Cause(stage, "storage_bandwidth", f"{why}, and the longer the more bytes are read", share)
    if facts.bytes_share is None and (facts.bytes_per_sample or 0.0) >= LARGE_FILE_BYTES:
        large = f"{why}, in files of {(facts.bytes_per_sample or 0) / 2**20:.1f} MiB"
        return Cause(stage, "storage_bandwidth", large, share)
    return Cause(stage, "storage_latency", f"{why}, whatever its size", share)


def kernel_zeroes_pages(facts: Facts) -> Cause | None:
    """Most of the CPU time is the kernel's, at pages of memory that are given and taken back."""
    return Cause(_busiest(facts), "memory", _in_kernel(facts)) if _kernels(facts) else None


def work_fills_its_cpus(facts: Facts) -> Cause | None:
    """The work itself: more workers where CPUs are idle, cheaper stages where they are not."""
    if not facts.cpu_s and facts.loads is None:
        return None
    stage, share = _busiest(facts), _share_of_cpu(facts)
    if facts.tail_share >= MOST:
        stage = "stragglers"
    elif stage == "sample" and not facts.is_loader:
        stage = "main_process"  # there is no dataset, and no sample: the loop's own process makes batches
    limit = _limit_of_cpus(facts)
    if not facts.workers and (facts.workers_are_slower or (facts.is_loader and facts.tiny_batches)):
        limit = "cpu"  # a worker would cost more than it takes over
    what = f"{_percent(share)} of the CPU time of a sample" if share else "the work"
    return Cause(stage, limit, f"{what} is spent there; {_cpus_in_use(facts)}", share or 1.0)


RULES: tuple[Callable[[Facts], Cause | None], ...] = (
    epochs_begin_too_often,
    finished_batches_wait,
    quota_holds_back,
    threads_outnumber_cpus,
    main_process_is_late,
    batches_are_long_on_the_way,
    workers_stand_at_a_lock,
    workers_stand_blocked,
    kernel_zeroes_pages,
    work_fills_its_cpus,
)


def speaks_against(facts: Facts, cause: Cause) -> tuple[str, ...]:
    """What other rules have to say that come to another cause, and the stage that costs almost as much."""
    others = [found for rule in RULES[:-1] if (found := rule(facts)) is not None]
    said = [found.why for found in others if (found.stage, found.limit) != (cause.stage, cause.limit)]
    ranked = sorted(facts.cpu_s.items(), key=lambda item: -item[1])
    if cause.limit in ("workers", "cpu") and len(ranked) > 1 and ranked[1][1] >= ALMOST * ranked[0][1] > 0:
        said.append(f"{ranked[1][0]} takes {ranked[1][1] / ranked[0][1] * 100:.0f} % of what {ranked[0][0]} takes")
    return tuple(said)


def disturbed(facts: Facts) -> bool:
    """Whether other programs hold the CPUs that are missing here."""
    idle, others = facts.idle_cpus, facts.others_cpus
    return idle is not None and others is not None and idle < IDLE_CPUS and others >= DISTURBING_CPUS


def _limit_of_cpus(facts: Facts) -> str | None:
    if disturbed(facts):
        return None
    return "workers" if _spare(facts) >= SPARE_CPUS else "cpu"


def _limit_of_one_thread(facts: Facts) -> str | None:
    """One thread does it all: what it needs is not more CPUs, unless there are none."""
    own_s = facts.sampler_s if facts.workers else facts.next_s or 0.0
    if (facts.next_cpu_s or 0.0) < MOST * own_s:  # it waits, for something else than a CPU
        return "lock"
    return None if disturbed(facts) else "lock" if _spare(facts) >= SPARE_CPUS else "cpu"


def _limit_of_transport(facts: Facts) -> str | None:
    if disturbed(facts):
        return None
    if _kernels(facts):
        return "memory"
    if _spare(facts) < SPARE_CPUS:
        return "cpu"
    alone = facts.main.on_cpu_share + facts.main.run_queue_share if facts.main else 0.0
    return "lock" if alone >= MOST else "workers"


def _wants_cpu(facts: Facts) -> bool:
    return facts.blocked_at_work < BLOCKED


def _crowded(facts: Facts, cpus: float) -> bool:
    """Whether more wants to run on these CPUs than they can."""
    on_cpu = facts.loads.on_cpu_share * max(1, facts.workers) if facts.loads else 0.0
    return facts.waited_for_cpu >= QUEUED or (_wants_cpu(facts) and on_cpu >= ONE_THREAD * cpus)


def _grows_with_bytes(facts: Facts) -> bool:
    """Whether the bytes explain the time: of a file alone, or together with those that share the way with it."""
    share = facts.bytes_share or 0.0
    return share >= BYTES_GROW or (share >= BYTES_SEEN and share * max(1, facts.workers) >= BYTES_GROW)


def _kernels(facts: Facts) -> bool:
    """Whether the CPU time is mostly the kernel's, and not for what it reads or copies of files."""
    share = facts.loads.system_share if facts.loads else None
    if (share or 0.0) < KERNEL or _busiest(facts) == "read":
        return False
    return facts.faults_per_sample >= FEWEST_FAULTS or facts.bytes_asked_per_sample < MUCH_READ_BYTES


def _in_kernel(facts: Facts) -> str:
    share = (facts.loads.system_share if facts.loads else None) or 0.0
    return f"{_percent(share)} of the CPU time is the kernel's, at {facts.faults_per_sample:,.0f} page faults a sample"


def _part(facts: Facts, name: str) -> float:
    """A part of the wait, as a share of all of it."""
    parts = facts.parts
    if parts is None:
        return 0.0
    all_s = parts.not_begun_s + parts.making_s + parts.order_s + parts.transport_s + parts.main_process_s
    part_s: float = getattr(parts, name)
    return part_s / all_s if all_s > 0 else 0.0


def _own_part_of_main(facts: Facts) -> float:
    """The part of the wait that is the main process's own, beside every sample that is made somewhere."""
    if facts.workers:
        return _part(facts, "main_process_s") + _part(facts, "not_begun_s")
    if not facts.next_s:
        return 0.0
    if not facts.is_loader:  # its processes make samples, and what runs here is beside them
        return (facts.next_cpu_s or 0.0) / facts.next_s if facts.processes else 0.0
    return 1 - _stages_of_next(facts)


def _stages_of_next(facts: Facts) -> float:
    """The share of `next()` that the stages of samples and batches explain."""
    return min(1.0, sum(facts.wall_s.values()) * facts.batch_samples / (facts.next_s or 1.0))


def _busiest(facts: Facts) -> str:
    return max(facts.cpu_s, key=lambda stage: facts.cpu_s[stage]) if facts.cpu_s else "sample"


def _most_blocked(facts: Facts) -> str:
    return max(facts.wall_s, key=facts.blocked_s) if facts.wall_s else "sample"


def _share_of_cpu(facts: Facts) -> float:
    whole_s = sum(facts.cpu_s.values())
    return max(facts.cpu_s.values()) / whole_s if whole_s > 0 else 0.0


def _spare(facts: Facts) -> float:
    return facts.cpus if facts.spare_cpus is None else facts.spare_cpus


def _cpus_in_use(facts: Facts) -> str:
    if facts.own_cpus is None:
        return "how many CPUs it used is not known"
    others = f", and other programs {facts.others_cpus:.1f}" if facts.others_cpus and disturbed(facts) else ""
    return f"{facts.own_cpus:.1f} of {facts.cpus:g} CPUs are in use{others}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _s(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
