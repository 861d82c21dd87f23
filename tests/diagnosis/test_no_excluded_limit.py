"""Whatever the facts are, they exclude no limit that is named, and no advice makes more of what is idle.

What excludes a limit is written here once more, from what the limit means, so a lost condition is noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, note, settings
from random_facts import PARTS, Draws, draws

from loaderbench.diagnosis.bottlenecks import with_measured
from loaderbench.diagnosis.cause import Cause, find_cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import narrow_mask
from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.thresholds import (
    BLOCKED,
    FAULT_S,
    HUGE_FAULT_S,
    IDLE,
    IDLE_CPUS,
    LOCKED,
    MOST,
    NOTICED,
    PART_OF_CPUS,
    QUEUED,
    RUNNABLE,
    SPARE_CPUS,
    THROTTLED,
)
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import Bottleneck, Interval, Limit, Recommendation, Verdict
from loaderbench.remedies import Diagnosis, Findings, candidates_for, recommend

STORAGE: tuple[Limit, ...] = ("storage_latency", "storage_bandwidth")
OF_SAMPLES = ("read", "decode", "transform", "sample", "collate")
TAKE_MEMORY = {"memory_cache", "page_faults", "cold_cache", "more_workers", "workers_beyond_cores", "deeper_prefetch"}
OF_DECODING = {"faster_decoder", "scaled_decode", "gpu_decode", "gpu_decode_dali", "jpeg_draft"}
A_LITTLE = 0.14  # of the CPU time: less than any remedy of a stage asks for


def idle(facts: Facts) -> float:
    """Workers that ended, or have no work: that no longer than their main threads were blocked."""
    without_work = min(facts.idle_share or 0.0, facts.loads.blocked_share if facts.loads else 1.0)
    return facts.ended_share + (1 - facts.ended_share) * without_work if facts.workers else 0.0


def idle_meanwhile(facts: Facts) -> float:
    """The least part of the wait in which they were idle."""
    return (idle(facts) - (1 - facts.wait_share)) / facts.wait_share if facts.wait_share else 0.0


def maybe_idle(facts: Facts) -> bool:
    """Workers that do not run, for an unknown reason."""
    states = facts.loads
    unseen = facts.workers > 0 and facts.idle_share is None and states is not None
    return unseen and states is not None and states.on_cpu_share + states.run_queue_share < MOST


def of_wait(facts: Facts, *names: str) -> float:
    whole_s = sum(getattr(facts.parts, name) for name in PARTS) if facts.parts else 0.0
    return sum(getattr(facts.parts, name) for name in names) / whole_s if whole_s else 0.0


def has_no_data_left(facts: Facts) -> bool:
    """Whether some worker can make no batch for most of the wait."""
    return facts.workers > 0 and of_wait(facts, "ended_s") >= MOST


def free_cpus(facts: Facts) -> float:
    """CPUs that this program does not use, or only keeps awake."""
    return facts.cpus if facts.own_cpus is None else facts.cpus - facts.own_cpus + facts.library_cpus


def room_for_a_worker(facts: Facts) -> float:
    """CPUs that must be free for more workers to matter."""
    return max(min(SPARE_CPUS, MOST * facts.cpus), PART_OF_CPUS * facts.cpus)


def others_hold(facts: Facts) -> bool:
    own = facts.cpus if facts.own_cpus is None else min(facts.own_cpus, facts.cpus)
    enough = max(IDLE_CPUS, PART_OF_CPUS * own)
    few_queue = facts.waited_for_cpu >= QUEUED and facts.runnable_threads <= facts.cpus
    kept_away = (facts.throttled_share or 0.0) >= THROTTLED or narrow_mask(facts) is not None
    missing = (facts.idle_cpus or 0.0) < enough or (few_queue and not kept_away)
    return (facts.others_cpus or 0.0) >= enough and missing


def runs_less_than_it_is_blocked(facts: Facts) -> bool:
    """Of its working time, without what other programs take."""
    if facts.workers and facts.loads is not None:
        working = 1 - min(facts.idle_share or 0.0, 0.9)
        return facts.loads.on_cpu_share / working <= facts.blocked_at_work + 1e-9
    if not facts.wall_s:
        assert facts.loads is not None
        return facts.loads.on_cpu_share <= facts.wait_share * facts.blocked_at_work + 1e-9
    return sum(facts.cpu_s.values()) / sum(facts.wall_s.values()) <= facts.blocked_at_work + 1e-9


def faults_cost(facts: Facts) -> float:
    """CPUs that page faults could take at most."""
    faults = (facts.loads.minor_faults_per_s if facts.loads else None) or 0.0
    return faults * FAULT_S + min(faults, facts.huge_faults_per_s) * HUGE_FAULT_S


def kernel(facts: Facts) -> float:
    """CPUs that are in the kernel."""
    if facts.loads is None:
        return 0.0
    used = facts.loads.on_cpu_share + (facts.loads.other_threads_cpu_share or 0.0)
    return (facts.loads.system_share or 0.0) * used * max(1, facts.workers)


def made_by(facts: Facts) -> float:
    """CPUs that make batches."""
    return sum(facts.cpu_s.values()) * facts.samples_per_s * facts.ranks / facts.ranks_of_rate


def at_locks(facts: Facts) -> bool:
    """All blocked time of the loading processes was on locks."""
    seen = (facts.loads.blocked_on if facts.loads else None) or {}
    others = sum(seen.get(kind, 0.0) for kind in ("device", "storage", "page_fault", "own_threads"))
    return facts.workers > 0 and seen.get("lock", 0.0) > 0 and others == 0


def check_workers(facts: Facts, _: Cause) -> None:
    assert idle(facts) < IDLE
    assert not maybe_idle(facts)
    assert not facts.more_are_no_faster
    assert free_cpus(facts) >= room_for_a_worker(facts) - 1e-9
    assert not others_hold(facts)
    if facts.workers == 0 and facts.loads is not None:
        shares = (facts.loads.on_cpu_share, facts.loads.run_queue_share)
        of_others = (facts.loads.other_threads_cpu_share, facts.loads.children_cpu_share)
        assert sum(shares) + sum(share or 0.0 for share in of_others) >= MOST * facts.wait_share


def check_cpu(facts: Facts, _: Cause) -> None:
    useless = facts.workers == 0 and (facts.workers_are_slower or facts.tiny_batches)
    useless = useless and not facts.more_are_faster
    assert useless or facts.more_are_no_faster or free_cpus(facts) < room_for_a_worker(facts) + 1e-9
    assert not others_hold(facts)


def check_oversubscription(facts: Facts, _: Cause) -> None:
    assert facts.idle_cpus is None or facts.idle_cpus < MOST * facts.cpus
    if facts.fewer_are_faster or facts.one_thread_is_faster:
        assert facts.runnable_threads >= facts.cpus
        return
    assert facts.waited_for_cpu >= QUEUED
    assert facts.runnable_threads >= RUNNABLE * facts.cpus
    more_than_one = facts.loads is None or (facts.loads.other_threads_cpu_share or 1.0) > 0
    assert not facts.fewer_are_no_faster or (more_than_one and not facts.one_thread_is_no_faster)


def check_quota(facts: Facts, _: Cause) -> None:
    allowed = facts.loads.allowed_cpus if facts.loads else None
    throttled = (facts.throttled_share or 0.0) >= THROTTLED
    assert throttled or (allowed is not None and allowed < facts.cpus_online)
    if not throttled and facts.loads and facts.waited_for_cpu < QUEUED:
        used = facts.loads.on_cpu_share * max(1, facts.workers)
        assert 0.8 * (allowed or 0) < used < 1.2 * (allowed or 0), "no thread waits, and the mask is not full"


def check_storage(facts: Facts, cause: Cause) -> None:
    assert facts.blocked_at_work >= BLOCKED or (others_hold(facts) and runs_less_than_it_is_blocked(facts))
    assert not at_locks(facts)
    assert not facts.fed_by, "another process makes the data"
    assert facts.workers == 0 or facts.loads is None or facts.idle_share is not None, "blocked for what?"
    grows = facts.bytes_share is not None and facts.bytes_share >= MOST
    assert not (grows and cause.limit == "storage_latency")
    assert not (facts.bytes_share == 0.0 and cause.limit == "storage_bandwidth")


def check_lock(facts: Facts, cause: Cause) -> None:
    if cause.stage == "transport":
        assert of_wait(facts, "transport_s") >= MOST
    elif cause.stage == "main_process":
        assert facts.workers == 0 or of_wait(facts, "main_process_s", "not_begun_s") >= MOST - 1e-9
    elif not cause.is_measured:
        assert free_cpus(facts) >= room_for_a_worker(facts) - 1e-9
        assert idle(facts) < IDLE


def check_order(facts: Facts, _: Cause) -> None:
    assert facts.workers > 1
    assert of_wait(facts, "order_s") >= MOST


def check_startup(facts: Facts, _: Cause) -> None:
    assert facts.startup_share >= NOTICED


def check_swap(facts: Facts) -> None:
    """Its own memory is in swap and comes back from there, by page faults in which it is blocked."""
    states = facts.loads
    assert states is not None
    assert facts.blocked_at_work > 0 or (states.system_share or 0.0) >= MOST
    assert (facts.swap_faults_per_s or 0.0) >= MOST * (states.major_faults_per_s or 0.0) > 0
    assert sum(one.swapped_bytes or 0 for one in (states, facts.main) if one) > 0
    seen = states.blocked_on or {}
    in_reads = (states.read_bytes_per_s or 0.0) >= (facts.swapped_in_bytes_per_s or 0.0)
    in_faults = seen.get("page_fault", 0.0) > 0 or (seen.get("storage", 0.0) > 0 and not in_reads)
    asleep = sum(share for kind, share in seen.items() if kind != "running")
    was_unseen = facts.workers == 0 and states.blocked_share > asleep  # it holds the GIL in a fault, and samples itself
    assert in_faults or was_unseen or (states.system_share or 0.0) >= MOST


def check_memory(facts: Facts, cause: Cause) -> None:
    if cause.clause.startswith("memory is swapped out"):
        check_swap(facts)
        return
    assert 0 < MOST * kernel(facts) <= faults_cost(facts) * (1 + 1e-9)
    assert cause.stage != "transport" or facts.workers > 0
    assert idle(facts) < IDLE or kernel(facts) >= MOST * facts.wait_share


def check_neighbors(facts: Facts, cause: Cause) -> None:
    assert others_hold(facts)
    if facts.loads and not facts.workers and not facts.wall_s:
        assert facts.loads.on_cpu_share + facts.loads.run_queue_share >= MOST * facts.wait_share
    assert cause.stage not in OF_SAMPLES or idle(facts) < IDLE


def check_imbalance(facts: Facts, _: Cause) -> None:
    assert facts.workers > 1
    assert idle_meanwhile(facts) >= IDLE - 1e-9 or has_no_data_left(facts)
    assert of_wait(facts, "making_s") >= MOST


EXCLUSIONS: dict[Limit, Callable[[Facts, Cause], None]] = {
    "workers": check_workers,
    "cpu": check_cpu,
    "oversubscription": check_oversubscription,
    "quota": check_quota,
    "storage_latency": check_storage,
    "storage_bandwidth": check_storage,
    "lock": check_lock,
    "order": check_order,
    "startup": check_startup,
    "memory": check_memory,
    "neighbors": check_neighbors,
    "imbalance": check_imbalance,
}


def check_limit(facts: Facts, cause: Cause) -> None:
    EXCLUSIONS[cause.limit](facts, cause)
    waits_on = ("order", "imbalance", "startup", "lock")
    if cause.stage in OF_SAMPLES and cause.limit not in waits_on:
        has_none = idle_meanwhile(facts) > IDLE + 1e-9 or has_no_data_left(facts)
        assert not has_none, "the workers' own work is named, and they have none"
    assert cause.stage != "transport" or facts.workers > 0
    are_full = free_cpus(facts) < room_for_a_worker(facts)
    if cause.stage == "transport" and cause.limit == "cpu" and are_full and not cause.is_measured:
        assert made_by(facts) < MOST * (facts.own_cpus or 0.0), "most CPUs make batches, which have no CPU to travel by"
    if cause.stage == "stragglers":
        assert cause.limit == "order" or facts.tail_share >= MOST


def check_measured(before: Cause, after: Cause, found: Sequence[Bottleneck]) -> None:
    """A stage that another one beats beyond both intervals is not named, where both were made free."""
    named = next((one for one in found if one.stage == (after.read_inside or after.stage)), None)
    if named is None:
        return
    for one in found:
        same = one.stage == "collate" and before.stage == "transport" and before.limit == "memory"
        lo, hi = one.gain_if_free.lo or 0.0, named.gain_if_free.hi or 0.0
        assert same or not lo > max(1.0, hi) or after.stage == "transport" == before.stage == one.stage, (named, one)
    if after.is_measured:
        assert (named.gain_if_free.lo or 0.0) > 1


def diagnosed(facts: Facts, folder: dict[str, object] | None, pinned: bool) -> Diagnosis:
    wait = Interval(facts.wait_share, facts.wait_share, facts.wait_share)
    rate = Interval(facts.samples_per_s, facts.samples_per_s, facts.samples_per_s)
    verdict: Verdict = decide(
        Subject({"num_workers": facts.workers}, rate, wait, is_best=True, facts=facts), "none", None, 0
    )
    config = {"batch_size": 32, "num_workers": facts.workers, "pin_memory": pinned}
    return Diagnosis(verdict, facts, config, options=folder, files=100, shared_memory_bytes=1 << 33, accelerator=True)


def check_advice(found: Diagnosis) -> None:
    """Each open advice, and each change that a trial would make."""
    facts, limit = found.facts, found.verdict.limit
    told = recommend(
        Findings([], [], None, found.config, {}, True, diagnosis=replace(found, profile=True), profile=True)
    )
    changes = [(one.id, one.change) for one in told if one.status == "open"]
    changes += [(one.id, one.change) for one in candidates_for(found)]
    assert not found.is_swapped or not TAKE_MEMORY & {name for name, _ in changes}
    for name, change in changes:
        workers = change.get("num_workers", facts.workers)
        assert isinstance(workers, int)
        if workers > facts.workers:
            check_more_workers(facts, limit, name)
        if workers < facts.workers:
            assert name in ("fewer_workers", "no_workers_for_tiny_samples"), "it says more"
            crowded = facts.workers * facts.ranks > facts.cpus
            assert facts.tiny_batches or crowded or facts.fewer_are_faster or found.is_swapped
            assert facts.tiny_batches or facts.fewer_are_faster or not facts.fewer_are_no_faster
        if name in OF_DECODING:
            whole_s = sum(facts.cpu_s.values())
            assert facts.cpu_s.get("decode", 0.0) >= A_LITTLE * whole_s or found.verdict.stage == "decode"
        if "worker_threads" in change:
            assert not facts.one_thread_is_no_faster
        if "prefetch_factor" in change and found.is_swapped:
            assert change == {"prefetch_factor": 1}
        elif "prefetch_factor" in change:
            assert facts.workers > 1
            assert of_wait(facts, "order_s") >= MOST
        if "worker_affinity" in change:
            assert (facts.throttled_share or 0.0) < THROTTLED, "a wider mask uses up a quota faster"
    check_words(told, facts)


def check_more_workers(facts: Facts, limit: Limit | None, name: str) -> None:
    assert limit in (("lock",) if name == "process_loader" else ("workers", "storage_latency")), (name, limit)
    assert idle(facts) < IDLE, name
    useless = facts.workers_are_slower or facts.tiny_batches
    assert facts.more_are_faster or not (facts.workers == 0 and useless), name


def check_words(told: Sequence[Recommendation], facts: Facts) -> None:
    titles, ids = {one.title for one in told}, {one.id for one in told}
    assert "background_thread" not in ids or (facts.busy_thread and idle(facts) >= IDLE) or maybe_idle(facts)
    starts_slowly = facts.startup_s is not None and facts.sampler_start_s >= MOST * facts.startup_s
    assert "chunked_sampler" not in ids or starts_slowly
    assert "larger_epochs" not in ids or not starts_slowly
    assert "feeding_process" not in ids or (facts.fed_by and idle(facts) < IDLE)
    assert "Raise the CPU quota" not in titles or (facts.throttled_share or 0.0) >= THROTTLED
    threads = next((one for one in told if one.id == "library_threads"), None)
    less_is_faster = facts.fewer_are_faster or facts.one_thread_is_faster
    of_workers = facts.loads if facts.workers else None
    fill_cpus = of_workers is not None and (of_workers.other_threads_cpu_share or 0.0) >= LOCKED
    assert threads is None or less_is_faster or fill_cpus or facts.runnable_threads >= RUNNABLE * facts.cpus


FOLDERS = (
    None,
    {"kind": "image_folder", "root": ".", "decoder": "pillow", "transform": "imagenet_train", "normalize": "worker"},
)


def check_everything(draws: Draws) -> Cause | None:
    facts, found = draws.facts(), draws.freed()
    note(f"{facts}\n{found}")
    cause = find_cause(facts)
    if cause is not None:
        check_limit(facts, cause)
        measured = with_measured(cause, facts, found)
        assert measured is not None
        check_measured(cause, measured, found)
        if measured.limit != cause.limit:
            check_limit(facts, measured)
    check_advice(diagnosed(facts, draws.one(*FOLDERS), draws.yes()))
    return cause


@settings(max_examples=200)
@given(draws)
def test_no_limit_is_named_that_the_facts_exclude_and_no_advice_adds_to_what_is_idle(drawn: Draws) -> None:
    check_everything(drawn)


@pytest.mark.slow
def test_nor_of_very_many_and_each_limit_occurs_among_them() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=4_000)
    @given(draws)
    def look(drawn: Draws) -> None:
        cause = check_everything(drawn)
        seen[cause.limit if cause else "none"] += 1

    look()
    assert set(seen) == {*EXCLUSIONS, "none"}, seen
