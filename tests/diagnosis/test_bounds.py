"""Ceilings, bounds of operational analysis, and parts of a wait: each from the figures it is made of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from test_cause import DECODING, parts, states
from test_operational import FACTS
from test_thresholds import DISTURBED

from loaderbench.diagnosis.cpu_use import cpus_left
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.isolation import find_ceiling
from loaderbench.diagnosis.limits import (
    busiest,
    code_around,
    is_mostly_sampler,
    limit_of_one_thread,
    most_blocked,
    own_part_of_main,
    part_of_wait,
    share_of_cpu,
    stage_blocked_s,
)
from loaderbench.diagnosis.operational import bounds_in_words, operational_bounds
from loaderbench.diagnosis.ranking import Subject
from loaderbench.records import CodeAround, Config, Interval, Isolation, IsolationRun

ALONE = Facts(workers=0, cpus=2, next_s=1.0, wall_s={"decode": 0.01, "read": 0.005}, batch_samples=20)


def test_a_main_process_that_loads_has_for_itself_what_no_stage_takes() -> None:
    assert own_part_of_main(ALONE) == pytest.approx(0.7)
    assert own_part_of_main(replace(ALONE, next_s=0.6)) == pytest.approx(0.5)
    assert own_part_of_main(replace(ALONE, next_s=0.1)) == 0.0
    assert own_part_of_main(replace(ALONE, next_s=None)) == 0.0


def test_beside_processes_that_load_the_main_one_has_for_itself_what_it_computes() -> None:
    foreign = replace(ALONE, is_loader=False, processes=2, next_cpu_s=0.25, next_s=0.5)
    assert own_part_of_main(foreign) == 0.5
    assert own_part_of_main(replace(foreign, processes=0)) == 0.0
    assert own_part_of_main(replace(foreign, next_cpu_s=None)) == 0.0


def test_a_stage_waits_for_a_cpu_no_longer_than_the_kernel_says() -> None:
    """Stacks, sampled from outside, say 8% on a CPU; the kernel says 1%, and 15% in the run queue."""
    by_stacks = replace(
        DISTURBED,
        wall_s={"sample": 0.94, "collate": 0.06},
        cpu_s={"sample": 0.08},
        loads=states(0.012, 0.155),
    )
    assert stage_blocked_s(by_stacks, "sample") == pytest.approx(0.86 - 0.155)
    assert most_blocked(by_stacks) == "sample"
    idle_half = replace(by_stacks, idle_share=0.5)
    assert stage_blocked_s(idle_half, "sample") == pytest.approx(0.86 - 0.31)
    agrees = replace(by_stacks, loads=states(0.08, 0.16))
    assert stage_blocked_s(agrees, "sample") == pytest.approx(0.86 - 0.16)


def test_code_around_the_loader_is_named_from_half_of_what_the_main_process_adds_on() -> None:
    in_workers = replace(ALONE, workers=2, parts=parts(main_process_s=0.6, not_begun_s=0.2, transport_s=0.2))
    for facts, half_s in ((ALONE, 0.35), (in_workers, 0.02)):
        for wall_s, place in ((0.99 * half_s, ""), (1.01 * half_s, "prepared (train.py:8)")):
            around = CodeAround(place="prepared (train.py:8)", wall_s=wall_s)
            assert code_around(replace(facts, around=around)) == place
        assert not code_around(facts)


def test_the_sampler_is_named_from_half_of_what_the_main_process_adds_on() -> None:
    in_workers = replace(ALONE, workers=2, parts=parts(main_process_s=0.6, not_begun_s=0.2, transport_s=0.2))
    around = CodeAround(place="prepared (train.py:8)", wall_s=0.01)
    for facts, half_s in ((ALONE, 0.35), (in_workers, 0.02), (replace(in_workers, around=around), 0.03)):
        assert not is_mostly_sampler(replace(facts, sampler_s=0.99 * half_s))
        assert is_mostly_sampler(replace(facts, sampler_s=1.01 * half_s))


def test_with_workers_the_main_process_has_its_own_parts_of_the_wait() -> None:
    facts = replace(ALONE, workers=2, parts=parts(main_process_s=0.5, not_begun_s=0.25, making_s=0.25))
    assert own_part_of_main(facts) == pytest.approx(0.75)
    assert own_part_of_main(replace(facts, parts=None)) == 0.0


def test_one_thread_that_loads_waits_where_its_cpu_time_is_less_than_half_of_its_time() -> None:
    busy = replace(ALONE, next_cpu_s=0.5, own_cpus=1.95)
    assert limit_of_one_thread(busy) == "cpu"
    assert limit_of_one_thread(replace(busy, next_cpu_s=0.49)) == "lock"
    assert limit_of_one_thread(replace(busy, next_cpu_s=None)) == "lock"
    assert limit_of_one_thread(replace(busy, next_s=None)) == "cpu"


def test_a_part_of_no_wait_is_none() -> None:
    assert part_of_wait(replace(DECODING, parts=parts()), "order_s") == 0.0
    assert part_of_wait(DECODING, "order_s") == 0.0


CLOCK_S = 1e-9
"""The least that a clock tells apart."""


@given(st.lists(st.just(0.0) | st.floats(CLOCK_S, 100), min_size=5, max_size=5).filter(any))
def test_the_parts_of_a_wait_are_all_of_it(seconds: list[float]) -> None:
    names = ("not_begun_s", "making_s", "order_s", "transport_s", "main_process_s")
    facts = replace(DECODING, parts=parts(**dict(zip(names, seconds, strict=True))))
    assert sum(part_of_wait(facts, name) for name in names) == pytest.approx(1.0)


def test_the_stages_that_cost_most_are_named_and_else_the_sample() -> None:
    facts = replace(ALONE, cpu_s={"read": 1e-3, "decode": 3e-3}, wall_s={"read": 9e-3, "decode": 4e-3})
    assert (busiest(facts), most_blocked(facts), share_of_cpu(facts)) == ("decode", "read", 0.75)
    unknown = replace(ALONE, cpu_s={}, wall_s={})
    assert (busiest(unknown), most_blocked(unknown), share_of_cpu(unknown)) == ("sample", "sample", 0.0)
    assert share_of_cpu(replace(ALONE, cpu_s={"read": 0.0})) == 0.0


def test_all_cpus_are_left_where_their_use_is_not_known() -> None:
    assert cpus_left(ALONE) == 2
    assert cpus_left(replace(ALONE, own_cpus=1.5)) == 0.5


def test_the_cpus_bound_by_what_was_used_of_them_and_else_by_the_stages() -> None:
    assert operational_bounds(FACTS).cpus == pytest.approx(2 / (1.0 / 400))
    assert operational_bounds(replace(FACTS, own_cpus=None)).cpus == pytest.approx(2 / 2.1e-3)
    assert operational_bounds(replace(FACTS, samples_per_s=0.0)).cpus == pytest.approx(2 / 2.1e-3)
    assert operational_bounds(replace(FACTS, own_cpus=None, cpu_s={})).cpus is None


def test_a_stage_takes_no_less_than_its_cpu_time() -> None:
    waits = replace(FACTS, loads=states(0.1, 0.9), workers=1, wall_s={"decode": 2e-3})
    assert operational_bounds(waits).workers == pytest.approx(1 / 2e-3)
    assert operational_bounds(replace(waits, cpu_s={})).workers == pytest.approx(1 / 2e-4)


def test_bounds_of_nothing_are_not_known() -> None:
    empty = operational_bounds(replace(FACTS, wall_s={}, next_cpu_s=0.0))
    assert (empty.workers, empty.main_process, empty.demand) == (None, None, None)
    assert operational_bounds(FACTS, 500.0).demand == 500.0
    assert operational_bounds(FACTS, workers=0).main_process is None
    assert bounds_in_words(operational_bounds(replace(FACTS, wall_s={}, next_cpu_s=None))) == ()
    assert bounds_in_words(operational_bounds(replace(FACTS, next_cpu_s=None)))


CONFIG: Config = {"num_workers": 2}


def subject(rate: float, wait: float = 0.5) -> Subject:
    return Subject(CONFIG, Interval(rate, None, None), Interval(wait, None, None), is_best=True)


def replayed(rate: Interval | None, trials: int = 2) -> Isolation:
    run = IsolationRun(
        name="replay_host",
        time_s=None,
        samples_per_s=rate,
        trials=tuple(map(str, range(trials))),
        not_measured={} if rate else {"samples_per_s": "its trial failed"},
    )
    other = replace(run, name="loader_warm", samples_per_s=Interval(9.0, 9.0, 9.0))
    return Isolation(
        config=CONFIG, per="batch", rounds=trials, runs=(other, run), transfer_s=None, fetch_s=None, interference_s=None
    )


def test_headspace_lies_between_nothing_and_all() -> None:
    for rate, headspace in ((250.0, 0.75), (1000.0, 0.0), (2000.0, 0.0)):
        found, _ = find_ceiling(None, "", subject(rate), "emulated", 1000.0)
        assert found is not None
        assert (found.samples_per_s, found.headspace) == (1000.0, headspace)
        assert "samples_per_s_interval" in found.not_measured


def test_a_replay_of_one_round_has_no_interval_and_counts_as_one() -> None:
    found, _ = find_ceiling(replayed(Interval(500.0, None, None), 1), "", subject(250.0), "model", None)
    assert found is not None
    assert (found.samples_per_s_interval, found.headspace) == (None, 0.5)
    assert found.basis.endswith("1 round")
    assert "samples_per_s_interval" in found.not_measured
    several, _ = find_ceiling(replayed(Interval(500.0, 490.0, 510.0)), "", subject(250.0), "target", None)
    assert several is not None
    assert several.basis.endswith("2 rounds")
    assert (several.samples_per_s_interval, several.not_measured) == (Interval(500.0, 490.0, 510.0), {})


def test_a_replay_that_failed_leaves_its_reason() -> None:
    assert find_ceiling(replayed(None), "", subject(1.0), "model", None) == (
        None,
        "cached batches were not replayed: its trial failed",
    )


def test_without_a_subject_or_a_consumer_there_is_no_ceiling() -> None:
    assert find_ceiling(None, "", None, "emulated", 1.0) == (None, "nothing was measured")
    assert find_ceiling(None, "", subject(1.0), "none", None) == (None, "nothing consumes the batches")


@pytest.mark.parametrize(("wait", "known"), [(0.998, True), (0.999, False), (1.0, False), (0.0, True)])
def test_a_loop_s_own_pace_is_known_where_it_did_anything_but_wait(wait: float, known: bool) -> None:
    found, _ = find_ceiling(None, "", subject(10.0, wait), "loop", None)
    assert (found is not None) == known
    if found is not None:
        assert found.samples_per_s == pytest.approx(10.0 / (1 - wait))
