"""Finds the cause of a wait: each rule below is a sentence, and the first one that holds names the cause.

The order is: causes outside the workers' work (start of an epoch, order, main process, transport), then what keeps the
work from a CPU (quota, too many threads, blocking), and last the work itself. Worker states decide as in Linux's
"off-CPU analysis" (Gregg, Systems Performance, 2nd ed., 5.5) and the USE method: a resource is the limit when it is
saturated or queued for, not when it is merely used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

from loaderbench.diagnosis.cpu_use import cpus_of_workers
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import (
    blocked_by_itself,
    busiest,
    code_around,
    first_making_share,
    grows_with_bytes,
    hand_over_takes_longer,
    idle_in_wait,
    is_mostly_sampler,
    is_throttled,
    kernel_works,
    limit_of_cpus,
    limit_of_one_thread,
    limit_of_transport,
    main_process_is_busy,
    making_is_too_slow,
    making_takes_the_cpus,
    most_blocked,
    narrow_mask,
    no_worker_would_help,
    own_part_of_main,
    part_of_wait,
    sampler_starts_slowly,
    share_of_cpu,
    stage_blocked_s,
    startup_without_making,
    waits_for_the_gil,
)
from loaderbench.diagnosis.requirements import (
    at_a_lock,
    holds,
    main_process_is_late,
    shares_the_gil,
    threads_take_turns,
    waits_for_a_process,
)
from loaderbench.diagnosis.swapping import fault_share, waits_for_swap
from loaderbench.diagnosis.thresholds import (
    BLOCKED,
    LARGE_FILE_BYTES,
    MOST,
    NOTICED,
    ONE_THREAD,
)
from loaderbench.diagnosis.wording import (
    NEIGHBORS,
    available_cpus,
    cpus_alone,
    cpus_in_use,
    in_kernel,
    in_percent,
    in_seconds,
    label_of,
    limit_of_work,
    stage_name,
    stage_of,
    threads_compete,
    where,
)
from loaderbench.records import Evidence, Limit, Stage

_STAGES: dict[str, Stage] = {stage: stage for stage in get_args(Stage)}
_ONE_THREAD = "work in the main process is serialized"
_HELD_IN_TRANSIT: dict[Limit, str] = {
    "cpu": "CPUs saturated",
    "lock": "the main process is busy",
    "workers": "finished batches are delayed",
    "neighbors": NEIGHBORS,
    "quota": "CPU quota limits the loader",
}


@dataclass(frozen=True)
class Cause:
    """The stage and limit of a wait, and the facts they follow from.

    `clause` is the cause as worded in a headline. `named` is the user's name for the part of the sample that the cause
    is about, if it has one. `read_inside` is the stage that files are read in, if that is not `read`. `is_measured`: no
    other stage gains as much if free. `overruled` is the conclusion of the rules about a stage that gains less.
    """

    stage: Stage
    limit: Limit
    why: Evidence
    clause: str = ""
    named: str | None = None
    read_inside: Stage | None = None
    is_measured: bool = False
    overruled: str = ""

    @property
    def work(self) -> str:
        """The user's name for the stage, or else the stage's own."""
        return self.named or self.stage


def _cause(work: str, limit: Limit, why: Evidence, clause: str) -> Cause:
    """Make a cause; a part of the sample that the user named belongs to the stage `sample`."""
    stage = _STAGES.get(work)
    return Cause(stage, limit, why, clause) if stage else Cause("sample", limit, why, clause, named=work)


def _why(label: str, figures: str) -> Evidence:
    return Evidence("cause", label, figures)


def _page_fault_clause(work: str) -> str:
    return f"page-fault overhead in {stage_name(work)}"


def find_cause(facts: Facts) -> Cause | None:
    """Try the rules in order; `None` if none applies."""
    return next((cause for rule in RULES if (cause := apply(rule, facts)) is not None), None)


def apply(rule: Callable[[Facts], Cause | None], facts: Facts) -> Cause | None:
    """The cause that a rule finds, unless the facts exclude its limit."""
    cause = rule(facts)
    return cause if cause and holds(cause.limit, cause.work, facts) else None


def epochs_begin_too_often(facts: Facts) -> Cause | None:
    """More time is lost before the first batch of each epoch than in all waits after it.

    Making that batch counts as such a wait if endless epochs would wait for batches to be made as well.
    """
    waits, making = facts.wait_share * (1 - facts.startup_share), first_making_share(facts)
    lost = facts.startup_share
    if making_is_too_slow(facts):
        waits, lost = waits + making, startup_without_making(facts)
    if lost < max(NOTICED, waits):
        return None
    each = "" if facts.startup_s is None else f"{in_seconds(facts.startup_s)} before the first batch of each epoch, "
    made = f"; making it takes {in_seconds(facts.first_making_s)} of this" if making >= NOTICED else ""
    started = facts.workers and not facts.workers_persist
    clause = "worker startup delays the first batch of every epoch" if started else "epochs start slowly"
    if sampler_starts_slowly(facts):
        made = f"; the sampler takes {in_seconds(facts.sampler_start_s)} of this"
        clause = "the sampler delays the first batch of every epoch"
    why = _why("Startup", f"{each}{in_percent(facts.startup_share)} of total time{made}")
    return _cause("startup", "startup", why, clause)


def finished_batches_wait(facts: Facts) -> Cause | None:
    """For most of the wait, a later batch is ready and a worker is idle."""
    share = part_of_wait(facts, "order_s")
    if share < MOST:
        return None
    why = _why("Order", f"a later batch was ready and a worker idle in {in_percent(share)} of the data wait")
    return _cause("stragglers", "order", why, "head-of-line blocking by slow samples")


def quota_holds_back(facts: Facts) -> Cause | None:
    """Work that wants a CPU is held back by a quota, or by an affinity mask narrower than the machine."""
    if is_throttled(facts):
        why = _why("CPU quota", f"exhausted in {in_percent(facts.throttled_share or 0.0)} of its periods")
        return _cause(busiest(facts), "quota", why, f"CPU quota limits the loader{where(busiest(facts), facts)}")
    mask = narrow_mask(facts)
    if mask is None:
        return None
    allowed, of_all = mask
    who = "workers" if facts.workers else "this process"
    waited = f"waiting for a CPU {in_percent(facts.waited_for_cpu)} of the time"
    why = _why("CPU affinity", f"{who} pinned to {allowed:.0f} of {of_all:.0f} CPUs; {waited}")
    return _cause(busiest(facts), "quota", why, f"CPU affinity limits the loader{where(busiest(facts), facts)}")


def threads_outnumber_cpus(facts: Facts) -> Cause | None:
    """More threads want to run than there are CPUs, so they wait in the run queue; see the facts in `NEEDED`."""
    threads = f"{facts.competing_threads:.1f} runnable on {available_cpus(facts.cpus)}"
    waited = f"waiting for a CPU {in_percent(facts.waited_for_cpu)} of the time"
    less = "fewer workers" if facts.fewer_are_faster else "one library thread in each"
    why = f"{threads}; {f'{less} measured as faster' if facts.less_is_faster else waited}"
    clause = f"{threads_compete(facts)}{where(busiest(facts), facts)}"
    return _cause(busiest(facts), "oversubscription", _why("Threads", why), clause)


def main_process_works_alone(facts: Facts) -> Cause | None:
    """Most of the wait is the main process's own work: its sampler, or anything else that is not part of a sample."""
    if not main_process_is_late(facts):
        return None
    share = own_part_of_main(facts)
    place = code_around(facts) or ("the sampler" if is_mostly_sampler(facts) else "")
    limit = limit_of_one_thread(facts)
    mostly = f", mostly in {place}" if place else " other than loading samples"
    why = _why("Main process", f"{in_percent(share)} of the data wait is work in the main process{mostly}")
    alone = f"{_ONE_THREAD}, mostly in {place}" if place else _ONE_THREAD
    full = f"{_HELD_IN_TRANSIT[limit]}{where('main_process', facts)}"
    return _cause("main_process", limit, why, alone if limit == "lock" else full)


