"""Whatever the facts are, no sentence of a verdict contradicts another, nor the facts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as some

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import cpus_left, disturbed
from loaderbench.diagnosis.shortage import Shortage
from loaderbench.diagnosis.thresholds import SPARE_CPUS
from loaderbench.diagnosis.verdict import Subject, decide
from loaderbench.records import Interval, Verdict, WaitParts, WorkerStates

shares = some.floats(0.0, 1.0)
seconds = some.floats(1e-6, 0.1)
STAGES = ("read", "decode", "transform", "collate", "sample")
ROUNDED = 0.11  # two figures with one decimal each
SHORTAGE = Shortage(
    shared=True, limit_bytes=64 << 20, config={"num_workers": 4}, needed_bytes=150 << 20, most_bytes=150 << 20
)


@some.composite
def worker_states(draw: some.DrawFn) -> WorkerStates:
    on_cpu = draw(shares)
    queued = draw(some.floats(0.0, 1.0 - on_cpu))
    return WorkerStates(
        on_cpu_share=on_cpu,
        run_queue_share=queued,
        blocked_share=1.0 - on_cpu - queued,
        other_threads_cpu_share=draw(some.none() | some.floats(0.0, 4.0)),
        runnable_threads=draw(some.none() | some.floats(0.0, 16.0)),
        system_share=draw(some.none() | shares),
        minor_faults_per_s=draw(some.none() | some.floats(0.0, 1e6)),
        allowed_cpus=draw(some.none() | some.integers(1, 8)),
        blocked_on=draw(some.none() | some.fixed_dictionaries(dict.fromkeys(("lock", "device", "queue"), shares))),
    )


@some.composite
def all_facts(draw: some.DrawFn) -> Facts:
    """Facts as one machine could have them: what is used, by whomever, and what is idle add up to its CPUs."""
    cpus = draw(some.sampled_from([0.5, 1.0, 2.0, 8.0]))
    own = draw(shares) * cpus
    others = draw(shares) * (cpus - own)
    wall_s = draw(some.dictionaries(some.sampled_from(STAGES), seconds))
    workers = draw(some.integers(0, 8))
    names = ("not_begun_s", "making_s", "order_s", "transport_s", "main_process_s")
    return Facts(
        workers=workers,
        cpus=cpus,
        cpus_online=8,
        wait_share=draw(shares),
        samples_per_s=draw(some.floats(1.0, 1e5)),
        batch_samples=draw(some.none() | some.floats(1.0, 512.0)),
        wall_s=wall_s,
        cpu_s={name: whole_s * draw(shares) for name, whole_s in wall_s.items()},
        loads=draw(some.none() | worker_states()),
        main=draw(some.none() | worker_states()),
        idle_share=draw(shares) if workers else None,
        own_cpus=draw(some.none() | some.just(own)),
        idle_cpus=cpus - own - others,
        others_cpus=others,
        throttled_share=draw(some.none() | shares),
        parts=draw(some.none() | some.builds(WaitParts, batches=some.just(100), **dict.fromkeys(names, seconds))),
        next_s=draw(some.none() | seconds),
        next_cpu_s=draw(some.none() | seconds),
        bytes_per_sample=draw(some.none() | some.floats(1.0, 1e8)),
        bytes_share=draw(some.none() | shares),
        tail_share=draw(shares),
        startup_share=draw(shares),
        startup_s=draw(some.none() | seconds),
        transfer_share=draw(shares),
    )


def verdict_of(facts: Facts, shortage: Shortage | None = None) -> Verdict:
    wait = Interval(facts.wait_share, facts.wait_share, facts.wait_share)
    rate = Interval(facts.samples_per_s, facts.samples_per_s, facts.samples_per_s)
    subject = Subject({"num_workers": facts.workers}, rate, wait, is_best=True, facts=facts)
    return decide(subject, "emulated", 1000.0, 0, shortage=shortage)


def figure(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text)
    return float(found[1]) if found else None


def check_that_no_more_cpus_are_free_and_busy_than_there_are(facts: Facts) -> None:
    found = verdict_of(facts)
    free = figure(r"([\d.]+) CPUs free for workers", found.headline)
    for line in found.evidence:
        busy, of = figure(r"([\d.]+) of [\d.]+ CPUs busy", line), figure(r"[\d.]+ of ([\d.]+) CPUs busy", line)
        spinning = figure(r"([\d.]+) of them spinning", line) or 0.0
        if free is not None and busy is not None and of is not None:
            assert free <= of - busy + spinning + ROUNDED, (found.headline, line)


def check_that_cpus_are_saturated_only_where_this_program_leaves_none(facts: Facts) -> None:
    found = verdict_of(facts)
    if "CPUs saturated" in found.headline:
        assert cpus_left(facts) < SPARE_CPUS
        assert not disturbed(facts)
    if found.limit == "workers" and facts.own_cpus is not None:
        assert "saturated" not in found.headline


def check_that_more_workers_fail_to_fit_only_where_they_would_help(facts: Facts) -> None:
    found = verdict_of(facts, SHORTAGE)
    said = "more workers do not fit in /dev/shm (64 MiB)" in found.headline
    assert said == (found.limit == "workers")
    assert any(part.about == "shortage" for part in found.evidence_parts) == (found.bound != "compute")


def check_that_no_share_is_above_all_and_no_figure_is_missing(facts: Facts) -> None:
    found = verdict_of(facts)
    for line in (found.headline, *found.evidence, *found.against):
        assert not re.search(r"\bnan\b|\binf\b|None|-\d", line), line
        of_cpu_time = figure(r"(\d+)% of CPU time", line)
        assert of_cpu_time is None or of_cpu_time <= 100, line


CHECKS = (
    check_that_no_more_cpus_are_free_and_busy_than_there_are,
    check_that_cpus_are_saturated_only_where_this_program_leaves_none,
    check_that_more_workers_fail_to_fit_only_where_they_would_help,
    check_that_no_share_is_above_all_and_no_figure_is_missing,
)  # each looks at the same facts: to draw them takes longer than to look


@settings(max_examples=200)
@given(all_facts())
def test_no_sentence_contradicts_another_nor_the_facts(facts: Facts) -> None:
    for check in CHECKS:
        check(facts)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(all_facts())
def test_nor_does_one_of_very_many(facts: Facts) -> None:
    for check in CHECKS:
        check(facts)
