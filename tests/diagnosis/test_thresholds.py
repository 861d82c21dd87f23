"""Where one cause ends and another begins: facts on both sides of every threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_cause import BLOCKED, DECODING, NO_REASON, cause_of, parts, states

from loaderbench.diagnosis.cause import Cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import disturbed
from loaderbench.diagnosis.verdict import speaks_against

StageAndLimit = tuple[str, str | None]
DECODES, BUSY, READS = ("decode", "workers"), ("decode", "cpu"), ("read", "storage_latency")
TWO = replace(DECODING, workers=2)
FULL = replace(TWO, own_cpus=1.95, idle_cpus=0.0)
DISTURBED = replace(DECODING, idle_cpus=0.0, others_cpus=0.95)


def throttled(share: float) -> Facts:
    return replace(DECODING, throttled_share=share, own_cpus=0.5)


def masked(on_cpu: float, queued: float, workers: int = 2) -> Facts:
    """Workers that may use one of two CPUs."""
    return replace(
        DECODING,
        workers=workers,
        loads=states(on_cpu, queued, allowed_cpus=1),
        main=states(0.05, allowed_cpus=2),
    )


def crowd(queued: float, threads: float) -> Facts:
    return replace(FULL, workers=6, loads=states(1 - queued, queued, runnable_threads=threads - 0.1))


def at_a_lock(share: float, own_cpus: float = 0.1) -> Facts:
    looks = {"lock": share, "device": 1 - share}
    return replace(BLOCKED, workers=2, loads=states(0.1, blocked_on=looks), own_cpus=own_cpus)


def taking_turns(on_cpu: float = 0.05, others: float = 0.95, threads: float = 1.0) -> Facts:
    """One worker whose other threads work while its main one is blocked."""
    return replace(
        BLOCKED, loads=states(on_cpu, other_threads_cpu_share=others, runnable_threads=threads), own_cpus=1.0
    )


def alone_and_blocked_on(**looks: float) -> Facts:
    """A main process that loads by itself and is mostly blocked, while its other threads keep a CPU busy."""
    loads = states(0.05, other_threads_cpu_share=0.95, runnable_threads=1.0, blocked_on=looks)
    return replace(BLOCKED, workers=0, loads=loads, main=loads, own_cpus=1.0)


def waiting(**shares: float) -> Facts:
    """Two workers that wait: `shares` name the parts of the wait, and the rest is making batches."""
    return replace(TWO, parts=parts(**shares, making_s=1 - sum(shares.values())))


def kernel(share: float, faults: float = 4e6, huge_faults: float = 0.0) -> Facts:
    """One worker, on a CPU all the time."""
    loads = states(1.0, system_share=share, minor_faults_per_s=faults)
    return replace(DECODING, cpu_s={"sample": 9e-3}, loads=loads, huge_faults_per_s=huge_faults)


def transported(**facts: object) -> Facts:
    return replace(DECODING, parts=parts(transport_s=0.9, making_s=0.1), **facts)  # type: ignore[arg-type]


def sampler(**facts: object) -> Facts:
    """The main process is at its sampler for most of the wait."""
    return replace(waiting(main_process_s=0.9), **facts)  # type: ignore[arg-type]


LOCK = ("sample", "lock")
SIDES: dict[str, tuple[Facts, StageAndLimit, Facts, StageAndLimit]] = {
    "an epoch's beginning is noticed from 5% of the time on": (
        replace(DECODING, wait_share=0.01, startup_s=0.5, startup_share=0.049),
        DECODES,
        replace(DECODING, wait_share=0.01, startup_s=0.5, startup_share=0.05),
        ("startup", "startup"),
    ),
    "an epoch's beginning takes more than all other waits": (
        replace(DECODING, startup_s=0.5, startup_share=0.37),
        DECODES,
        replace(DECODING, startup_s=0.5, startup_share=0.38),
        ("startup", "startup"),
    ),
    "a quota throttles from a tenth of its periods on": (throttled(0.09), DECODES, throttled(0.1), ("decode", "quota")),
    "blocked workers are not limited by a quota": (
        replace(BLOCKED, throttled_share=0.7, loads=states(0.49)),
        READS,
        replace(BLOCKED, throttled_share=0.7, loads=states(0.51)),
        ("decode", "quota"),
    ),
    "a mask holds back what waits for a CPU for 30% of its time": (
        masked(0.1, 0.29, workers=1),
        READS,
        masked(0.1, 0.3, workers=1),
        ("decode", "quota"),
    ),
    "a mask holds back what fills its CPUs": (
        masked(0.84, 0.0, workers=1),
        DECODES,
        masked(0.85, 0.0, workers=1),
        ("decode", "quota"),
    ),
    "two workers fill one CPU together": (masked(0.42, 0.2), DECODES, masked(0.43, 0.2), ("decode", "quota")),
    "a mask as wide as the machine holds nothing back": (
        replace(FULL, loads=states(0.49, 0.3), main=states(0.05)),
        BUSY,
        replace(FULL, loads=states(0.49, 0.3, allowed_cpus=1), main=states(0.05)),
        ("decode", "quota"),
    ),
    "threads outnumber CPUs where they queue for 30% of the time": (
        crowd(0.29, 6.0),
        BUSY,
        crowd(0.3, 6.0),
        ("decode", "oversubscription"),
    ),
    "a quarter more threads than CPUs are too many": (
        crowd(0.7, 2.49),
        BUSY,
        crowd(0.7, 2.5),
        ("decode", "oversubscription"),
    ),
    "on a busy machine it takes twice as many threads": (
        replace(crowd(0.7, 4.99), others_cpus=0.95),
        ("decode", "neighbors"),
        replace(crowd(0.7, 5.0), others_cpus=0.95),
        ("decode", "oversubscription"),
    ),
    "the main process is late from half of the wait on": (
        waiting(main_process_s=0.49),
        DECODES,
        waiting(main_process_s=0.5),
        ("main_process", "lock"),
    ),
    "batches nobody had begun are the main process's, too": (
        waiting(main_process_s=0.25, not_begun_s=0.24),
        DECODES,
        waiting(main_process_s=0.25, not_begun_s=0.26),
        ("main_process", "lock"),
    ),
    "finished batches wait for a slow one from half of the wait on": (
        waiting(order_s=0.49),
        DECODES,
        waiting(order_s=0.5),
        ("stragglers", "order"),
    ),
    "workers are blocked from half of their working time on": (
        replace(BLOCKED, loads=states(0.51)),
        DECODES,
        replace(BLOCKED, loads=states(0.5)),
        READS,
    ),
    "a main process fills the one CPU that it may use": (
        replace(masked(0.84, 0.0, workers=0), wait_share=1.0),
        DECODES,
        replace(masked(0.85, 0.0, workers=0), wait_share=1.0),
        ("decode", "quota"),
    ),
    "two CPUs of four are filled by more than one worker": (
        replace(TWO, cpus=4, cpus_online=4, loads=states(0.84), main=states(0.05, allowed_cpus=4)),
        DECODES,
        replace(TWO, cpus=4, cpus_online=4, loads=states(0.86), main=states(0.05, allowed_cpus=4)),
        ("decode", "quota"),
    ),
    "two workers share one way with a quarter each": (
        replace(BLOCKED, workers=2, bytes_share=0.24),
        READS,
        replace(BLOCKED, workers=2, bytes_share=0.25),
        ("read", "storage_bandwidth"),
    ),
    "transport is the cause from half of the wait on": (
        waiting(transport_s=0.49),
        DECODES,
        waiting(transport_s=0.5),
        ("transport", "workers"),
    ),
    "a lock is seen from a quarter of the looks on": (at_a_lock(0.24), READS, at_a_lock(0.25), LOCK),
    "a lock leaves CPUs idle": (at_a_lock(0.5, own_cpus=1.61), BUSY, at_a_lock(0.5, own_cpus=1.59), LOCK),
    "threads take turns where one CPU is busy": (
        taking_turns(threads=0.84),
        READS,
        taking_turns(threads=0.85),
        ("sample", "lock"),
    ),
    "threads that use more than one CPU take no turns": (
        taking_turns(on_cpu=0.05, others=1.11, threads=1.16),
        READS,
        taking_turns(on_cpu=0.05, others=1.09, threads=1.14),
        ("sample", "lock"),
    ),
    "other threads that do little are no turns": (
        taking_turns(on_cpu=0.62, others=0.24, threads=1.0),
        DECODES,
        taking_turns(on_cpu=0.62, others=0.25, threads=1.0),
        ("sample", "lock"),
    ),
    "a main thread that is hardly blocked takes no turns": (
        taking_turns(on_cpu=0.76, others=0.3),
        DECODES,
        taking_turns(on_cpu=0.74, others=0.3),
        ("sample", "lock"),
    ),
    "bytes are the reason where half of the blocked time grows with them": (
        replace(BLOCKED, bytes_share=0.49),
        READS,
        replace(BLOCKED, bytes_share=0.5),
        ("read", "storage_bandwidth"),
    ),
    "workers that share one way wait for each other's bytes": (
        replace(BLOCKED, workers=3, bytes_share=0.16),
        READS,
        replace(BLOCKED, workers=4, bytes_share=0.16),
        ("read", "storage_bandwidth"),
    ),
    "bytes that are within the noise are no reason": (
        replace(BLOCKED, workers=4, bytes_share=0.149),
        READS,
        replace(BLOCKED, workers=4, bytes_share=0.15),
        ("read", "storage_bandwidth"),
    ),
    "files of one size are large from a MiB on": (
        replace(BLOCKED, bytes_per_sample=2**20 - 1),
        READS,
        replace(BLOCKED, bytes_per_sample=2**20),
        ("read", "storage_bandwidth"),
    ),
    "slow samples are stragglers where they cost half of the work": (
        replace(BLOCKED, tail_share=0.49),
        READS,
        replace(BLOCKED, tail_share=0.5),
        ("stragglers", "storage_latency"),
    ),
    "slow samples are stragglers on a CPU, too": (
        replace(DECODING, tail_share=0.49),
        DECODES,
        replace(DECODING, tail_share=0.5),
        ("stragglers", "workers"),
    ),
    "the kernel works for half of the CPU time": (
        kernel(0.49),
        ("sample", "workers"),
        kernel(0.5),
        ("sample", "memory"),
    ),
    "page faults account for half of the kernel's time, at 2.5 microseconds each": (
        kernel(0.8, faults=159_000.0),
        ("sample", "workers"),
        kernel(0.8, faults=161_000.0),
        ("sample", "memory"),
    ),
    "a fault of a huge page takes 200 microseconds": (
        kernel(0.8, faults=4_000.0, huge_faults=1_940.0),
        ("sample", "workers"),
        kernel(0.8, faults=4_000.0, huge_faults=1_960.0),
        ("sample", "memory"),
    ),
    "system calls are no page faults": (
        kernel(1.0, faults=0.0),
        ("sample", "workers"),
        kernel(1.0),
        ("sample", "memory"),
    ),
    "a worker more has room where 0.4 CPUs are left": (
        replace(TWO, own_cpus=1.61),
        BUSY,
        replace(TWO, own_cpus=1.59),
        DECODES,
    ),
    "batches on their way wait for the CPUs where these are full": (
        transported(own_cpus=1.61, samples_per_s=200),
        ("transport", "cpu"),
        transported(own_cpus=1.59, samples_per_s=200),
        ("transport", "workers"),
    ),
    "batches wait for the CPUs on their way because others are made, where that takes half of them": (
        transported(own_cpus=1.9, samples_per_s=370),
        ("decode", "cpu"),
        transported(own_cpus=1.9, samples_per_s=360),
        ("transport", "cpu"),
    ),
    "batches on their way wait for the main process where it is busy": (
        transported(main=states(0.3, 0.19)),
        ("transport", "workers"),
        transported(main=states(0.3, 0.2)),
        ("transport", "lock"),
    ),
    "a sampler that runs fills a CPU, one that waits does not": (
        sampler(sampler_s=1.0, next_cpu_s=0.49, own_cpus=1.95),
        ("main_process", "lock"),
        sampler(sampler_s=1.0, next_cpu_s=0.5, own_cpus=1.95),
        ("main_process", "cpu"),
    ),
    "a sampler has a CPU where 0.4 are left": (
        sampler(sampler_s=1.0, next_cpu_s=0.9, own_cpus=1.61),
        ("main_process", "cpu"),
        sampler(sampler_s=1.0, next_cpu_s=0.9, own_cpus=1.59),
        ("main_process", "lock"),
    ),
    "a batch is too short for a worker below a millisecond": (
        replace(DECODING, workers=0, wall_s={"decode": 1.01e-3 / 32}, cpu_s={"decode": 1e-3 / 32}),
        DECODES,
        replace(DECODING, workers=0, wall_s={"decode": 0.99e-3 / 32}, cpu_s={"decode": 0.9e-3 / 32}),
        BUSY,
    ),
}


@pytest.mark.parametrize("case", SIDES)
def test_a_threshold_lies_between(case: str) -> None:
    before, below, beyond, above = SIDES[case]
    assert (cause_of(before), cause_of(beyond)) == (below, above)


@pytest.mark.parametrize(
    ("idle", "others", "found"),
    [(0.29, 0.3, True), (0.3, 0.3, False), (0.29, 0.29, False), (None, 0.9, False), (0.0, None, False)],
)
def test_others_disturb_where_they_use_a_third_of_a_cpu_and_leave_less(
    idle: float | None, others: float | None, found: bool
) -> None:
    assert disturbed(replace(DECODING, idle_cpus=idle, others_cpus=others)) == found


def test_where_others_hold_the_cpus_they_limit_what_needs_one() -> None:
    disturbing = {"idle_cpus": 0.0, "others_cpus": 0.95}
    assert cause_of(transported(**disturbing)) == ("transport", "neighbors")
    assert cause_of(sampler(sampler_s=1.0, next_cpu_s=0.9, **disturbing)) == ("main_process", "neighbors")
    assert cause_of(sampler(sampler_s=1.0, next_cpu_s=0.1, **disturbing)) == ("main_process", "lock")


def test_the_kernel_that_works_for_batches_on_their_way_works_for_memory() -> None:
    pages = states(0.99, system_share=0.8, minor_faults_per_s=4e6)
    assert cause_of(transported(loads=pages)) == ("transport", "memory")


def test_reading_is_the_kernel_s_work_and_no_matter_of_memory() -> None:
    reading = replace(kernel(0.8), cpu_s={"read": 9e-3}, wall_s={"read": 9e-3})
    assert cause_of(reading) == ("read", "workers")


def test_a_mask_counts_against_what_the_main_process_may_use_and_else_against_all_cpus() -> None:
    workers = states(0.6, 0.4, allowed_cpus=2)
    assert cause_of(replace(FULL, loads=workers, main=states(0.05, allowed_cpus=4))) == ("decode", "quota")
    assert cause_of(replace(FULL, cpus=4, loads=workers, main=None)) == ("decode", "quota")
    assert cause_of(replace(FULL, loads=workers, main=states(0.05, allowed_cpus=2)))[1] != "quota"
    one = replace(FULL, cpus=1, loads=states(0.6, 0.4, allowed_cpus=1), main=states(0.05, allowed_cpus=1))
    assert cause_of(replace(one, cpus_online=8)) == ("decode", "quota")
    assert cause_of(replace(one, cpus_online=1))[1] != "quota"


def test_threads_of_several_workers_take_turns_where_each_worker_keeps_one_busy() -> None:
    turns = taking_turns()
    assert cause_of(replace(turns, workers=2)) == READS
    assert cause_of(replace(turns, workers=0)) == ("sample", "lock")


def test_exactly_as_many_cpus_as_a_worker_needs_are_enough() -> None:
    least = {"cpus": 0.4, "own_cpus": 0.0, "loads": None}
    assert cause_of(replace(DECODING, **least)) == DECODES  # type: ignore[arg-type]
    assert cause_of(transported(**{**least, "main": None})) == ("transport", "workers")
    assert cause_of(sampler(sampler_s=1.0, next_cpu_s=0.9, **least)) == ("main_process", "lock")
    assert cause_of(replace(at_a_lock(0.5), cpus=0.4, own_cpus=0.0)) == LOCK


def test_a_blocked_stage_is_reading_only_where_it_is_the_sample_or_its_decoding() -> None:
    assert cause_of(replace(BLOCKED, wall_s={"transform": 1e-2})) == ("transform", "storage_latency")
    assert cause_of(replace(BLOCKED, wall_s={"decode": 1e-2})) == READS
    assert cause_of(replace(BLOCKED, wall_s={}, cpu_s={})) == ("sample", "storage_latency")


def test_the_cause_itself_speaks_not_against_it_and_every_other_rule_may() -> None:
    assert speaks_against(replace(BLOCKED, samples_per_s=80), Cause("read", "storage_latency", NO_REASON)) == ()
    assert len(speaks_against(replace(BLOCKED, samples_per_s=80), Cause("decode", "order", NO_REASON))) == 1
    pages = replace(kernel(0.8), samples_per_s=100.0)
    assert len(speaks_against(pages, Cause("sample", "order", NO_REASON))) == 1
    assert speaks_against(pages, Cause("sample", "memory", NO_REASON)) == ()