def batches_are_long_on_the_way(facts: Facts) -> Cause | None:
    """Most of the wait passes between the end of making a batch and its arrival, or in page faults of shared memory.

    Does not apply if the CPUs are saturated by making batches, because finished batches then wait for a CPU too.
    """
    if not facts.workers:
        return None
    share = part_of_wait(facts, "transport_s")
    shared = busiest(facts) == "collate" and kernel_works(facts)
    if (share < MOST or making_takes_the_cpus(facts)) and not shared:
        return None
    if shared:
        why = _why("Shared memory", f"{in_kernel(facts)} while batches are written to it")
        return _cause("transport", "memory", why, _page_fault_clause("transport"))
    if facts.pinning_share >= ONE_THREAD:
        why = _why("Pinning thread", f"busy {in_percent(facts.pinning_share)} of the time; it pins one batch at a time")
        return _cause("transport", "lock", why, f"the pinning thread is saturated{where('transport', facts)}")
    why = _why("Worker-to-main IPC", f"{in_percent(share)} of the data wait is for batches that are already finished")
    limit = limit_of_transport(facts)
    held = limit_of_work(limit, facts) if limit == "cpu" else _HELD_IN_TRANSIT.get(limit)
    if limit == "lock":
        held = _one_at_a_time(facts)
    if limit == "lock" and waits_for_the_gil(facts):
        for_made = f"{in_percent(share)} of the data wait is for finished batches"
        why = _why("GIL", f"{facts.busy_thread} runs in a thread of the main process; {for_made}")
    return _cause(
        "transport", limit, why, f"{held}{where('transport', facts)}" if held else _page_fault_clause("transport")
    )


