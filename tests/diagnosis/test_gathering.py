"""Facts are the means over rounds, and `None` stays `None`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machine import TWO_CPUS

from loaderbench.diagnosis.facts import Facts, Seconds
from loaderbench.diagnosis.gathering import gather
from loaderbench.diagnosis.operational import operational_bounds
from loaderbench.diagnosis.wording import between_epochs_in_words
from loaderbench.records import (
    BusyThread,
    CodeLooks,
    CountedStack,
    Epochs,
    KernelLooks,
    LoopLine,
    MachineUse,
    SampleTimes,
    Spread,
    StackFrame,
    StackLooks,
    StageCost,
    Taking,
    Trial,
    WaitParts,
    WorkerStates,
)

SPREAD = Spread(count=10, mean_s=1e-3, p50_s=1e-3, p95_s=1e-3, p99_s=1e-3, max_s=1e-3)


def trial(round_: int, **fields: object) -> Trial:
    known = {"samples_per_s": 100.0, "samples": 500, "batches": 50, "data_wait_share": 0.5, "steady_s": 5.0}
    known["config"] = {"num_workers": 2}  # type: ignore[assignment]
    return Trial(role="sweep", id=f"{round_}", round=round_, status="completed", **{**known, **fields})  # type: ignore[arg-type]


def states(on_cpu: float, **looks: float) -> WorkerStates:
    return WorkerStates(
        on_cpu_share=on_cpu, run_queue_share=0.0, blocked_share=1 - on_cpu, blocked_on=looks or None, allowed_cpus=2
    )


def test_states_and_looks_are_means_over_rounds() -> None:
    found = gather([trial(1, workers=states(0.2, lock=1.0)), trial(2, workers=states(0.4, queue=1.0))], TWO_CPUS)
    assert found is not None
    assert found.loads is not None
    assert found.loads.on_cpu_share == pytest.approx(0.3)
    assert found.loads.blocked_on == {"lock": 0.5, "queue": 0.5}
    assert found.idle_share == 0.5


def test_looks_of_later_rounds_count_where_the_first_has_none() -> None:
    unseen = replace(states(0.4), not_measured={"blocked_on": "no sampler"})
    found = gather([trial(1, workers=unseen), trial(2, workers=states(0.2, lock=0.4, queue=0.6))], TWO_CPUS)
    assert found is not None
    assert found.loads is not None
    assert found.loads.blocked_on == {"lock": 0.4, "queue": 0.6}
    assert found.loads.not_measured == unseen.not_measured


def test_a_batch_of_unknown_size_is_not_one_of_none() -> None:
    found = gather([trial(1, samples=None), trial(2)], TWO_CPUS)
    assert found is not None
    assert found.batch_samples == 10
    unknown = gather([trial(1, samples=None, taking=Taking(wall_s=1.0, cpu_s=1.0, sampler_s=0.0))], TWO_CPUS)
    assert unknown is not None
    assert unknown.batch_samples is None
    assert operational_bounds(unknown).main_process is None


def test_nothing_measured_gives_no_facts_and_unknown_ones_stay_unknown() -> None:
    assert gather([Trial(role="sweep", id="a", config={}, round=1, status="failed")], TWO_CPUS) is None
    found = gather([trial(1)], TWO_CPUS)
    assert found is not None
    assert (found.loads, found.own_cpus, found.parts, found.idle_share, found.startup_s) == (None,) * 5


def waiting_for(file: str, text: str, function: str = "call") -> CodeLooks:
    """A thread that was always found in a line of the user's, and in the library function that it calls."""
    frames = (
        StackFrame(file="data.py", line=3, function="__getitem__", own=True, text=text),
        StackFrame(file=file, line=9, function=function, own=False),
    )
    return CodeLooks(looks=100, frames=frames, stacks=(CountedStack("sample", (0, 1), 4.0),))


