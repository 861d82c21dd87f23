"""Each rule finds its cause from the facts that show it, and none when these are missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.cause import find_cause
from loaderbench.diagnosis.cpu_use import workers_that_fit
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import blocked_by_itself, disturbed
from loaderbench.records import Evidence, WaitParts, WorkerStates


def states(on_cpu: float, queued: float = 0.0, **others: object) -> WorkerStates:
    known = {"runnable_threads": on_cpu + queued, "allowed_cpus": 2, "system_share": 0.1, **others}
    return WorkerStates(on_cpu_share=on_cpu, run_queue_share=queued, blocked_share=1 - on_cpu - queued, **known)  # type: ignore[arg-type]


NO_REASON = Evidence("cause", "", "")
MAIN = states(0.05, runnable_threads=0.1)
DECODING = Facts(
    workers=1,
    cpus=2,
    cpus_online=2,
    wait_share=0.6,
    samples_per_s=400,
    batch_samples=32,
    cpu_s={"read": 1e-4, "decode": 2e-3, "transform": 5e-4},
    wall_s={"read": 1e-4, "decode": 2e-3, "transform": 5e-4},
    loads=states(0.99, runnable_threads=1.0),
    main=MAIN,
    idle_share=0.0,
    own_cpus=1.05,
    idle_cpus=0.9,
    others_cpus=0.05,
)
BLOCKED = replace(
    DECODING,
    wall_s={"sample": 1e-2, "decode": 1e-3},
    cpu_s={"sample": 1e-5, "decode": 1e-3},
    loads=states(0.09, blocked_on={"device": 0.9, "running": 0.1}),
    own_cpus=0.1,
    idle_cpus=1.9,
)


SHORT_EPOCHS = replace(DECODING, startup_s=0.2, startup_share=0.8, wait_share=0.3, first_making_s=0.12)


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        (SHORT_EPOCHS, ("decode", "workers")),  # making the first batch takes most of the boundary
        (replace(SHORT_EPOCHS, first_making_s=0.0), ("startup", "startup")),
        (replace(SHORT_EPOCHS, first_making_s=0.08), ("startup", "startup")),
        (replace(SHORT_EPOCHS, samples_per_s=100), ("startup", "startup")),  # longer epochs would wait for no batch
        (replace(SHORT_EPOCHS, workers=8), ("startup", "startup")),
    ],
)
def test_making_the_first_batch_is_no_startup_if_longer_epochs_would_wait_as_well(
    facts: Facts, cause: tuple[str, str]
) -> None:
    found = find_cause(facts)
    assert found is not None
    assert (found.stage, found.limit) == cause


@pytest.mark.parametrize(
    ("sampler_s", "clause"),
    [
        (0.09, "worker startup delays the first batch of every epoch"),
        (0.11, "the sampler delays the first batch of every epoch"),
    ],
)
def test_a_sampler_that_takes_most_of_each_start_is_named(sampler_s: float, clause: str) -> None:
    found = find_cause(replace(SHORT_EPOCHS, first_making_s=0.0, sampler_start_s=sampler_s))
    assert found is not None
    assert found.clause == clause


def of_threads(**blocked_on: float) -> Facts:
    """Two loading threads of one process that use 1.0 CPUs together."""
    loads = states(0.5, blocked_on=blocked_on, are_threads=True)
    return replace(DECODING, workers=2, loads=loads, wall_s={"decode": 4e-3}, cpu_s={"decode": 2e-3})


def parts(**shares: float) -> WaitParts:
    names = ("not_begun_s", "making_s", "order_s", "transport_s", "main_process_s")
    return WaitParts(batches=100, **{name: shares.get(name, 0.0) * 0.05 for name in names})


def cause_of(facts: Facts) -> tuple[str, str | None]:
    cause = find_cause(facts)
    assert cause is not None
    return cause.stage, cause.limit


CASES = {
    "one worker decodes, a CPU is idle": (DECODING, ("decode", "workers")),
    "workers fill the CPUs": (replace(DECODING, workers=2, own_cpus=1.95, idle_cpus=0.0), ("decode", "cpu")),
    "more workers than CPUs": (
        replace(DECODING, workers=6, loads=states(0.3, 0.7, runnable_threads=6.0), own_cpus=1.9, idle_cpus=0.0),
        ("decode", "oversubscription"),
    ),
    "more workers of all ranks than CPUs": (
        replace(
            DECODING, workers=2, ranks=4, loads=states(0.3, 0.7, runnable_threads=2.0), own_cpus=1.9, idle_cpus=0.0
        ),
        ("decode", "oversubscription"),
    ),
    "a quota throttles": (replace(DECODING, throttled_share=0.7, own_cpus=0.5), ("decode", "quota")),
    "workers share one CPU": (
        replace(DECODING, workers=2, loads=states(0.5, 0.5, allowed_cpus=1), main=states(0.05, allowed_cpus=2)),
        ("decode", "quota"),
    ),
    "samples blocked on storage": (BLOCKED, ("read", "storage_latency")),
    "the longer the more bytes": (replace(BLOCKED, bytes_share=0.9), ("read", "storage_bandwidth")),
    "large files of one size": (replace(BLOCKED, bytes_per_sample=5e6), ("read", "storage_bandwidth")),
    "threads of one process that wait for one another": (of_threads(lock=0.5, running=0.5), ("decode", "lock")),
    "threads of one process that wait for a device": (
        replace(of_threads(device=0.5, running=0.5), wall_s={"read": 2e-3, "decode": 2e-3}),
        ("read", "storage_latency"),
    ),
    "processes that use one CPU together by chance": (
        replace(of_threads(lock=0.2, running=0.8), loads=states(0.5, blocked_on={"lock": 0.2, "running": 0.8})),
        ("decode", "workers"),
    ),
    "a lock": (
        replace(BLOCKED, workers=2, loads=states(0.1, blocked_on={"device": 0.45, "lock": 0.45, "running": 0.1})),
        ("sample", "lock"),
    ),
    "threads that take turns": (
        replace(
            BLOCKED,
            loads=states(0.05, other_threads_cpu_share=0.95, runnable_threads=1.0),
            own_cpus=1.0,
            bytes_share=None,
        ),
        ("sample", "lock"),
    ),
    "finished batches wait": (
        replace(DECODING, workers=2, parts=parts(order_s=0.8, making_s=0.2)),
        ("stragglers", "order"),
    ),
    "batches on their way": (replace(DECODING, parts=parts(transport_s=0.9, making_s=0.1)), ("transport", "workers")),
    "batches in line for the thread that pins": (
        replace(DECODING, parts=parts(transport_s=0.9, making_s=0.1), main=states(0.2, pinning_share=0.97)),
        ("transport", "lock"),
    ),
    "batches on their way while workers are idle": (
        replace(DECODING, wait_share=0.9, loads=states(0.05), idle_share=0.9, parts=parts(transport_s=0.9)),
        ("transport", "lock"),
    ),
    "one of two workers has all the data": (
        replace(DECODING, workers=2, wait_share=0.9, loads=states(0.5), idle_share=0.5, parts=parts(making_s=0.9)),
        ("decode", "imbalance"),
    ),
    "one of two workers has ended, for it had little data": (
        replace(DECODING, workers=2, wait_share=0.9, loads=states(0.98), ended_share=0.5, parts=parts(making_s=0.9)),
        ("decode", "imbalance"),
    ),
    "a quota throttles the hand-over": (
        replace(DECODING, throttled_share=0.7, loads=states(0.05), idle_share=0.9, parts=parts(transport_s=0.9)),
        ("transport", "quota"),
    ),
    "the sampler": (replace(DECODING, parts=parts(main_process_s=0.9, making_s=0.1)), ("main_process", "lock")),
    "batches nobody begun": (replace(DECODING, parts=parts(not_begun_s=0.9, making_s=0.1)), ("main_process", "lock")),
    "epochs that begin": (replace(DECODING, startup_s=0.5, startup_share=0.6), ("startup", "startup")),
    "pages of memory": (
        replace(DECODING, cpu_s={"sample": 9e-3}, loads=states(0.99, system_share=0.8, minor_faults_per_s=4e6)),
        ("sample", "memory"),
    ),
    "shared memory": (
        replace(DECODING, cpu_s={"collate": 9e-3}, loads=states(0.99, system_share=0.8, minor_faults_per_s=4e6)),
        ("transport", "memory"),
    ),
    "no workers": (replace(DECODING, workers=0, loads=states(0.99)), ("decode", "workers")),
    "no workers, and none would help": (
        replace(DECODING, workers=0, loads=states(0.99), workers_are_slower=True),
        ("decode", "cpu"),
    ),
    "no workers, waiting for threads that wait": (
        replace(
            BLOCKED,
            workers=0,
            idle_share=None,
            loads=states(0.09, blocked_on={"lock": 0.9, "running": 0.1}, other_threads_cpu_share=0.02),
        ),
        ("read", "storage_latency"),
    ),
    "fed by a process while no CPU is left": (
        replace(BLOCKED, workers=0, idle_share=None, fed_by="Queue.get", own_cpus=1.95, idle_cpus=0.0),
        ("decode", "cpu"),
    ),
    "no workers, tiny samples": (
        replace(DECODING, workers=0, loads=states(0.99), wall_s={"collate": 1e-5}, cpu_s={"collate": 1e-5}),
        ("collate", "cpu"),
    ),
    "no workers, a slow sampler": (
        replace(DECODING, workers=0, loads=states(0.99), next_s=1.0, next_cpu_s=1.0),
        ("main_process", "lock"),
    ),
    "the main process of a custom loader": (
        replace(DECODING, workers=0, is_loader=False, processes=2, next_s=0.1, next_cpu_s=0.09, loads=states(0.9)),
        ("main_process", "lock"),
    ),
    "slow samples without order": (replace(BLOCKED, tail_share=0.8), ("stragglers", "storage_latency")),
}


@pytest.mark.parametrize("case", CASES)
def test_each_cause_is_found_from_its_facts(case: str) -> None:
    facts, expected = CASES[case]
    assert cause_of(facts) == expected


def test_finished_batches_are_the_cause_from_half_of_the_wait_on() -> None:
    mostly = replace(DECODING, workers=2, parts=parts(order_s=0.51, making_s=0.49))
    assert cause_of(mostly) == ("stragglers", "order")
    assert cause_of(replace(mostly, parts=parts(order_s=0.49, making_s=0.51))) == ("decode", "workers")


def test_workers_are_called_blocked_from_half_of_their_working_time_on() -> None:
    assert cause_of(replace(BLOCKED, loads=states(0.49))) == ("read", "storage_latency")
    assert cause_of(replace(BLOCKED, loads=states(0.51))) == ("decode", "workers")


def test_fewer_workers_are_not_advised_when_they_were_no_faster() -> None:
    many = CASES["more workers than CPUs"][0]
    assert cause_of(replace(many, fewer_are_no_faster=True)) == ("decode", "cpu")


def test_threads_of_libraries_may_compete_although_fewer_workers_are_no_faster() -> None:
    many = CASES["more workers than CPUs"][0]
    threads = replace(many, loads=replace(many.loads, other_threads_cpu_share=0.8, runnable_threads=12.0))
    assert cause_of(replace(threads, fewer_are_no_faster=True)) == ("decode", "oversubscription")
    assert cause_of(replace(threads, fewer_are_no_faster=True, one_thread_is_no_faster=True)) == ("decode", "cpu")
    assert cause_of(replace(threads, one_thread_is_no_faster=True)) == ("decode", "oversubscription")


def test_of_many_cpus_a_tenth_has_to_be_left_for_more_workers_to_matter() -> None:
    full, with_room = (
        replace(DECODING, workers=32, cpus=32.0, own_cpus=own, idle_cpus=32 - own, loads=states(own / 32))
        for own in (29.0, 26.0)
    )
    assert cause_of(full) == ("decode", "cpu")
    assert cause_of(with_room) == ("decode", "workers")
    assert workers_that_fit(with_room) > 32
    assert cause_of(replace(with_room, more_are_no_faster=True)) == ("decode", "cpu")


def test_of_many_cpus_others_disturb_from_a_tenth_on() -> None:
    shared = replace(DECODING, workers=23, cpus=32.0, own_cpus=21.0, idle_cpus=1.0, others_cpus=10.0)
    assert cause_of(shared) == ("decode", "neighbors")
    assert not disturbed(replace(shared, others_cpus=2.0))
    assert not disturbed(replace(shared, idle_cpus=2.2))
    assert not disturbed(replace(shared, workers=4, own_cpus=4.0, idle_cpus=0.5)), "which more workers could use"


def test_a_thread_that_queues_though_cpus_are_idle_at_times_waits_for_others() -> None:
    """Half of its time goes to the run queue: it is blocked for 40%, and would be for 80% on a quiet machine."""
    queueing = replace(BLOCKED, loads=states(0.1, 0.5), main=MAIN, idle_cpus=0.5, others_cpus=1.4)
    assert disturbed(queueing)
    assert cause_of(queueing) == ("read", "storage_latency")
    assert not disturbed(replace(queueing, others_cpus=0.2)), "too few to matter"
    assert not disturbed(replace(queueing, loads=states(0.1, 0.5, runnable_threads=2.5))), "its own threads queue"
    assert not disturbed(replace(queueing, throttled_share=0.5)), "a quota keeps them waiting"


def test_where_others_hold_the_cpus_they_are_the_limit() -> None:
    busy_machine = replace(DECODING, idle_cpus=0.0, others_cpus=0.95)
    assert disturbed(busy_machine)
    assert cause_of(busy_machine) == ("decode", "neighbors")
    assert not disturbed(replace(busy_machine, idle_cpus=30.0))


def test_blocked_workers_are_still_blocked_on_a_busy_machine() -> None:
    assert cause_of(replace(BLOCKED, idle_cpus=0.0, others_cpus=1.9)) == ("read", "storage_latency")


def test_time_in_a_run_queue_that_other_programs_cause_is_not_the_loaders_own() -> None:
    """Of a main process that reads: 40% blocked, 25% on a CPU, and 35% waiting for one that others hold."""
    reading = {"wall_s": {"read": 8e-3, "collate": 2e-3}, "cpu_s": {"read": 5e-4, "collate": 2e-3}}
    beside = replace(
        DECODING, workers=0, loads=states(0.25, 0.35), main=states(0.25, 0.35), wait_share=1.0, idle_share=None,
        idle_cpus=0.1, others_cpus=1.0, own_cpus=0.75, **reading,
    )  # fmt: skip
    assert blocked_by_itself(beside) == pytest.approx(0.4 / 0.65)
    assert cause_of(beside) == ("read", "storage_latency")
    found = find_cause(beside)
    assert found is not None
    assert "40% of its working time (est. 62% without other programs)" in str(found.why)
    assert blocked_by_itself(replace(beside, others_cpus=0.1)) == pytest.approx(0.4)
    many = replace(beside, main=states(0.25, 0.35, runnable_threads=8.0))
    assert blocked_by_itself(many) == pytest.approx(0.4), "eight threads of its own would wait for two CPUs"
    rarely = replace(beside, cpu_s={"read": 4e-3, "collate": 2e-3})
    assert blocked_by_itself(rarely) == rarely.blocked_at_work < 0.25, "too little is sure"


def test_a_stage_that_waits_for_a_cpu_of_others_is_not_what_waits_for_storage() -> None:
    """Of 10 ms, reading takes 2.5 ms without a CPU; transforming runs for 1.5 ms and waits for a CPU for 6 ms."""
    beside = replace(
        DECODING, workers=0, loads=states(0.15, 0.6), main=states(0.15, 0.6), wait_share=1.0, idle_share=None,
        idle_cpus=0.1, others_cpus=1.0, own_cpus=0.75,
        wall_s={"read": 2.5e-3, "transform": 7.5e-3}, cpu_s={"read": 0.0, "transform": 1.5e-3},
    )  # fmt: skip
    found = find_cause(beside)
    assert found is not None
    assert (found.stage, found.limit, found.read_inside) == ("read", "storage_latency", None)
    assert "2.5 ms/sample" in str(found.why)


def test_idle_workers_are_not_too_few() -> None:
    assert cause_of(replace(DECODING, loads=states(0.5), idle_share=0.39)) == ("decode", "workers")
    assert find_cause(replace(DECODING, loads=states(0.5), idle_share=0.4)) is None


def test_workers_that_stand_for_an_unknown_reason_are_neither_busy_nor_blocked() -> None:
    assert find_cause(replace(DECODING, loads=states(0.02), idle_share=None)) is None
    assert cause_of(replace(DECODING, loads=states(0.9), idle_share=None)) == ("decode", "workers")


def test_a_quota_is_not_what_blocked_workers_wait_for() -> None:
    assert cause_of(replace(BLOCKED, throttled_share=0.7)) == ("read", "storage_latency")


def test_page_faults_of_idle_workers_hold_up_no_batch() -> None:
    few = states(0.02, system_share=0.8, minor_faults_per_s=4e6)
    late = replace(DECODING, wait_share=0.9, loads=few, idle_share=0.9, parts=parts(transport_s=0.9))
    assert cause_of(late) == ("transport", "lock")
    assert cause_of(replace(late, loads=replace(few, other_threads_cpu_share=0.9))) == ("transport", "memory")


def test_huge_pages_of_other_programs_explain_no_kernel_time() -> None:
    pages = replace(DECODING, loads=states(0.99, system_share=0.8, minor_faults_per_s=1.0), huge_faults_per_s=1e4)
    assert cause_of(pages) == ("decode", "workers")
    own = replace(pages, loads=states(0.99, system_share=0.8, minor_faults_per_s=1e4))
    assert cause_of(own) == ("decode", "memory")


def test_without_any_fact_no_cause_is_named() -> None:
    assert find_cause(Facts(workers=2, cpus=2)) is None


def test_a_worker_whose_states_are_not_known_is_not_called_blocked_on_full_cpus() -> None:
    unknown = replace(BLOCKED, loads=None, own_cpus=1.9)
    assert cause_of(unknown)[1] == "cpu"
    assert cause_of(replace(unknown, own_cpus=0.2))[1] == "storage_latency"


def test_idle_workers_are_not_blocked() -> None:
    idle = replace(DECODING, loads=states(0.2), idle_share=0.78)
    assert idle.blocked_at_work < 0.1
    assert idle.blocked_on_share("lock") == 0.0


def test_every_cause_says_what_it_follows_from() -> None:
    for facts, _ in CASES.values():
        cause = find_cause(facts)
        assert cause is not None
        assert cause.why


def test_threads_of_libraries_that_wait_awake_fill_no_cpu_that_a_worker_could_have() -> None:
    spinning = states(0.99, other_threads_cpu_share=0.97)
    alone = replace(DECODING, workers=0, loads=spinning, main=spinning, own_cpus=1.96, idle_cpus=0.0)
    cause = find_cause(alone)
    assert cause is not None
    assert (cause.stage, cause.limit) == ("decode", "workers")
    assert "library threads" in cause.why.figures


def test_a_cause_says_in_which_stage_files_are_read() -> None:
    def inside(facts: Facts) -> str | None:
        cause = find_cause(facts)
        assert cause is not None
        return cause.read_inside

    assert inside(BLOCKED) == "sample"
    assert inside(replace(BLOCKED, wall_s={"decode": 1e-2})) == "decode"
    assert inside(replace(BLOCKED, wall_s={"read": 1e-2})) is None
    assert inside(replace(BLOCKED, tail_share=0.8)) is None
    assert inside(DECODING) is None