def _one_at_a_time(facts: Facts) -> str:
    """Why finished batches are handed over one at a time."""
    if waits_for_the_gil(facts):
        return "another thread of the main process holds the GIL"
    if main_process_is_busy(facts):
        return _HELD_IN_TRANSIT["lock"]
    if hand_over_takes_longer(facts):
        return "handing over a batch takes longer than making it"
    return "workers are idle while finished batches are handed over"


def one_worker_has_the_work(facts: Facts) -> Cause | None:
    """For most of the wait, the batch is being made while other workers have neither work nor a finished batch."""
    ended = part_of_wait(facts, "ended_s")
    which = f"other workers are idle for at least {in_percent(idle_in_wait(facts))}"
    if ended >= MOST:
        which = f"a worker has no data left for {in_percent(ended)}"
    return _cause(
        busiest(facts),
        "imbalance",
        _why("Uneven work", f"{which} of the data wait"),
        f"load imbalance: some workers are overloaded, others idle{where(busiest(facts), facts)}",
    )


def memory_is_swapped_out(facts: Facts) -> Cause | None:
    """Most of the working time passes until the processes' own memory comes back from swap."""
    if not waits_for_swap(facts):
        return None
    stage = stage_of(most_blocked(facts), is_loader=facts.is_loader)
    who, whose = ("workers wait", "their") if facts.workers else ("the main process waits", "its")
    faults = (facts.loads.major_faults_per_s if facts.loads else None) or 0.0
    taken = f"page faults take {in_percent(fault_share(facts))} of {whose} working time"
    clause = f"memory is swapped out: {who} for it in {stage_name(stage)}"
    return _cause(stage, "memory", _why("Swap", f"{taken} ({faults:,.0f} major faults/s)"), clause)


def workers_are_blocked_on_a_lock(facts: Facts) -> Cause | None:
    """Threads or processes that could run wait for others while CPUs are idle."""
    if waits_for_a_process(facts):
        why = _why("Other process", f"{facts.fed_by} takes most of the loading time, waiting for another process")
        return _cause(most_blocked(facts), "lock", why, "another process sends data too slowly")
    if shares_the_gil(facts):
        return _gil_serializes(busiest(facts), cpus_of_workers(facts), facts)
    if at_a_lock(facts):
        why = _why("Lock", f"workers blocked on a lock in {in_percent(facts.blocked_on_share('lock'))} of checks")
        return _cause(most_blocked(facts), "lock", why, f"a lock serializes {stage_name(most_blocked(facts))}")
    if facts.loads is None or not threads_take_turns(facts):
        return None
    total = facts.loads.on_cpu_share + (facts.library_share or 0.0)
    return _gil_serializes(most_blocked(facts), total, facts)  # the main thread waits where its other threads work


def _gil_serializes(stage: str, cpus: float, facts: Facts) -> Cause:
    why = _why("GIL", f"all threads together use {cpus:.2f} CPUs: one runs at a time")
    if not facts.is_loader:
        return _cause("main_process", "lock", why, f"{_ONE_THREAD} by the GIL")
    return _cause(stage, "lock", why, f"the GIL serializes {stage_name(stage)}")