@pytest.mark.parametrize(("traits", "tail_share"), [({}, 0.9), ({"stream": "RowGroups"}, 0.0)])
def test_a_long_call_of_a_stream_is_no_slow_sample(traits: dict[str, str], tail_share: float) -> None:
    times = SampleTimes(wall=SPREAD, slowest=(), tail_share=0.9)
    found = gather(
        [trial(1, stages={"sample": StageCost(1e-3, 1e-3)}, sample_times=times, dataset_traits=traits)], TWO_CPUS
    )
    assert found is not None
    assert found.tail_share == pytest.approx(tail_share)


@pytest.mark.parametrize(
    ("found", "busy"),
    [
        (BusyThread(name="log (train.py:8)", cpu_share=0.51), "log (train.py:8)"),
        (BusyThread(name="log (train.py:8)", cpu_share=0.49), ""),
        (BusyThread(name="log (train.py:8)", cpu_share=0.9, gil_wait_s=0.0011), "log (train.py:8)"),
        (BusyThread(name="zip (train.py:8)", cpu_share=0.9, gil_wait_s=0.0009), ""),
        (None, ""),
    ],
)
def test_a_thread_is_busy_if_it_uses_a_cpu_for_most_of_the_time(found: BusyThread | None, busy: str) -> None:
    facts = gather([trial(1, busy_thread=found)], TWO_CPUS)
    assert facts is not None
    assert facts.busy_thread == busy


RECEIVES = waiting_for("multiprocessing/queues.py", "state, label = self.queue.get()", "Queue.get")


@pytest.mark.parametrize(
    ("looks", "call"),
    [
        (RECEIVES, "Queue.get"),
        (replace(RECEIVES, stacks=(*RECEIVES.stacks, CountedStack("sample", (0,), 3.9))), "Queue.get"),
        (replace(RECEIVES, stacks=(*RECEIVES.stacks, CountedStack("sample", (0,), 4.1))), ""),
        (waiting_for("multiprocessing/synchronize.py", "with self.lock:", "SemLock.__enter__"), ""),
        (waiting_for("multiprocessing/queues.py", "self.queue.put(loss)", "Queue.put"), ""),
        (waiting_for("multiprocessing/managers.py", "row = self.cache[index]", "BaseProxy._callmethod"), ""),
        (None, ""),
    ],
)
def test_another_process_feeds_those_that_mostly_receive_from_it(looks: CodeLooks | None, call: str) -> None:
    facts = gather([trial(1, code_looks=looks)], TWO_CPUS)
    assert facts is not None
    assert facts.fed_by == call


def looks_at(timed_s: Seconds | None = None, **likely_s: float) -> CodeLooks:
    """Stack samples of other stages, and those of the stage `sample` by what is called."""
    others = [CountedStack(stage, (), at_s) for stage, at_s in (timed_s or {}).items()]
    samples = [CountedStack("sample", (), at_s, likely_stage=stage) for stage, at_s in likely_s.items()]
    return CodeLooks(looks=100, frames=(), stacks=(*others, *samples))


@pytest.mark.parametrize(
    ("looks", "mostly"),
    [
        (looks_at({"collate": 3.0}, read=95.0, sample=2.0), "read"),
        (looks_at({"collate": 3.0}, read=49.0, sample=48.0), "read"),
        (looks_at({"collate": 3.0}, read=45.0, sample=52.0), ""),
        (looks_at({"read": 47.0}, read=20.0, decode=13.0, sample=17.0), ""),
        (looks_at({"read": 97.0, "collate": 3.0}), ""),
        (None, ""),
    ],
)
def test_stack_samples_say_what_the_stage_sample_mostly_calls(looks: CodeLooks | None, mostly: str) -> None:
    found = gather([trial(1, code_looks=looks)], TWO_CPUS)
    assert found is not None
    assert found.sample_is_mostly == mostly


def test_without_looks_idle_is_what_no_stage_took() -> None:
    found = gather([trial(1, stages={"decode": StageCost(5e-3, 5e-3)})], TWO_CPUS)
    assert found is not None
    assert found.idle_share == pytest.approx(1 - 5e-3 * 100 / 2)


