"""A cause's sentences hold the figures that it follows from."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_cause import BLOCKED, DECODING, of_threads, parts, states
from test_thresholds import (
    DISTURBED,
    alone_and_blocked_on,
    at_a_lock,
    crowd,
    masked,
    sampler,
    taking_turns,
    throttled,
    transported,
    waiting,
)

from loaderbench.diagnosis.cause import find_cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.wording import available_cpus, cpus_in_use, in_kernel, in_seconds
from loaderbench.records import CodeAround, Hotspot

AROUND = CodeAround(place="prepared (train.py:8)", wall_s=0.045)


def why(facts: Facts) -> str:
    cause = find_cause(facts)
    assert cause is not None
    return str(cause.why)


def headline(facts: Facts) -> str:
    cause = find_cause(facts)
    assert cause is not None
    return cause.clause


@pytest.mark.parametrize(
    ("facts", "figures"),
    [
        (replace(DECODING, startup_s=0.5, startup_share=0.6), ("500 ms", "60%")),
        (replace(DECODING, workers=2, parts=parts(order_s=0.8, making_s=0.2)), ("80%",)),
        (replace(DECODING, throttled_share=0.7, own_cpus=0.5), ("70%",)),
        (masked(0.5, 0.5), ("workers pinned to 1 of 2 CPUs; waiting for a CPU 50% of the time",)),
        (replace(masked(0.5, 0.5), workers=0, wait_share=1.0), ("this process pinned to 1 of 2 CPUs", "50%")),
        (crowd(0.7, 6.0), ("6.0 runnable", "2 CPUs", "70%")),
        (sampler(), ("90% of the data wait is work in the main process other than loading samples",)),
        (
            sampler(around=AROUND),
            ("90% of the data wait is work in the main process, mostly in prepared (train.py:8)",),
        ),
        (replace(DECODING, parts=parts(transport_s=0.9, making_s=0.1)), ("90%",)),
        (transported(main=states(0.2, pinning_share=0.97)), ("97% of the time",)),
        (taking_turns(0.05, 0.95), ("1.00 CPUs: one runs at a time",)),
        (replace(BLOCKED, loads=states(0.09)), ("workers wait", "91%", "9.99 ms/sample")),
        (replace(BLOCKED, workers=0, loads=states(0.1)), ("the main process waits", "91%")),
        (replace(BLOCKED, loads=states(0.09), wall_s={}, cpu_s={}), ("91% of their working time",)),
        (replace(BLOCKED, bytes_per_sample=5 * 2**20), ("5.0 MiB/sample",)),
        (replace(BLOCKED, bytes_share=0.1), ("independent of file size",)),
        (replace(BLOCKED, bytes_share=None), ("may also be a bandwidth limit",)),
        (DECODING, ("Decode: 77% of CPU time per sample", "1.1 of 2 CPUs")),
        (replace(DECODING, cpu_s={}, wall_s={}), ("CPUs busy: 1.1 of 2",)),
    ],
)
def test_a_cause_says_how_much_it_follows_from(facts: Facts, figures: tuple[str, ...]) -> None:
    found = why(facts)
    assert [figure for figure in figures if figure not in found] == []


def test_only_what_is_known_is_said() -> None:
    assert "file size" not in why(BLOCKED)
    assert "/sample" not in why(replace(BLOCKED, loads=states(0.09), wall_s={}, cpu_s={}))
    assert "per sample" not in why(replace(DECODING, cpu_s={}, wall_s={}))


ALONE = replace(DECODING, workers=0, loads=states(0.99))
IN_DECODE = "; decode is the largest stage (77% of CPU time)"
PAGES = states(0.99, system_share=0.8, minor_faults_per_s=4e6)
TINY = {"decode": 1e-5}


def test_who_is_kept_busy_is_counted() -> None:
    assert headline(DECODING).startswith("too few workers: 1 busy, ")
    assert headline(replace(DECODING, workers=2)).startswith("too few workers: 2 busy, ")
    assert headline(replace(DECODING, workers=4, cpus=8, main=states(0.05, allowed_cpus=2))).startswith(
        "too few workers: 4 busy, "
    )
    assert headline(replace(DECODING, workers=4, ended_share=0.25)).startswith("too few workers: 3 of 4 busy, ")
    assert headline(ALONE).startswith("no workers (num_workers=0), ")
    assert headline(replace(ALONE, is_loader=False)).startswith("no workers, ")


def test_the_cpus_that_workers_could_use_are_said_where_they_are_known() -> None:
    assert ", 0.9 CPUs free;" in headline(replace(DECODING, own_cpus=1.1))
    assert "free" not in headline(replace(DECODING, own_cpus=None))
    assert ", 0.2 CPUs free;" in headline(replace(DECODING, own_cpus=1.1, others_cpus=0.7)), "not what others use"


def test_cpus_that_library_threads_wait_on_are_free_for_workers_and_not_called_idle() -> None:
    spinning = states(0.99, other_threads_cpu_share=0.97)
    busy = replace(ALONE, loads=spinning, main=spinning, own_cpus=1.96, idle_cpus=0.0)
    free = "1.0 CPUs free or spinning"
    assert headline(busy) == f"no workers (num_workers=0), {free}{IN_DECODE}"
    assert "2.0 of 2 CPUs busy" in why(busy)
    assert "idle" not in headline(busy)


def test_cpus_are_saturated_only_where_a_worker_would_find_none() -> None:
    full = replace(DECODING, workers=2, idle_cpus=0.0)
    assert headline(replace(full, own_cpus=1.61)) == f"CPUs saturated{IN_DECODE}"
    assert headline(replace(full, own_cpus=1.59)).startswith("too few workers: 2 busy, 0.4 CPUs free;")


@pytest.mark.parametrize(
    ("of_workers", "words"), [({}, ", mostly by the main process"), ({"other_threads_cpu_share": 0.5}, "")]
)
def test_saturated_cpus_are_put_down_to_the_main_process_if_it_uses_more_of_them_than_all_workers(
    of_workers: dict[str, float], words: str
) -> None:
    training = states(0.9, other_threads_cpu_share=0.4)
    loads = states(0.3, queued=0.6, **of_workers)
    full = replace(DECODING, workers=2, idle_cpus=0.0, own_cpus=1.9, main=training, loads=loads)
    assert headline(full) == f"CPUs saturated{words}{IN_DECODE}"


def test_without_workers_a_cpu_limit_is_told_from_small_batches_and_from_workers_that_were_slower() -> None:
    slower = replace(ALONE, workers_are_slower=True)
    tiny = replace(ALONE, wall_s=TINY, cpu_s=TINY)
    assert headline(slower) == f"limited by CPU time; workers do not help{IN_DECODE}"
    assert headline(replace(slower, own_cpus=None)) == f"limited by CPU time; workers do not help{IN_DECODE}"
    none_faster = replace(DECODING, more_are_no_faster=True)
    assert headline(none_faster) == f"limited by CPU time; more workers do not help{IN_DECODE}"
    assert headline(tiny) == "batches too small for workers; decode is the largest stage (100% of CPU time)"
    assert headline(replace(slower, own_cpus=1.95)) == f"CPUs saturated{IN_DECODE}"


@pytest.mark.parametrize(
    ("facts", "clause"),
    [
        (throttled(0.7), f"CPU quota limits the loader{IN_DECODE}"),
        (masked(0.5, 0.5), f"CPU affinity limits the loader{IN_DECODE}"),
        (BLOCKED, "storage latency; workers wait in read"),
        (replace(BLOCKED, bytes_share=0.9), "storage bandwidth; workers wait in read"),
        (replace(BLOCKED, workers=0, loads=states(0.1)), "storage latency; the main process waits in read"),
        (replace(BLOCKED, tail_share=0.8), "storage latency; a few slow samples dominate"),
        (replace(BLOCKED, wall_s={"fetch": 1e-2}), "storage latency; workers wait in fetch"),
        (at_a_lock(0.5), "a lock serializes other __getitem__ code"),
        (taking_turns(), "the GIL serializes other __getitem__ code"),
        (of_threads(lock=0.5, running=0.5), "the GIL serializes decode"),
        (replace(taking_turns(), is_loader=False), "work in the main process is serialized by the GIL"),
        (alone_and_blocked_on(lock=0.9, running=0.1), "the GIL serializes other __getitem__ code"),
        (alone_and_blocked_on(lock=0.1, device=0.3, running=0.6), "the GIL serializes other __getitem__ code"),
        (alone_and_blocked_on(device=0.95, running=0.05), "storage latency; the main process waits in read"),
        (alone_and_blocked_on(lock=0.1, storage=0.9), "storage latency; the main process waits in read"),
        (sampler(), "work in the main process is serialized"),
        (sampler(sampler_s=0.05), "work in the main process is serialized, mostly in the sampler"),
        (sampler(around=AROUND), "work in the main process is serialized, mostly in prepared (train.py:8)"),
        (
            sampler(around=AROUND, sampler_s=0.046),
            "work in the main process is serialized, mostly in prepared (train.py:8)",
        ),
        (sampler(around=replace(AROUND, wall_s=0.022)), "work in the main process is serialized"),
        (sampler(own_cpus=1.9, sampler_s=0.1, next_cpu_s=0.1), "CPUs saturated; the main process is the bottleneck"),
        (replace(DECODING, cpu_s={"decode": 9e-3}, loads=PAGES), "page-fault overhead in decode"),
        (replace(DECODING, cpu_s={"collate": 9e-3}, loads=PAGES), "page-fault overhead in worker-to-main IPC"),
        (replace(DECODING, startup_s=0.5, startup_share=0.6), "worker startup delays the first batch of every epoch"),
        (replace(ALONE, startup_s=0.5, startup_share=0.6), "epochs start slowly"),
        (replace(DECODING, startup_s=0.5, startup_share=0.6, workers_persist=True), "epochs start slowly"),
        (waiting(order_s=0.8), "head-of-line blocking by slow samples"),
        (replace(DECODING, tail_share=0.8, own_cpus=2.0), "CPUs saturated; a few slow samples dominate"),
        (replace(DECODING, cpu_s={}, wall_s={}, own_cpus=2.0), "CPUs saturated"),
        (
            replace(DECODING, cpu_s={"sample": 9e-3, "collate": 1e-3}, sample_is_mostly="read", own_cpus=2.0),
            "CPUs saturated; other __getitem__ code, mostly read, is the largest stage (90% of CPU time)",
        ),
    ],
)
def test_each_rule_has_a_clause_of_its_own(facts: Facts, clause: str) -> None:
    assert headline(facts) == clause


@pytest.mark.parametrize(
    ("facts", "held"),
    [
        (transported(), "finished batches are delayed"),
        (transported(main=states(0.5)), "the main process is busy"),
        (transported(main=states(0.2, pinning_share=0.97)), "the pinning thread is saturated"),
        (transported(main=states(0.2, pinning_share=0.8)), "finished batches are delayed"),
        (transported(own_cpus=1.9, samples_per_s=200), "CPUs saturated"),
    ],
)
def test_batches_in_transit_are_held_by_what_was_seen_and_no_worker_is_called_busy(facts: Facts, held: str) -> None:
    assert headline(facts) == f"{held}; worker-to-main IPC is the bottleneck"


WAITS_FOR_THE_GIL = transported(
    busy_thread="log (train.py:8)", loads=states(0.02), idle_share=0.95, next_s=0.1, next_cpu_s=0.049
)


def test_a_thread_that_keeps_the_gil_from_the_loop_is_named() -> None:
    clause = "another thread of the main process holds the GIL; worker-to-main IPC is the bottleneck"
    assert headline(WAITS_FOR_THE_GIL) == clause
    assert why(WAITS_FOR_THE_GIL) == (
        "GIL: log (train.py:8) runs in a thread of the main process; 90% of the data wait is for finished batches"
    )


@pytest.mark.parametrize(
    "other", [{"busy_thread": ""}, {"next_cpu_s": 0.051}, {"loads": states(0.9), "idle_share": 0.0}]
)
def test_a_loop_that_runs_or_has_busy_workers_does_not_wait_for_the_gil(other: dict[str, object]) -> None:
    assert "the GIL" not in headline(replace(WAITS_FOR_THE_GIL, **other))  # type: ignore[arg-type]


FED = replace(DECODING, fed_by="Queue.get", loads=states(0.1), idle_share=0.0)


def test_workers_that_another_process_feeds_are_not_said_to_wait_for_storage() -> None:
    assert headline(FED) == "another process sends data too slowly"
    assert why(FED) == "Other process: Queue.get takes most of the loading time, waiting for another process"


LINE = Hotspot(function="load", file="data.py", line=41, stage="sample", share=0.9)


@pytest.mark.parametrize(("share", "named"), [(0.9, True), (0.7, True), (0.45, False)])
def test_blocked_time_has_the_line_that_most_of_it_is_spent_at(share: float, named: bool) -> None:
    """Of 0.8 blocked, at least `share` - 0.2 is at the line."""
    at_a_line = replace(BLOCKED, loads=states(0.2), hot_line=replace(LINE, share=share))
    assert ("; mostly in data.py:41" in why(at_a_line)) == named
    assert "mostly" not in why(replace(at_a_line, hot_line=None))


@pytest.mark.parametrize("other", [{"fed_by": ""}, {"own_cpus": 2.0}, {"loads": states(0.9)}])
def test_other_workers_are_not_fed(other: dict[str, object]) -> None:
    assert "another process" not in headline(replace(FED, **other))  # type: ignore[arg-type]


def test_pages_hold_batches_in_transit_too() -> None:
    assert headline(transported(loads=PAGES)) == "page-fault overhead in worker-to-main IPC"


@pytest.mark.parametrize(
    ("threads", "cpus", "clause"),
    [
        (6.0, 2, "6 threads compete for 2 CPUs;"),
        (2.5, 2, "2.5 threads compete for 2 CPUs;"),
        (1.3, 1, "1.3 threads compete for 1 CPU;"),
    ],
)
def test_threads_and_the_cpus_they_compete_for_are_counted(threads: float, cpus: int, clause: str) -> None:
    crowded = replace(crowd(0.7, threads), cpus=cpus, loads=states(0.3, 0.7, runnable_threads=threads - 0.1))
    assert headline(crowded).startswith(clause)


def test_of_what_needs_a_cpu_the_headline_says_that_others_hold_them() -> None:
    held = {"idle_cpus": 0.0, "others_cpus": 0.95}
    for facts, stage in (
        (DISTURBED, "decode is the largest stage (77% of CPU time)"),
        (transported(**held), "worker-to-main IPC is the bottleneck"),
        (sampler(sampler_s=1.0, next_cpu_s=0.9, **held), "the main process is the bottleneck"),
    ):
        assert headline(facts) == f"other programs use CPUs that the loader needs; {stage}"


def test_slow_samples_are_shown_by_their_share_of_loading_time() -> None:
    assert why(replace(DECODING, tail_share=0.62)) == "Slow samples: 62% of loading time; 1.1 of 2 CPUs busy"


def test_a_main_process_that_makes_batches_is_called_that_wherever_its_work_is_shown() -> None:
    beside = replace(ALONE, is_loader=False, cpu_s={"sample": 2e-3}, wall_s={"sample": 2e-3}, samples_per_s=400)
    assert why(beside) == "Main process: 100% of CPU time per sample; 1.1 of 2 CPUs busy"
    assert "the main process is the bottleneck" in headline(beside)


def test_without_a_share_the_cpus_in_use_are_the_line() -> None:
    untimed = replace(DECODING, cpu_s={}, wall_s={})
    assert why(untimed) == "CPUs busy: 1.1 of 2"
    assert why(replace(untimed, own_cpus=None)) == "CPUs busy: not known"


def test_one_main_process_waits_for_its_own_working_time() -> None:
    assert "of its working time" in why(replace(BLOCKED, workers=0, loads=states(0.1)))
    assert "of their working time" in why(BLOCKED)


def test_a_part_that_the_user_named_is_called_by_that_name() -> None:
    named = find_cause(replace(DECODING, cpu_s={"augment": 2e-3}, wall_s={"augment": 2e-3}))
    assert named is not None
    assert (named.stage, named.named, named.work) == ("sample", "augment", "augment")
    assert "; augment is the largest stage" in named.clause
    known = find_cause(DECODING)
    assert known is not None
    assert (known.stage, known.named, known.work) == ("decode", None, "decode")


def test_work_beside_a_loader_of_its_own_is_the_main_process_s_only_where_no_stage_is_known() -> None:
    alone = replace(DECODING, workers=0, is_loader=False, cpu_s={}, wall_s={}, loads=states(0.9))
    cause = find_cause(alone)
    assert cause is not None
    assert cause.stage == "main_process"
    for facts, stage in ((replace(alone, is_loader=True), "sample"), (replace(alone, cpu_s={"decode": 1.0}), "decode")):
        cause = find_cause(facts)
        assert cause is not None
        assert cause.stage == stage


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (7e-18, "under 0.001 ms"),
        (0.0, "0 ms"),
        (2e-6, "0.002 ms"),
        (0.0123, "12.3 ms"),
        (0.999, "999 ms"),
        (0.9995, "1 s"),
        (1.25, "1.2 s"),
        (9.9, "9.9 s"),
        (9.95, "10 s"),
        (10.4, "10 s"),
        (12.4, "12 s"),
        (4321.0, "4,321 s"),
    ],
)
def test_seconds_are_said_with_as_many_digits_as_matter(seconds: float, words: str) -> None:
    assert in_seconds(seconds) == words


def test_cpus_in_use_name_others_only_where_these_disturb() -> None:
    assert cpus_in_use(replace(DECODING, own_cpus=None)) == "CPUs busy: not known"
    assert "0.9" not in cpus_in_use(replace(DECODING, others_cpus=0.9))
    assert "other programs 0.9" in cpus_in_use(replace(DECODING, others_cpus=0.9, idle_cpus=0.0))


def test_threads_of_libraries_are_named_wherever_their_cpus_count_as_free() -> None:
    def spinning(others: float) -> str:
        main = states(0.99, other_threads_cpu_share=others)
        return cpus_in_use(replace(DECODING, workers=0, loads=main, main=main, own_cpus=1.96))

    assert "0.4 of them spinning in library threads" in spinning(0.4)
    assert "0.1 of them spinning in library threads" in spinning(0.06)
    assert "threads" not in spinning(0.04)


def test_the_kernel_s_share_comes_with_the_faults_of_a_sample() -> None:
    facts = replace(DECODING, loads=states(0.9, system_share=0.8, minor_faults_per_s=4e5))
    assert in_kernel(facts).startswith("80%")
    assert "1,000 page faults/sample" in in_kernel(facts)
    assert in_kernel(replace(DECODING, loads=None)).startswith("0%")


def test_one_cpu_is_singular() -> None:
    assert cpus_in_use(replace(DECODING, cpus=1.0, own_cpus=1.0)).startswith("1.0 of 1 CPU busy")
    assert (available_cpus(0.5), available_cpus(1)) == ("0.5 CPUs", "1 CPU")