def workers_are_blocked(facts: Facts) -> Cause | None:
    """Most of the working time is a wait for a device or a network, or would be without other programs."""
    share, alone = facts.blocked_at_work, blocked_by_itself(facts)
    stage, inside = most_blocked(facts), None
    if not facts.wall_s:
        stage = stage_of(stage, is_loader=facts.is_loader)
    elif stage in ("sample", "decode"):
        stage, inside = "read", _STAGES[stage]  # no other stage of a sample waits for a device
    blocked_s = facts.blocked_s if share >= BLOCKED else partial(stage_blocked_s, facts)
    longest_s = max(map(blocked_s, facts.wall_s), default=0.0)
    per_sample = f", {in_seconds(longest_s)}/sample" if facts.wall_s and not facts.from_outside else ""
    who, whose = ("workers wait", "their") if facts.workers else ("the main process waits", "its")
    place = f"; {who}" if stage == "main_process" else f"; {who} in {stage_name(stage)}"
    if facts.tail_share >= MOST:
        stage, inside, place = "stragglers", None, where("stragglers", facts)
    limit, size = _limit_of_storage(facts)
    line = _mostly_in(facts, share)
    without_others = f" (est. {in_percent(alone)} without other programs)" if share < BLOCKED else ""
    why = f"{who} in the kernel for {in_percent(share)} of {whose} working time{without_others}{per_sample}{size}{line}"
    found = _cause(stage, limit, _why("Blocked", why), f"{limit.replace('_', ' ')}{place}")
    return replace(found, read_inside=inside)


def _mostly_in(facts: Facts, blocked: float) -> str:
    """The line of the user's own code that takes most of the blocked time, even if all other time was blocked."""
    line = facts.hot_line
    if line is None or line.share - (1 - blocked) < MOST * blocked:
        return ""
    return f"; mostly in {line.file}:{line.line}"


def _limit_of_storage(facts: Facts) -> tuple[Limit, str]:
    """Whether the wait is for bytes or for requests, and the evidence for it."""
    if grows_with_bytes(facts):
        return "storage_bandwidth", "; longer for larger files"
    if facts.bytes_share is None and facts.bytes_read >= LARGE_FILE_BYTES:
        return "storage_bandwidth", f"; {facts.bytes_read / 2**20:.1f} MiB/sample"
    if facts.bytes_share is not None:
        return "storage_latency", "; independent of file size"
    if facts.more_are_faster or facts.from_outside:  # from outside, this doubt is a reason for lower confidence
        return "storage_latency", ""
    return "storage_latency", "; may also be a bandwidth limit"


def kernel_zeroes_pages(facts: Facts) -> Cause | None:
    """Most of the CPU time is spent in the kernel, on allocating and releasing memory pages."""
    if not kernel_works(facts):
        return None
    return _cause(busiest(facts), "memory", _why("Page faults", in_kernel(facts)), _page_fault_clause(busiest(facts)))


def work_fills_its_cpus(facts: Facts) -> Cause | None:
    """The work itself is the limit: more workers help if CPUs are idle, cheaper stages if they are not."""
    if not facts.cpu_s and facts.loads is None:
        return None
    stage = "stragglers" if facts.tail_share >= MOST else stage_of(busiest(facts), is_loader=facts.is_loader)
    limit = limit_of_cpus(facts)
    if limit == "workers" and no_worker_would_help(facts):
        limit = "cpu"
    return _cause(stage, limit, _work_done(stage, facts), f"{limit_of_work(limit, facts)}{where(stage, facts)}")


def _work_done(stage: str, facts: Facts) -> Evidence:
    """The stage's share of the work, and the CPUs in use; without a known share, the CPUs alone."""
    if stage == "stragglers":
        return _why(label_of(stage), f"{in_percent(facts.tail_share)} of loading time; {cpus_in_use(facts)}")
    share = share_of_cpu(facts)
    if not share:
        return _why("CPUs busy", cpus_alone(facts))
    return _why(label_of(stage), f"{in_percent(share)} of CPU time per sample; {cpus_in_use(facts)}")


RULES: tuple[Callable[[Facts], Cause | None], ...] = (
    epochs_begin_too_often,
    finished_batches_wait,
    quota_holds_back,
    memory_is_swapped_out,
    threads_outnumber_cpus,
    main_process_works_alone,
    batches_are_long_on_the_way,
    one_worker_has_the_work,
    workers_are_blocked_on_a_lock,
    workers_are_blocked,
    kernel_zeroes_pages,
    work_fills_its_cpus,
)
