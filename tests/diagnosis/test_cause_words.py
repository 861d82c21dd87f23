"""A cause's sentences hold the figures that it follows from."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_cause import BLOCKED, DECODING, parts, states
from test_thresholds import crowd, masked, taking_turns

from loaderbench.diagnosis.cause import Cause, find_cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.headline import in_words
from loaderbench.diagnosis.wording import cpus_in_use, in_kernel, in_seconds
from loaderbench.records import Evidence


def why(facts: Facts) -> str:
    cause = find_cause(facts)
    assert cause is not None
    return str(cause.why)


def said(limit: str, facts: Facts, stage: str = "decode") -> str:
    return in_words(Cause(stage, limit, "BECAUSE"), facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "figures"),
    [
        (replace(DECODING, startup_s=0.5, startup_share=0.6), ("500 ms", "60%")),
        (replace(DECODING, workers=2, parts=parts(order_s=0.8, making_s=0.2)), ("80%",)),
        (replace(DECODING, throttled_share=0.7, own_cpus=0.5), ("70%",)),
        (masked(0.5, 0.5), ("the workers", "1 of 2 CPUs", "50%")),
        (replace(masked(0.5, 0.5), workers=0, wait_share=1.0), ("this process", "1 of 2 CPUs", "50%")),
        (crowd(0.7, 6.0), ("6.0 runnable", "2 CPUs", "70%")),
        (replace(DECODING, workers=2, parts=parts(main_process_s=0.9, making_s=0.1)), ("90%",)),
        (replace(DECODING, parts=parts(transport_s=0.9, making_s=0.1)), ("90%",)),
        (taking_turns(0.05, 0.95), ("1.00 CPUs",)),
        (replace(BLOCKED, loads=states(0.09)), ("workers wait", "91%", "9.99 ms/sample")),
        (replace(BLOCKED, workers=0, loads=states(0.1)), ("the main process waits", "91%")),
        (replace(BLOCKED, loads=states(0.09), wall_s={}, cpu_s={}), ("91% of their working time",)),
        (replace(BLOCKED, bytes_per_sample=5 * 2**20), ("5.0 MiB/sample",)),
        (replace(BLOCKED, bytes_share=0.1), ("independent of file size",)),
        (DECODING, ("Decode: 77% of CPU time per sample", "1.1 of 2 CPUs")),
        (replace(DECODING, cpu_s={}, wall_s={}), ("1.1 of 2 CPUs",)),
    ],
)
def test_a_cause_says_how_much_it_follows_from(facts: Facts, figures: tuple[str, ...]) -> None:
    found = why(facts)
    assert [figure for figure in figures if figure not in found] == []


def test_only_what_is_known_is_said() -> None:
    assert "file size" not in why(BLOCKED)
    assert "/sample" not in why(replace(BLOCKED, loads=states(0.09), wall_s={}, cpu_s={}))
    assert "per sample" not in why(replace(DECODING, cpu_s={}, wall_s={}))


def test_who_is_kept_busy_is_counted() -> None:
    assert said("workers", DECODING).startswith("the only worker is busy")
    assert said("workers", replace(DECODING, workers=2)).startswith("both workers are busy")
    assert said("workers", replace(DECODING, workers=4)).startswith("all 4 workers are busy")
    assert said("workers", replace(DECODING, workers=0)).startswith("one process loads everything")


def test_the_cpus_that_are_left_are_said_where_they_are_known() -> None:
    assert ", 0.9 of 2 CPUs idle;" in said("workers", replace(DECODING, own_cpus=1.1))
    assert "idle" not in said("workers", replace(DECODING, own_cpus=None))


def test_cpus_are_saturated_where_less_than_half_of_them_are_idle_and_else_batches_are_too_small() -> None:
    assert "CPUs saturated" in said("cpu", replace(DECODING, own_cpus=1.01))
    assert "CPUs saturated" in said("cpu", replace(DECODING, own_cpus=None))
    assert "too small for workers" in said("cpu", replace(DECODING, own_cpus=1.0))
    assert "CPUs saturated" in said("cpu", replace(DECODING, cpus=4, own_cpus=2.1))
    assert "too small for workers" in said("cpu", replace(DECODING, cpus=4, own_cpus=2.0))


@pytest.mark.parametrize(
    ("limit", "stage", "why", "clause"),
    [
        (
            "quota",
            "decode",
            "CPU quota: exhausted",
            "CPU quota limits the loader; decode is the largest stage (77% of CPU time)",
        ),
        (
            "quota",
            "decode",
            "CPU affinity: 1 of 2",
            "CPU affinity limits the loader; decode is the largest stage (77% of CPU time)",
        ),
        ("storage_latency", "read", "", "storage latency; workers wait in read"),
        ("storage_bandwidth", "read", "", "storage bandwidth; workers wait in read"),
        ("lock", "decode", "Lock: 60%", "a lock serializes decode"),
        ("lock", "transform", "GIL: 1.0 CPUs", "the GIL serializes transform"),
        ("lock", "main_process", "Main process: 90%", "the main process works in one thread"),
        ("lock", "main_process", "GIL: 1.0 CPUs", "the main process works in one thread (the GIL)"),
        ("memory", "transport", "", "page-fault overhead in worker-to-main IPC"),
        ("startup", "startup", "", "worker startup delays the first batch of every epoch"),
        ("order", "stragglers", "", "head-of-line blocking by slow samples"),
        ("cpu", "transport", "", "CPUs saturated; worker-to-main IPC is the bottleneck"),
        ("cpu", "stragglers", "", "CPUs saturated; a few slow samples dominate"),
        ("cpu", "transform", "", "CPUs saturated; transform is the largest stage"),
    ],
)
def test_each_limit_has_a_clause_of_its_own(limit: str, stage: str, why: str, clause: str) -> None:
    facts = replace(DECODING, own_cpus=2.0)
    assert in_words(Cause(stage, limit, Evidence("cause", *why.partition(": ")[::2])), facts) == clause  # type: ignore[arg-type]


def test_storage_without_workers_keeps_the_main_process_waiting() -> None:
    assert said("storage_latency", replace(DECODING, workers=0), "read").endswith("the main process waits in read")


def test_threads_and_the_cpus_they_compete_for_are_counted() -> None:
    assert said("oversubscription", crowd(0.7, 6.0)).startswith("6 threads compete for 2 CPUs")
    assert said("oversubscription", replace(crowd(0.7, 6.0), cpus=1)).startswith("6 threads compete for 1 CPU;")


def test_a_cause_without_a_limit_and_a_sample_without_parts_say_less() -> None:
    assert in_words(Cause("decode", None, ""), DECODING) == ""
    assert said("cpu", replace(DECODING, cpu_s={}, own_cpus=2.0), "sample") == "CPUs saturated"


def test_a_part_that_the_user_named_is_called_by_that_name() -> None:
    cause = Cause("sample", "workers", "", named="augment")
    assert (cause.work, Cause("sample", "workers", "").work) == ("augment", "sample")
    assert "; augment is the largest stage" in in_words(cause, DECODING)
    named = find_cause(replace(DECODING, cpu_s={"augment": 2e-3}, wall_s={"augment": 2e-3}))
    assert named is not None
    assert (named.stage, named.named) == ("sample", "augment")
    known = find_cause(DECODING)
    assert known is not None
    assert (known.stage, known.named) == ("decode", None)


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
        (0.0123, "12.3 ms"),
        (0.999, "999 ms"),
        (0.9996, "1 s"),
        (1.25, "1.2 s"),
        (9.9, "9.9 s"),
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


def test_threads_of_libraries_are_counted_from_0_4_cpus_on() -> None:
    def spinning(others: float) -> str:
        main = states(0.99, other_threads_cpu_share=others)
        return cpus_in_use(replace(DECODING, workers=0, loads=main, main=main, own_cpus=1.96))

    assert "0.4 of them with library threads" in spinning(0.4)
    assert "threads" not in spinning(0.39)


def test_the_kernel_s_share_comes_with_the_faults_of_a_sample() -> None:
    facts = replace(DECODING, loads=states(0.9, system_share=0.8, minor_faults_per_s=4e5))
    assert in_kernel(facts).startswith("80%")
    assert "1,000 page faults/sample" in in_kernel(facts)
    assert in_kernel(replace(DECODING, loads=None)).startswith("0%")
