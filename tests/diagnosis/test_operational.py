"""The tightest resource names the bound, and another number of workers is a what-if."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.operational import bounds_in_words, operational_bounds
from loaderbench.records import WorkerStates

FACTS = Facts(
    workers=1,
    cpus=2,
    samples_per_s=400,
    batch_samples=10,
    cpu_s={"decode": 2e-3, "read": 1e-4},
    wall_s={"decode": 2e-3, "read": 4e-4},
    own_cpus=1.0,
    next_cpu_s=1e-3,
)


def test_one_worker_is_the_bound_until_there_are_as_many_as_cpus() -> None:
    one, four = operational_bounds(FACTS, 1000), operational_bounds(FACTS, 1000, workers=4)
    assert one.tightest == ("workers", pytest.approx(1 / 2.4e-3))
    assert four.tightest == ("cpus", pytest.approx(800))
    assert one.main_process == pytest.approx(10_000)
    assert list(one.known) == ["workers", "cpus", "demand", "main_process"]


def test_waiting_for_a_cpu_is_no_work_of_the_worker() -> None:
    crowded = replace(
        FACTS,
        workers=4,
        wall_s={"decode": 8e-3},
        loads=WorkerStates(on_cpu_share=0.25, run_queue_share=0.75, blocked_share=0.0),
    )
    assert operational_bounds(crowded).workers == pytest.approx(4 / 2e-3)


def test_without_workers_the_main_process_is_the_worker() -> None:
    assert operational_bounds(replace(FACTS, workers=0)).main_process is None
    assert operational_bounds(replace(FACTS, workers=0)).workers == pytest.approx(1 / 2.4e-3)


def test_with_workers_in_its_place_the_main_process_makes_no_samples() -> None:
    alone = replace(FACTS, workers=0, next_cpu_s=0.06, batch_samples=32.0)
    assert operational_bounds(alone, workers=4).main_process is None


def test_what_is_not_known_is_left_out_and_said_by_nobody() -> None:
    nothing = operational_bounds(Facts(workers=2, cpus=2))
    assert nothing.tightest is None
    assert bounds_in_words(nothing) == ()
    (said,) = bounds_in_words(operational_bounds(FACTS, 500))
    assert said.about == "limits"
    assert str(said) == ("Throughput limits: workers 417, target 500, CPUs 800, main process 10,000 samples/s")
