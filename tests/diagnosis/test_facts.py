"""Facts are shares of the right time, and zero divides nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from machine import TWO_CPUS
from test_cause import DECODING, states
from test_gathering import SPREAD, trial

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.gathering import gather
from loaderbench.diagnosis.limits import hand_over_takes_longer
from loaderbench.records import (
    Epochs,
    MachineUse,
    RankReadings,
    Reads,
    SampleTimes,
    StageCost,
    Taking,
    Trial,
    WaitParts,
    WorkerStates,
)
from loaderbench.records.words import NOT_READ_TWICE

ALONE = Facts(workers=0, cpus=2)


def gathered(*trials: Trial) -> Facts:
    found = gather(trials, TWO_CPUS)
    assert found is not None
    return found


def test_cpus_are_spare_with_those_that_libraries_hold_awake() -> None:
    assert ALONE.spare_cpus is None
    assert replace(ALONE, own_cpus=0.5).spare_cpus == 1.5
    assert replace(ALONE, own_cpus=3.0).spare_cpus == 0.0
    spinning = replace(ALONE, own_cpus=1.75, main=states(0.99, other_threads_cpu_share=0.5))
    assert (spinning.library_cpus, spinning.spare_cpus) == (0.5, 0.75)
    assert replace(spinning, own_cpus=1.25).library_cpus == 0.25
    assert replace(spinning, own_cpus=0.5).library_cpus == 0.0
    assert replace(spinning, own_cpus=None).library_cpus == 0.0
    assert replace(spinning, workers=1).library_cpus == 0.0
    assert replace(spinning, is_loader=False).library_cpus == 0.0


def test_a_worker_that_waits_for_its_child_programs_works() -> None:
    waiting = states(0.1, children_cpu_share=0.7)
    loads = gathered(trial(1, workers=waiting)).loads
    assert loads is not None
    assert (loads.on_cpu_share, loads.blocked_share) == (pytest.approx(0.8), pytest.approx(0.2))
    busy = gathered(trial(1, workers=replace(waiting, children_cpu_share=1.7))).loads
    assert busy is not None
    assert (busy.on_cpu_share, busy.blocked_share) == (pytest.approx(1.0), pytest.approx(0.0))


def test_a_main_process_that_waits_for_its_child_programs_is_not_blocked() -> None:
    alone = replace(ALONE, wait_share=0.8, wall_s={"sample": 0.01}, cpu_s={"sample": 0.001}, own_cpus=1.0)
    assert replace(alone, loads=states(0.1)).blocked_at_work == pytest.approx(0.9)
    assert replace(alone, loads=states(0.1, children_cpu_share=0.4)).blocked_at_work == pytest.approx(0.4)


def test_threads_that_want_to_run_are_those_of_workers_and_of_the_main_process() -> None:
    both = replace(ALONE, loads=states(0.9, runnable_threads=3.0), main=states(0.1, runnable_threads=0.5))
    assert replace(both, workers=3).runnable_threads == 3.5
    assert both.runnable_threads == 0.5
    assert replace(both, workers=3, main=None).runnable_threads == 3.0
    assert replace(both, main=states(0.1, runnable_threads=None)).runnable_threads == 0.0
    assert replace(both, workers=7).threads_per_loading == 0.5
    assert replace(both, workers=1).threads_per_loading == 3.5
    assert both.threads_per_loading == 0.5


def test_threads_without_work_wait_for_it_at_a_lock_and_that_is_no_lock_of_their_work() -> None:
    seen = {"lock": 0.5, "running": 0.5}
    half_idle = {"decode": StageCost(1e-3, 1e-3)}
    threads = trial(1, config={"loader": "threads", "threads": 2}, samples_per_s=1_000.0, stages=half_idle)
    found = gathered(*[replace(threads, workers=states(0.5, blocked_on=seen, are_threads=True))] * 2)
    assert found.in_threads
    assert found.loads
    assert found.loads.blocked_on == pytest.approx({"lock": 0.0, "queue": 0.5, "running": 0.5})
    processes = gathered(replace(threads, workers=states(0.5, blocked_on=seen)))
    assert not processes.in_threads
    assert processes.loads
    assert processes.loads.blocked_on == seen


@pytest.mark.parametrize("ran", [0.2, 0.9])
def test_samples_of_threads_say_what_they_waited_for_and_the_scheduler_how_long(ran: float) -> None:
    seen = {"lock": (1 - ran) / 2, "device": (1 - ran) / 2, "running": ran}
    busy = {"decode": StageCost(1e-3, 1e-3)}
    threads = trial(1, config={"loader": "threads", "threads": 2}, samples_per_s=2_000.0, stages=busy)
    found = gathered(replace(threads, workers=states(0.5, blocked_on=seen, are_threads=True)))
    assert found.loads
    assert found.loads.blocked_share == 0.5
    assert found.loads.blocked_on == pytest.approx({"lock": 0.25, "device": 0.25, "queue": 0.0, "running": 0.5})


@pytest.mark.parametrize(("transport_s", "longer"), [(0.03, True), (0.01, False)])
def test_handing_over_takes_longer_than_making_only_if_it_does(transport_s: float, longer: bool) -> None:
    parts = WaitParts(
        batches=9, not_begun_s=0.0, making_s=0.0, order_s=0.0, transport_s=transport_s, main_process_s=0.0
    )
    slow = Facts(workers=3, cpus=2, batch_samples=8.0, wall_s={"decode": 2e-3, "collate": 5e-4}, parts=parts)
    assert hand_over_takes_longer(slow) is longer


def test_a_main_process_waited_for_a_cpu_in_the_share_of_time_in_which_it_loads() -> None:
    queued = replace(ALONE, loads=states(0.5, 0.1), wait_share=0.5)
    assert queued.waited_for_cpu == pytest.approx(0.2)
    assert replace(queued, workers=2).waited_for_cpu == pytest.approx(0.1)
    assert replace(queued, wait_share=0.01, loads=states(0.5, 0.02)).waited_for_cpu == pytest.approx(0.4)
    assert replace(queued, wait_share=0.05).waited_for_cpu == 1.0
    assert replace(queued, loads=None).waited_for_cpu == 0.0
    assert replace(ALONE, loads=states(0.5, 0.3)).waited_for_cpu == pytest.approx(0.3)


def test_a_worker_is_blocked_for_a_share_of_the_time_it_has_work() -> None:
    half = replace(ALONE, workers=1, loads=states(0.4), idle_share=0.2)
    assert half.blocked_at_work == pytest.approx(0.4 / 0.8)
    assert replace(half, idle_share=None).blocked_at_work == 0.0, "it may as well have no work"
    assert replace(half, idle_share=0.7).blocked_at_work == 0.0
    idle = replace(half, loads=states(0.05), idle_share=0.99)
    assert idle.blocked_at_work == pytest.approx((0.95 - 0.9) / 0.1)


def test_a_main_process_is_blocked_for_what_its_stages_neither_run_nor_queue() -> None:
    loads = states(0.5, 0.1)
    facts = replace(ALONE, loads=loads, wall_s={"read": 4e-3}, cpu_s={"read": 1e-3})
    assert facts.blocked_at_work == pytest.approx(1 - 0.25 - 0.1)
    assert replace(facts, cpu_s={"read": 9e-3}).blocked_at_work == 0.0
    untimed = replace(facts, wall_s={}, wait_share=0.8)
    assert untimed.blocked_at_work == pytest.approx(0.25), "of the 40%, half can be in steps"
    assert replace(untimed, loads=states(0.5, 0.1, other_threads_cpu_share=0.3)).blocked_at_work == 0.0
    assert replace(untimed, loads=None).blocked_at_work == 0.0


def test_what_does_not_run_beside_full_cpus_may_as_well_wait_for_one() -> None:
    unknown = replace(ALONE, wall_s={"read": 4e-3}, cpu_s={"read": 1e-3}, idle_cpus=0.39, own_cpus=0.1)
    assert unknown.blocked_at_work == 0.0
    assert replace(unknown, idle_cpus=0.4).blocked_at_work == pytest.approx(0.75)
    assert replace(unknown, idle_cpus=0.2, cpu_s={"read": 4e-5}).blocked_at_work == pytest.approx(1 - 0.01 * 10)
    assert replace(unknown, idle_cpus=0.0, cpu_s={"read": 4e-5}).blocked_at_work == 0.0
    assert replace(unknown, idle_cpus=None, own_cpus=None).blocked_at_work == 0.0
    assert replace(unknown, idle_cpus=2.0, own_cpus=1.7).blocked_at_work == 0.0


def test_a_stage_is_blocked_for_what_it_takes_beyond_its_cpu_time() -> None:
    facts = replace(ALONE, wall_s={"read": 5e-3, "decode": 1e-3}, cpu_s={"read": 1e-3, "decode": 2e-3})
    assert facts.blocked_s("read") == pytest.approx(4e-3)
    assert (facts.blocked_s("decode"), facts.blocked_s("collate")) == (0.0, 0.0)


def test_looks_at_workers_that_have_nothing_to_do_do_not_count() -> None:
    facts = replace(ALONE, workers=1, loads=states(0.1, blocked_on={"queue": 0.5, "lock": 0.1, "running": 0.4}))
    assert facts.blocked_on_share("lock") == pytest.approx(0.2)
    assert facts.blocked_on_share("device") == 0.0
    assert replace(facts, loads=states(0.1, blocked_on={"queue": 1.0})).blocked_on_share("lock") == 0.0
    assert replace(facts, loads=states(0.1, blocked_on=None)).blocked_on_share("lock") == 0.0


def test_rates_are_divided_by_samples_where_there_are_some() -> None:
    loads = states(0.5, read_bytes_per_s=4e6, minor_faults_per_s=8e3)
    facts = replace(ALONE, loads=loads, samples_per_s=200.0)
    assert (facts.bytes_asked_per_sample, facts.faults_per_sample) == (2e4, 40.0)
    for none in (replace(facts, samples_per_s=0.0), replace(facts, loads=None), replace(facts, loads=states(0.5))):
        assert (none.bytes_asked_per_sample, none.faults_per_sample) == (0.0, 0.0)
    assert facts.bytes_read == 2e4
    assert replace(facts, bytes_per_sample=3e4).bytes_read == 3e4
    assert replace(facts, bytes_per_sample=1e4).bytes_read == 2e4


def test_a_batch_that_takes_no_time_was_not_timed_and_is_not_called_tiny() -> None:
    assert not ALONE.tiny_batches
    assert replace(ALONE, wall_s={"read": 1e-5}).tiny_batches
    assert not replace(ALONE, wall_s={"read": 1e-5}, batch_samples=200.0).tiny_batches


USE = MachineUse(cpus=4, own_cpus=1.0, busy_cpus=2.0, throttled_share=0.25, processes=3, huge_faults_per_s=7.0)
PARTS = WaitParts(batches=9, not_begun_s=1.0, making_s=2.0, order_s=3.0, transport_s=4.0, main_process_s=5.0)


def test_each_fact_is_the_mean_of_its_own_reading() -> None:
    rows = [
        trial(
            n,
            data_wait_share=0.2 * n,
            samples_per_s=100.0 * n,
            machine=replace(USE, busy_cpus=2.0 * n),
            wait_parts=replace(PARTS, order_s=3.0 * n),
            taking=Taking(wall_s=1.0 * n, cpu_s=2.0 * n, sampler_s=3.0 * n),
            reads=Reads(samples=9, bytes_per_sample=1e3 * n, blocked_s=1.0, bytes_share=0.1 * n),
            stages={"read": StageCost(1e-3 * n, 2e-3 * n), "decode": StageCost(None, 1e-3)},
            step_stages={"transfer": StageCost(None, 0.01 * n)},
            main_process=states(0.1 * n),
        )
        for n in (1, 3)
    ]
    found = gathered(*rows)
    assert (found.workers, found.processes, found.is_loader) == (2, 3, True)
    assert (found.wait_share, found.samples_per_s, found.batch_samples) == (pytest.approx(0.4), 200.0, 10.0)
    assert (found.idle_cpus, found.others_cpus, found.throttled_share) == (1.0, 3.0, 0.25)
    assert found.huge_faults_per_s == 7.0
    assert (found.next_s, found.next_cpu_s, found.sampler_s) == (2.0, 4.0, 6.0)
    assert (found.bytes_per_sample, found.bytes_share) == (2e3, pytest.approx(0.2))
    assert found.cpu_s == {"read": pytest.approx(2e-3)}
    assert found.wall_s == {"read": pytest.approx(4e-3), "decode": pytest.approx(1e-3)}
    assert found.transfer_share == pytest.approx(0.02 * 50 / 5.0)
    assert found.parts is not None
    assert (found.parts.order_s, found.parts.making_s) == (6.0, 2.0)
    assert found.main is not None
    assert found.main.on_cpu_share == pytest.approx(0.2)


def test_a_stage_that_only_one_round_has_is_taken_from_that_one() -> None:
    first = trial(1, stages={"read": StageCost(1e-3, 2e-3)})
    second = trial(2, stages={"read": StageCost(3e-3, 2e-3), "augment": StageCost(5e-3, 5e-3)})
    assert gathered(first, second, trial(3)).cpu_s == {"read": pytest.approx(2e-3), "augment": pytest.approx(5e-3)}


def test_who_loads_is_the_workers_and_else_the_main_process() -> None:
    workers, main = states(0.9), states(0.2)
    assert gathered(trial(1, workers=workers, main_process=main)).loads == workers
    assert gathered(trial(1, config={"num_workers": 0}, workers=workers, main_process=main)).loads == main


@pytest.mark.parametrize(
    ("fields", "workers", "is_loader"),
    [
        ({"config": {"num_workers": 0}}, 0, True),
        ({"config": {"num_workers": 1}}, 1, True),
        ({"config": {}}, 0, False),
        ({"config": {}, "workers": states(0.5, count=3)}, 3, True),
        ({"config": {}, "workers": states(0.5, count=None)}, 0, False),
        ({"config": {}, "workers": states(0.5, count=1)}, 1, True),
        ({"config": {}, "not_measured": {"workers": NOT_READ_TWICE}}, 1, True),
        ({"config": {}, "sample_times": SampleTimes(wall=SPREAD, slowest=(), tail_share=0.1)}, 0, True),
    ],
)
def test_a_loader_is_known_by_its_arguments_its_workers_or_its_samples(
    fields: dict[str, Any], workers: int, is_loader: bool
) -> None:
    found = gathered(trial(1, **fields))
    assert (found.workers, found.is_loader) == (workers, is_loader)


def test_only_completed_trials_with_a_rate_count() -> None:
    fields: dict[str, Any] = {"config": {"num_workers": 2}, "round": 1, "samples_per_s": 900.0, "data_wait_share": 0.9}
    failed = Trial(role="sweep", id="f", status="failed", **fields)
    assert gathered(trial(1), failed).samples_per_s == 100.0
    assert gather([failed], TWO_CPUS) is None
    assert gather([trial(1, samples_per_s=0.0)], TWO_CPUS) is None


def test_samples_in_a_batch_are_those_that_were_counted() -> None:
    assert gathered(trial(1, samples=None)).batch_samples is None
    assert gathered(trial(1, samples=320, batches=10), trial(2, samples=100, batches=10)).batch_samples == 21.0
    assert gathered(trial(1, samples=7, batches=None)).batch_samples is None


def test_idle_is_known_of_workers_alone() -> None:
    stages = {"decode": StageCost(5e-3, 5e-3)}
    assert gathered(trial(1, config={"num_workers": 0}, stages=stages)).idle_share is None
    assert gathered(trial(1, stages={"decode": StageCost(None, 0.5)})).idle_share == 0.0
    assert gathered(trial(1, stages={"decode": StageCost(1.0, None)})).idle_share == 1.0
    looks = states(0.5, blocked_on={"lock": 1.0})
    assert gathered(trial(1, workers=looks)).idle_share == 0.0


def test_workers_that_ended_before_the_others_are_a_share_of_all() -> None:
    four = {"num_workers": 4}
    assert gathered(trial(1, config=four, workers=states(0.5, mean_count=1.0))).ended_share == 0.75
    assert gathered(trial(1, config=four, workers=states(0.5, mean_count=4.01))).ended_share == 0.0
    assert gathered(trial(1, config=four, workers=states(0.5))).ended_share == 0.0
    assert gathered(trial(1, config={"num_workers": 0}, main_process=states(0.5, mean_count=1.0))).ended_share == 0.0


def test_cpus_in_use_are_the_machine_s_and_else_the_share_of_those_allotted() -> None:
    assert gathered(trial(1, cpu_percent_of_allotted=75.0)).own_cpus == 1.5
    assert gathered(trial(1, cpu_percent_of_allotted=75.0, machine=USE)).own_cpus == 1.0
    assert gathered(trial(1, machine=USE)).own_cpus == 1.0
    assert gathered(trial(1)).own_cpus is None
    assert gathered(trial(1)).processes == 0


def test_slow_samples_cost_a_share_of_what_is_not_collating() -> None:
    times = SampleTimes(wall=SPREAD, slowest=(), tail_share=0.8)
    assert gathered(trial(1, sample_times=times, stages={"read": StageCost(0.0, 1.0)})).tail_share == pytest.approx(0.8)
    assert gathered(trial(1, sample_times=times)).tail_share == 0.0
    assert gathered(trial(1, sample_times=times, stages={"read": StageCost(0.0, 0.0)})).tail_share == 0.0
    both = {"read": StageCost(0.0, 3.0), "collate": StageCost(0.0, 1.0)}
    assert gathered(trial(1, sample_times=times, stages=both)).tail_share == pytest.approx(0.6)
    untimed = {"read": StageCost(0.0, 3.0), "collate": StageCost(0.0, None)}
    assert gathered(trial(1, sample_times=times, stages=untimed)).tail_share == pytest.approx(0.8)


@pytest.mark.parametrize(("begun", "share"), [(1, 0.0), (2, 0.999 / 5.999), (3, 1.998 / 6.998)])
def test_the_beginning_of_epochs_takes_time_where_one_was_crossed(begun: int, share: float) -> None:
    epochs = Epochs(begun=begun, boundary_s=1.0, boundary_max_s=1.0)
    found = gathered(trial(1, epochs=epochs, data_wait=SPREAD))
    assert (found.startup_s, found.startup_share) == (pytest.approx(0.999), pytest.approx(share))


def test_a_loop_that_crossed_no_epoch_says_nothing_of_their_beginning() -> None:
    rows = [
        trial(n, epochs=Epochs(begun=begun, boundary_s=1.0, boundary_max_s=1.0)) for n, begun in enumerate((1, 2), 1)
    ]
    assert gathered(*rows).startup_share == pytest.approx(1.0 / 6.0)


def test_a_boundary_that_a_batch_would_wait_for_anyway_costs_nothing() -> None:
    epochs = Epochs(begun=4, boundary_s=1e-4, boundary_max_s=1e-4)
    found = gathered(trial(1, epochs=epochs, data_wait=SPREAD))
    assert (found.startup_s, found.startup_share) == (0.0, 0.0)
    unknown = gathered(trial(1, epochs=replace(epochs, boundary_s=None), data_wait=SPREAD))
    assert (unknown.startup_s, unknown.startup_share) == (None, 0.0)
    assert gathered(trial(1, epochs=replace(epochs, boundary_s=1.0))).startup_s == 1.0
    assert gathered(trial(1, epochs=replace(epochs, boundary_s=1.0), steady_s=None)).startup_share == 0.0


@pytest.mark.parametrize(
    "fields",
    [
        {"step_stages": None},
        {"step_stages": {"forward": StageCost(1.0, 1.0)}},
        {"step_stages": {"transfer": StageCost(1.0, None)}},
        {"step_stages": {"transfer": StageCost(1.0, 1.0)}, "steady_s": None},
        {"step_stages": {"transfer": StageCost(1.0, 1.0)}, "batches": None},
    ],
)
def test_a_transfer_that_was_not_timed_takes_no_share(fields: dict[str, Any]) -> None:
    assert gathered(trial(1, **fields)).transfer_share == 0.0


def test_a_transfer_takes_its_share_of_the_time_of_one_rank() -> None:
    rank = RankReadings(rank=0, batches=50, steady_s=5.0)
    of_four = {"batches": 200, "steady_s": 5.0, "ranks": (rank,) * 4, "slowest_rank": 0}
    found = gathered(trial(1, step_stages={"transfer": StageCost(0.02, 0.02)}, **of_four))
    assert found.transfer_share == pytest.approx(0.02 * 50 / 5.0)


def test_bytes_of_a_sample_are_those_of_the_rank_that_was_read() -> None:
    slow, fast = RankReadings(rank=0, samples_per_s=100.0), RankReadings(rank=1, samples_per_s=900.0)
    loads = states(0.4, read_bytes_per_s=200_000.0)
    found = gathered(trial(1, samples_per_s=1_000.0, workers=loads, ranks=(slow, fast), slowest_rank=0))
    assert found.bytes_asked_per_sample == 2_000
    assert gathered(trial(1, samples_per_s=100.0, workers=loads)).own_samples_per_s == 100


def test_a_reading_that_one_round_lacks_is_that_of_the_others() -> None:
    known = states(0.4, page_cache_hit_share=0.5)
    found = gathered(trial(1, workers=states(0.2, page_cache_hit_share=None)), trial(2, workers=known))
    assert found.loads is not None
    assert found.loads.page_cache_hit_share == 0.5
    assert gathered(trial(1), trial(2, workers=known), trial(3)).loads == known


def test_where_nobody_looked_in_one_round_the_others_looks_count() -> None:
    looks = WorkerStates(on_cpu_share=0.1, run_queue_share=0.0, blocked_share=0.9, blocked_on={"b": 0.5, "a": 0.5})
    found = gathered(trial(1, workers=looks), trial(2, workers=replace(looks, blocked_on={"a": 1.0})))
    assert found.loads is not None
    assert list(found.loads.blocked_on or ()) == ["a", "b"]
    assert found.loads.blocked_on == {"a": 0.75, "b": 0.25}
    rows = [trial(n, workers=replace(looks, blocked_on=seen)) for n, seen in enumerate(({"a": 1.0}, {"a": 0.5}, None))]
    third = gathered(*rows)
    assert third.loads is not None
    assert third.loads.blocked_on == {"a": 0.75}


def test_facts_of_nothing_but_the_machine_stand_for_nothing_measured() -> None:
    assert (ALONE.wait_share, ALONE.batch_samples, ALONE.cpus_online, ALONE.processes) == (1.0, 1.0, 1, 0)
    assert ALONE.is_loader
    assert DECODING.blocked_at_work < 0.1
