"""Memory that is swapped out is named where the loading processes wait for it, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_cause import BLOCKED, cause_of, states

from loaderbench.diagnosis.cause import find_cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.swapping import waits_for_swap
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import Interval, WorkerStates

MIB = 1 << 20


def waiting(page_fault: float = 0.9, **others: object) -> WorkerStates:
    """A worker that is blocked for 90% of its time, mostly in page faults that read from swap."""
    known: dict[str, object] = {
        "blocked_on": {"page_fault": page_fault, "storage": 0.9 - page_fault, "running": 0.1},
        "major_faults_per_s": 1_000.0,
        "read_bytes_per_s": 1e4,
        "swapped_bytes": 600 * MIB,
        **others,
    }
    return states(0.1, **known)


SWAPPED = replace(
    BLOCKED,
    workers=2,
    wall_s={"sample": 1e-2},
    cpu_s={"sample": 1e-3},
    loads=waiting(),
    swap_faults_per_s=1_100.0,
    swapped_in_bytes_per_s=30 * MIB,
    available_bytes=200 * MIB,
)
ALONE = replace(SWAPPED, workers=0, idle_share=None, wait_share=0.9, main=None)


def test_memory_that_is_swapped_out_is_the_limit_of_the_stage_that_waits_for_it() -> None:
    assert cause_of(SWAPPED) == ("sample", "memory")
    assert cause_of(replace(SWAPPED, wall_s={"collate": 1e-2}, cpu_s={"collate": 1e-3})) == ("collate", "memory")
    assert cause_of(ALONE) == ("sample", "memory")


@pytest.mark.parametrize(
    "facts",
    [
        replace(SWAPPED, swap_faults_per_s=490.0),  # a mapped file, and a few old pages
        replace(SWAPPED, swap_faults_per_s=None),
        replace(SWAPPED, loads=waiting(swapped_bytes=0)),  # another program swaps
        replace(SWAPPED, loads=waiting(swapped_bytes=None)),
        replace(SWAPPED, loads=waiting(swapped_bytes=3 * MIB)),  # less than it fetches in a second
        replace(SWAPPED, loads=waiting(major_faults_per_s=0.0)),  # pages in swap that nobody reads
        replace(SWAPPED, loads=waiting(major_faults_per_s=None)),
        replace(SWAPPED, loads=waiting(0.4, read_bytes_per_s=40.0 * MIB)),  # in read()
        replace(SWAPPED, loads=waiting(blocked_on=None)),
        replace(ALONE, loads=waiting(0.4, read_bytes_per_s=40.0 * MIB)),
    ],
)
def test_storage_stays_the_limit_if_the_wait_is_not_for_swapped_memory(facts: Facts) -> None:
    assert cause_of(facts) == ("read", "storage_latency")


@pytest.mark.parametrize(("faults_per_s", "limit"), [(12_000.0, "memory"), (1_000.0, "cpu")])
def test_the_kernel_time_of_swapping_counts_if_the_faults_account_for_it(faults_per_s: float, limit: str) -> None:
    """On a fast disk, making room for a page takes as long as reading it."""
    kernel = waiting(major_faults_per_s=faults_per_s, system_share=0.7)
    busy = replace(kernel, on_cpu_share=0.6, blocked_share=0.4, runnable_threads=0.6)
    facts = replace(SWAPPED, loads=busy, swap_faults_per_s=13e3, own_cpus=1.9, idle_cpus=0.0, workers=1)
    assert cause_of(facts) == ("sample", limit)


@pytest.mark.parametrize(("faults_per_s", "is_named"), [(6_600.0, True), (10.0, False)])
def test_a_main_process_that_holds_the_gil_in_its_faults_is_not_seen_in_them(
    faults_per_s: float, is_named: bool
) -> None:
    unseen = waiting(blocked_on={"running": 0.97, "device": 0.03}, major_faults_per_s=faults_per_s)
    facts = replace(ALONE, loads=replace(unseen, blocked_share=0.6, on_cpu_share=0.4), swap_faults_per_s=7e3)
    assert waits_for_swap(facts) is is_named


def test_sleeps_of_a_main_process_are_seen_and_are_no_faults() -> None:
    asleep = waiting(blocked_on={"running": 0.4, "device": 0.5, "page_fault": 0.1}, major_faults_per_s=6_600.0)
    facts = replace(ALONE, loads=replace(asleep, blocked_share=0.6, on_cpu_share=0.4), swap_faults_per_s=7e3)
    assert not waits_for_swap(facts)


def test_threads_in_page_faults_do_not_compete_for_cpus() -> None:
    in_faults = waiting(blocked_on={"page_fault": 0.18, "running": 0.82}, major_faults_per_s=2e4, system_share=0.8)
    busy = replace(in_faults, on_cpu_share=0.3, run_queue_share=0.5, blocked_share=0.2, runnable_threads=5.0)
    facts = replace(SWAPPED, loads=busy, swap_faults_per_s=2e4, own_cpus=1.9, idle_cpus=0.0, workers=6)
    assert cause_of(facts) == ("sample", "memory")


def test_busy_workers_are_not_judged_by_the_pages_that_they_fetch_now_and_then() -> None:
    busy = states(0.9, blocked_on={"page_fault": 0.1, "running": 0.9}, major_faults_per_s=9.0, swapped_bytes=600 * MIB)
    assert cause_of(replace(SWAPPED, loads=busy, own_cpus=1.9, idle_cpus=0.0)) == ("sample", "cpu")


def test_where_page_faults_look_like_reads_what_was_read_tells_them_apart() -> None:
    hidden = {"storage": 0.9, "running": 0.1}
    assert cause_of(replace(SWAPPED, loads=waiting(blocked_on=hidden))) == ("sample", "memory")
    reads = waiting(blocked_on=hidden, read_bytes_per_s=31.0 * MIB)
    assert cause_of(replace(SWAPPED, loads=reads)) == ("read", "storage_latency")
    unknown = waiting(blocked_on=hidden, read_bytes_per_s=None)
    assert cause_of(replace(SWAPPED, loads=unknown)) == ("read", "storage_latency")


def test_the_memory_of_the_main_process_counts_as_well() -> None:
    main = states(0.05, swapped_bytes=500 * MIB)
    assert cause_of(replace(SWAPPED, loads=waiting(swapped_bytes=0), main=main)) == ("sample", "memory")


def verdict_of(facts: Facts) -> tuple[str, tuple[str, ...]]:
    wait = Interval(0.6, 0.55, 0.65)
    found = decide(Subject({"num_workers": 2}, Interval(9, 8, 10), wait, is_best=True, facts=facts), "model", None, 0)
    return found.headline, found.evidence


def test_the_verdict_says_who_waits_and_how_much_is_in_swap_and_comes_back() -> None:
    main = states(0.05, swapped_bytes=100 * MIB)
    headline, evidence = verdict_of(replace(SWAPPED, main=main))
    assert headline == "memory is swapped out: workers wait for it in other __getitem__ code"
    assert evidence[:3] == (
        "Swap: page faults take 91% of their working time (1,000 major faults/s)",
        "Swapped out: 600 MiB of the workers, 100 MiB of the main process; 30 MiB/s read back",
        "Memory available: 200 MiB",
    )
    assert verdict_of(replace(SWAPPED, memory_limit_bytes=512 * MIB))[1][2] == "Memory limit: 512 MiB"
    headline, evidence = verdict_of(ALONE)
    assert headline == "memory is swapped out: the main process waits for it in other __getitem__ code"
    assert "600 MiB of the main process;" in evidence[1]


def test_the_page_of_the_limit_shows_the_headline() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "verdicts" / "limit-memory.md"
    found = find_cause(replace(SWAPPED, wall_s={"decode": 1e-2}, cpu_s={"decode": 1e-3}))
    assert found is not None
    assert f"\nINPUT-BOUND (high confidence): {found.clause}\n" in page.read_text(encoding="utf-8")


def test_page_faults_that_map_new_memory_are_named_as_before() -> None:
    pages = replace(
        BLOCKED,
        cpu_s={"sample": 9e-3},
        loads=states(0.99, system_share=0.8, minor_faults_per_s=4e6, swapped_bytes=600 * MIB),
    )
    found = find_cause(pages)
    assert found is not None
    assert (found.stage, found.limit) == ("sample", "memory")
    assert found.clause == "page-fault overhead in other __getitem__ code"
    assert not any("Swapped out" in line for line in verdict_of(pages)[1])