def test_a_tail_of_samples_counts_by_the_part_that_samples_have_in_the_work() -> None:
    times = SampleTimes(wall=SPREAD, slowest=(), tail_share=0.8)
    stages = {"sample": StageCost(1e-6, 1e-3), "collate": StageCost(9e-3, 9e-3)}
    found = gather([trial(1, sample_times=times, stages=stages)], TWO_CPUS)
    assert found is not None
    assert found.tail_share == pytest.approx(0.08)


def test_a_loop_that_crosses_epochs_tells_what_their_beginning_takes() -> None:
    found = gather([trial(1, epochs=Epochs(begun=6, boundary_s=1.0, boundary_max_s=1.0), data_wait=SPREAD)], TWO_CPUS)
    assert found is not None
    assert found.startup_s == pytest.approx(0.999)
    assert found.startup_share == pytest.approx(0.5, abs=0.01)


def test_time_between_epochs_is_a_share_of_all_time() -> None:
    line = LoopLine(place="train.py:8", text="list_files()", share=0.9, looks=20)
    epochs = Epochs(begun=6, boundary_s=1.0, boundary_max_s=1.0, between_s=2.0, between_line=line)
    one = trial(1, epochs=epochs, data_wait=SPREAD)
    within_s = 5.0 + (one.steady_s or 0.0) * (1 + (one.warmup_batches or 0) / (one.batches or 1))
    found = gather([one], TWO_CPUS)
    assert found is not None
    assert found.between_s == 2.0
    assert found.between_share == pytest.approx(10.0 / (10.0 + within_s))
    (words,) = between_epochs_in_words(found)
    assert "(2 s each), mostly in train.py:8; " in str(words)


@pytest.mark.parametrize(
    ("stages_s", "made_s"),
    [(None, 0.0), (0.5, 0.3), (0.01, 0.1)],  # seconds per sample; a usual batch has 10 samples
)
def test_a_first_batch_is_made_as_long_as_a_usual_batch_at_most(stages_s: float | None, made_s: float) -> None:
    epochs = Epochs(begun=6, boundary_s=1.0, boundary_max_s=1.0, first_making_s=0.3)
    parts = WaitParts(batches=20, not_begun_s=0.0, making_s=1e-3, order_s=0.0, transport_s=0.0, main_process_s=0.0)
    stages = None if stages_s is None else {"decode": StageCost(stages_s, stages_s)}
    short = trial(1, epochs=epochs, data_wait=SPREAD, stages=stages, samples=200, batches=20, wait_parts=parts)
    found = gather([short], TWO_CPUS)
    assert found is not None
    assert found.parts is not None
    assert (found.startup_s, found.first_making_s) == (pytest.approx(0.999), pytest.approx(made_s))
    assert found.parts.making_s == pytest.approx(1e-3 + made_s * 5 / 20)  # five boundaries, 20 batches


def test_a_trial_s_epoch_starts_are_no_part_of_its_other_waits() -> None:
    """Ten batches an epoch: 90 waits of 1 ms, ten boundaries of 0.1 s, and steps of 9 ms."""
    short = trial(
        1,
        samples_per_s=515.0,
        samples=1_000,
        batches=100,
        steady_s=1.94,
        data_wait_share=1.04 / 1.94,
        data_wait=SPREAD,
        step=replace(SPREAD, mean_s=9e-3),
        warmup_batches=20,
        epoch_ends=10,
        epochs=Epochs(begun=12, boundary_s=0.101, boundary_max_s=0.11, workers_persist=False),
    )
    found = gather([short], TWO_CPUS)
    assert found is not None
    assert found.wait_share == pytest.approx(0.1)
    assert (found.startup_s, found.workers_persist) == (pytest.approx(0.1), False)
    assert found.startup_share == pytest.approx(1.1 / (1.1 + 0.9 * (1 + 18 / 90)))
    longer = replace(short, epochs=None, epoch_ends=0)
    both = gather([short, longer], TWO_CPUS)
    assert both is not None
    assert both.startup_share == pytest.approx(found.startup_share / 2), "a trial in which no epoch ends loses nothing"
    assert both.startup_s == found.startup_s


