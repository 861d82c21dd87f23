"""Which isolation runs a session measures, in which order, and on how many files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from fakes import Clock, FakeMeasuring, Notes, conditions_of, planned, session_of, suite, trial_of

from loaderbench.records import Config, GpuUse, Trial
from loaderbench.session import sweep as sweep_step
from loaderbench.session.isolation import IsolationPlan, measure_isolation, plan_isolation

CONFIG: Config = {"num_workers": 2}


def planner(
    files: int = 100_000, consumer: str = "target", *, accelerator: bool = False, **parts: Any
) -> Callable[[Config | None, Sequence[Trial]], IsolationPlan]:
    found = suite(loader={"batch_size": 32}, **parts)
    return partial(plan_isolation, conditions_of(found, files, consumer, accelerator=accelerator))


def sweep(
    rate: float = 1000.0, config: Config = CONFIG, *, epoch: int | None = 100_000, batch: int = 32
) -> list[Trial]:
    return [
        replace(
            trial_of(planned(f"r{n}-c01", config, n), rate * (1 - n / 10)), samples=10 * batch, samples_per_epoch=epoch
        )
        for n in (0, 1)
    ]


def names(found: IsolationPlan) -> set[str]:
    return {str(one.isolation) for one in found.trials}


def test_each_round_holds_each_run_once_in_an_order_of_its_own_and_the_same_for_the_same_seed() -> None:
    found = planner(measure={"rounds": 5, "seed": 1})(CONFIG, sweep())
    rounds = [[one.isolation for one in found.trials if one.round == number] for number in (1, 2, 3)]
    assert [sorted(map(str, each)) for each in rounds] == [["loader_cold", "loader_warm", "replay_host"]] * 3
    assert len(found.trials) == 9
    assert all(one.config == CONFIG and one.role == "isolation" for one in found.trials)
    assert found == planner(measure={"rounds": 5, "seed": 1})(CONFIG, sweep())
    orders = {
        tuple(one.isolation for one in planner(measure={"rounds": 5, "seed": seed})(CONFIG, sweep()).trials)
        for seed in range(8)
    }
    assert len(orders) > 1


def test_what_is_left_out_says_why_and_what_is_measured_does_not() -> None:
    found = planner()(CONFIG, sweep())
    assert names(found) == {"replay_host", "loader_warm", "loader_cold"}
    assert set(found.left_out) == {"replay_device"}
    on_gpu = [replace(trial, gpus=(GpuUse(0, "", peak_reserved_bytes=1 << 20),)) for trial in sweep()]
    assert names(planner(accelerator=True)(CONFIG, on_gpu)) == {*names(found), "replay_device"}


@pytest.mark.parametrize("gpus", [(), (GpuUse(0, "", peak_reserved_bytes=0),)])
def test_a_step_that_stays_on_the_cpu_gets_no_batches_on_the_gpu(gpus: tuple[GpuUse, ...]) -> None:
    found = planner(accelerator=True)(CONFIG, [replace(trial, gpus=gpus) for trial in sweep()])
    assert found.left_out["replay_device"] == "the step used no GPU memory"


def test_files_that_the_gpu_decodes_cannot_be_on_it_before_the_step() -> None:
    found = planner(accelerator=True)({**CONFIG, "decoder": "device"}, sweep(config={**CONFIG, "decoder": "device"}))
    assert "replay_device" not in names(found)
    assert found.left_out["replay_device"] == "decoder=device: the GPU decodes files from host memory"


def test_nothing_measured_leaves_nothing_to_take_apart() -> None:
    assert planner()(None, []) == IsolationPlan(left_out={"isolation": "nothing was measured"})


@pytest.mark.parametrize(("rate", "ahead_of_time"), [(1000.0, 8 * 1000 * 0.5), (0.0, 0.0)])
def test_the_loader_alone_reads_as_many_files_as_it_could_and_no_more(rate: float, ahead_of_time: float) -> None:
    """Eight times those of end to end in half a second, four batches that workers read ahead, and twenty more."""
    assert planner()(CONFIG, sweep(rate)).files == ahead_of_time + 4 * 32 + 20 * 32
    assert planner(files=50)(CONFIG, sweep(rate, epoch=50)).files == 50


def test_the_fastest_round_says_how_many_files_are_read() -> None:
    slow = planner()(CONFIG, sweep(500.0)).files
    fast = planner()(CONFIG, sweep(1000.0)).files
    assert slow is not None
    assert fast is not None
    assert fast - slow == 8 * 500 * 0.5


def test_files_are_counted_by_the_batch_and_what_workers_read_ahead() -> None:
    def files(config: Config, batch: int = 32, **sizes: int) -> int:
        found = planner(**sizes)(config, sweep(0.0, config, batch=batch)).files
        assert found is not None
        return found

    none = files({"num_workers": 0})
    assert files({"num_workers": 2}) - none == 2 * 2 * 32
    assert files({"num_workers": 2, "prefetch_factor": 4}) - none == 2 * 4 * 32
    assert files({"num_workers": 2, "prefetch_factor": None}) - none == 2 * 2 * 32
    assert files({"num_workers": 0}, batch=64) == none  # ten batches hold as many samples as twenty of 32
    assert files({"num_workers": 0}, batch=256) == 2 * none  # and five are the fewest
    assert files({"num_workers": 0}, files=1_000) == -(-none // 100)  # of a hundred samples each


@pytest.mark.parametrize("batches", [4, 8, 9, 10, 13, 14, 20])
@pytest.mark.parametrize("files", [8, 4 * 32])
def test_a_pass_that_is_no_steady_state_is_not_measured_cold(batches: int, files: int) -> None:
    """Two workers read four batches ahead, and five more are needed, in however many files."""
    found = planner(files=files)(CONFIG, sweep(epoch=batches * 32))
    assert ("loader_cold" in names(found)) == (batches > 9)
    if "loader_cold" in found.left_out:
        assert f"{files} files = {batches} batches, workers prefetch 4" in found.left_out["loader_cold"]


def test_without_workers_a_pass_needs_seven_batches() -> None:
    config: Config = {"num_workers": 0}
    for batches, cold in ((6, False), (7, True)):
        found = planner(files=batches * 32)(config, sweep(config=config, epoch=batches * 32))
        assert ("loader_cold" in names(found)) == cold
    one = planner(files=1)(config, sweep(config=config, epoch=32))
    assert "(1 file = 1 batch)" in one.left_out["loader_cold"]


def test_a_pass_of_unknown_length_is_not_measured_cold_and_the_loader_alone_reads_all_files() -> None:
    found = planner()(CONFIG, sweep(epoch=None))
    assert names(found) == {"replay_host", "loader_warm"}
    assert "samples per pass" in found.left_out["loader_cold"]
    assert found.files is None


@pytest.mark.parametrize(
    ("consumer", "cache", "warm"), [("none", "warm", False), ("none", "cold", True), ("target", "warm", True)]
)
def test_without_a_cold_run_the_sweep_is_the_loader_alone(consumer: str, cache: str, warm: bool) -> None:
    found = planner(files=32, consumer=consumer, measure={"cache": cache})(CONFIG, sweep(epoch=32))
    assert ("loader_warm" in names(found)) == warm


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(sweep_step.time, "monotonic", found)
    return found


def test_a_session_measures_them_after_the_sweep() -> None:
    measuring, notes = FakeMeasuring(), Notes()
    session = session_of(measuring, notes=notes)
    session.found.trials += sweep()
    measure_isolation(session, CONFIG)
    asked = [one.isolation for one in measuring.asked]
    assert sorted(map(str, asked)) == ["loader_cold"] * 2 + ["loader_warm"] * 2
    assert (session.step, session.found.left_out.keys() >= {"replay_host"}) == ("isolation", True)
    assert measuring.files_alone is not None
    assert [progress.done for _, progress in notes.started] == [0, 1, 2, 3]
    assert [progress.done for _, progress in notes.ended] == [1, 2, 3, 4]
    assert {(progress.phase, progress.total) for _, progress in notes.ended} == {("Isolation runs", 4)}


def test_a_run_that_fails_is_not_tried_in_the_next_round() -> None:
    measuring = FakeMeasuring(lambda one: None if one.isolation == "loader_warm" else 100.0)
    session = session_of(measuring)
    session.found.trials += sweep()
    measure_isolation(session, CONFIG)
    assert sorted(str(one.isolation) for one in measuring.asked) == ["loader_cold"] * 2 + ["loader_warm"]


def test_runs_that_take_longer_than_planned_end_with_the_budget(clock: Clock) -> None:
    each_s = session_of(FakeMeasuring()).plan.isolation_s
    measuring = FakeMeasuring(clock=clock, takes_s=5 * each_s)
    session = session_of(measuring, suite(measure={"budget": 4.5 * each_s}))
    session.found.trials += sweep()
    measure_isolation(session, CONFIG)
    (asked,) = measuring.asked
    (other,) = {"loader_cold", "loader_warm"} - {asked.isolation}
    assert session.found.left_out[other].startswith("the budget of ")
    assert asked.isolation not in session.found.left_out


def test_a_sweep_that_is_not_complete_is_not_taken_apart() -> None:
    measuring = FakeMeasuring()
    session = session_of(measuring)
    session.found.why_partial = "a budget"
    measure_isolation(session, CONFIG)
    assert (measuring.asked, session.found.left_out) == ([], {"isolation": "incomplete sweep: a budget"})


@pytest.mark.parametrize(("spare_s", "measured"), [(0.1, 4), (-0.1, 0)])
def test_a_budget_that_has_no_room_for_all_of_them_leaves_them_out(clock: Clock, spare_s: float, measured: int) -> None:
    plain = session_of(FakeMeasuring())
    needed_s = 4 * plain.plan.isolation_s + spare_s
    measuring = FakeMeasuring()
    session = session_of(measuring, suite(measure={"budget": needed_s}))
    session.found.trials += sweep()
    measure_isolation(session, CONFIG)
    assert len(measuring.asked) == measured
    assert ("no time" in session.found.left_out.get("isolation", "")) == (measured == 0)