@pytest.mark.parametrize(("seen", "asked", "persist"), [(True, False, True), (False, True, False), (None, True, True)])
def test_workers_persist_as_seen_or_else_as_asked(seen: bool | None, asked: bool, persist: bool) -> None:
    epochs = Epochs(begun=2, boundary_s=1.0, boundary_max_s=1.0, workers_persist=seen)
    found = gather([trial(1, epochs=epochs, config={"persistent_workers": asked})], TWO_CPUS)
    assert found is not None
    assert found.workers_persist is persist


def test_epochs_of_the_warm_up_are_as_long_as_others() -> None:
    short = trial(1, epochs=Epochs(begun=6, boundary_s=1.0, boundary_max_s=1.0), data_wait=SPREAD)
    all_of_it, half = gather([short], TWO_CPUS), gather([replace(short, warmup_batches=50)], TWO_CPUS)
    assert all_of_it is not None
    assert half is not None
    assert half.startup_share == pytest.approx(4.995 / (4.995 + 2 * 5.0))  # 50 batches in 5 s, and 50 more
    assert all_of_it.startup_share == pytest.approx(4.995 / (4.995 + 5.0))


def test_who_holds_the_cpus_is_told_by_the_machine() -> None:
    use = MachineUse(cpus=8, own_cpus=1.0, busy_cpus=7.5, throttled_share=None, processes=2)
    found = gather([trial(1, machine=use)], TWO_CPUS)
    assert found is not None
    assert (found.own_cpus, found.idle_cpus, found.others_cpus, found.processes) == (1.0, 0.5, 6.5, 2)


def test_without_worker_states_what_does_not_run_is_blocked_only_where_cpus_are_idle() -> None:
    """Seen beside a CPU burner: eight workers whose states could not be read were taken to wait for a storage."""
    waits = Facts(workers=8, cpus=2, cpu_s={"sample": 1e-3}, wall_s={"sample": 3e-3}, own_cpus=1.2, idle_cpus=0.0)
    assert waits.blocked_at_work == 0.0
    assert replace(waits, idle_cpus=0.8).blocked_at_work == pytest.approx(2 / 3)
    assert replace(waits, idle_cpus=None).blocked_at_work == pytest.approx(2 / 3)


@pytest.mark.parametrize(("idle_share", "transport"), [(0.0, 0.0), (0.5, 0.25), (1.0, 1.0)])
def test_seen_from_outside_a_hand_over_waits_for_a_worker_that_works(idle_share: float, transport: float) -> None:
    looks = StackLooks(
        looks=100, idle_share=idle_share, startup_share=0.0, waits={"waiting": 0.3, "transport": 0.7}, stages={}
    )
    found = gather([trial(1, stack_looks=looks)], TWO_CPUS)
    assert found is not None
    assert found.parts is not None
    assert (found.parts.transport_s, found.parts.making_s) == pytest.approx((transport, 1 - transport))


def test_seen_from_outside_the_kernel_says_who_keeps_a_batch() -> None:
    kept_by = KernelLooks(waits={"making": 0.2, "order": 0.8}, bytes_per_wait=1e5, bytes_share=0.9)
    stacks = StackLooks(
        looks=100, idle_share=0.5, startup_share=0.0, waits={"waiting": 0.5, "main_process": 0.5}, stages={}
    )
    for looks, waiting in ((stacks, 0.5), (None, 1.0)):
        found = gather([trial(1, stack_looks=looks, kernel_looks=kept_by)], TWO_CPUS)
        assert found is not None
        assert found.parts is not None
        assert (found.parts.making_s, found.parts.order_s) == pytest.approx((0.2 * waiting, 0.8 * waiting))
        assert (found.parts.main_process_s, found.bytes_share, found.bytes_read) == (1 - waiting, 0.9, 1e5)
