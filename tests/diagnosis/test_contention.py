"""What more workers cost, and what explains it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.contention import describe_contention
from loaderbench.records import Config, StageCost, Trial, WorkerStates

WOBBLE = (0.99, 1.0, 1.01)


def sweep(
    workers: int, worker_s: float, cpu_s: float | None, wait: float = 0.9, batch: int = 32, queue: float = 0.0
) -> list[Trial]:
    """Three rounds in which a sample takes so many seconds of a worker, and so many on a CPU."""
    stages = {"decode": StageCost(cpu_s * 0.75, 1.0), "collate": StageCost(cpu_s * 0.25, 1.0)} if cpu_s else None
    return [
        Trial(
            role="sweep",
            id=f"r{n}-w{workers}",
            config={"batch_size": batch, "num_workers": workers},
            round=n,
            status="completed",
            samples_per_s=workers / (worker_s * wobble) if workers else 1 / worker_s,
            data_wait_share=wait,
            stages=stages,
            workers=WorkerStates(on_cpu_share=1 - queue, run_queue_share=queue, blocked_share=0.0),
        )
        for n, wobble in enumerate(WOBBLE, 1)
    ]


CONFIG = {"batch_size": 32, "num_workers": 2}


def test_workers_that_share_nothing_cost_the_same() -> None:
    trials = [*sweep(0, 0.002, 0.002), *sweep(1, 0.002, 0.002), *sweep(2, 0.002, 0.002), *sweep(2, 9.0, 9.0, batch=64)]
    one, two = describe_contention(CONFIG, trials, 2)
    assert (one.workers, two.workers) == (1, 2)
    assert one.cpu_s_per_sample.est == pytest.approx(0.002)
    assert two.wall_ratio.est == pytest.approx(1)
    assert two.beyond_cores.est == pytest.approx(1, rel=0.02)
    assert one.wall_ratio is None
    assert one.not_measured["wall_ratio"] == "reference for the other rows"


def test_shared_caches_show_as_cpu_time_and_are_explained_by_it() -> None:
    _, two = describe_contention(CONFIG, [*sweep(1, 0.002, 0.002), *sweep(2, 0.003, 0.003)], 2)
    assert two.cpu_ratio.est == pytest.approx(1.5)
    assert two.beyond_cores.est == pytest.approx(1, rel=0.02)


def test_more_workers_than_cores_wait_for_them_and_that_is_explained() -> None:
    _, four = describe_contention(CONFIG, [*sweep(1, 0.002, 0.002), *sweep(4, 0.004, 0.002)], 2)
    assert four.wall_ratio.est == pytest.approx(2)
    assert four.beyond_cores.est == pytest.approx(1, rel=0.02)


def test_other_programs_on_the_cores_are_no_lock() -> None:
    _, two = describe_contention(CONFIG, [*sweep(1, 0.004, 0.002, queue=0.5), *sweep(2, 0.008, 0.002, queue=0.75)], 2)
    assert two.wall_ratio.est == pytest.approx(2)
    assert two.beyond_cores.est == pytest.approx(1, rel=0.02)
    later_first = [*sweep(2, 0.008, 0.002, queue=0.75), *sweep(1, 0.004, 0.002, queue=0.5)]
    assert describe_contention(CONFIG, later_first, 2)[1].beyond_cores == two.beyond_cores


def test_a_lock_shows_as_time_that_cores_do_not_explain() -> None:
    _, two = describe_contention(CONFIG, [*sweep(1, 0.002, 0.002), *sweep(2, 0.004, 0.002)], 16)
    assert two.beyond_cores.est == pytest.approx(2, rel=0.02)
    assert two.beyond_cores.lo > 1


def test_what_blocks_one_worker_alone_is_no_contention() -> None:
    _, two = describe_contention(CONFIG, [*sweep(1, 0.010, 0.001), *sweep(2, 0.010, 0.001)], 16)
    assert two.beyond_cores.est == pytest.approx(1, rel=0.02)


def test_a_rate_that_the_consumer_set_says_nothing_of_workers() -> None:
    _, two = describe_contention(CONFIG, [*sweep(1, 0.002, 0.002), *sweep(2, 0.004, 0.002, wait=0.01)], 2)
    assert two.wall_s_per_sample is None
    assert two.beyond_cores is None
    assert "the consumer limits the rate" in two.not_measured["beyond_cores"]
    assert two.cpu_ratio.est == pytest.approx(1)


def test_without_a_second_number_of_workers_there_is_nothing_to_tell() -> None:
    assert describe_contention(CONFIG, [*sweep(0, 0.002, 0.002), *sweep(2, 0.002, 0.002)], 2) == ()
    assert describe_contention(None, sweep(1, 0.002, 0.002), 2) == ()
    untraced = describe_contention(CONFIG, [*sweep(1, 0.002, None), *sweep(2, 0.002, None)], 2)
    assert untraced[1].not_measured["cpu_ratio"] == "stages in the workers not timed"


@pytest.mark.parametrize(("wait", "known"), [(0.19, False), (0.2, True), (None, False)])
def test_a_rate_is_the_loader_s_from_a_fifth_of_waiting_on(wait: float | None, known: bool) -> None:
    _, two = describe_contention(CONFIG, [*sweep(1, 0.002, 0.002), *sweep(2, 0.004, 0.002, wait=wait)], 2)  # type: ignore[arg-type]
    assert (two.wall_s_per_sample is not None) == known


def test_worker_counts_are_told_from_the_fewest_on() -> None:
    counts = (16, 8, 1, 4, 33)
    found = describe_contention(CONFIG, [one for count in counts for one in sweep(count, 0.002, 0.002)], 64)
    assert [one.workers for one in found] == [1, 4, 8, 16, 33]


def test_what_differs_in_one_axis_more_is_not_compared() -> None:
    config: Config = {**CONFIG, "decoder": "pillow"}

    def decoded(trials: list[Trial], decoder: str) -> list[Trial]:
        return [replace(trial, config={**trial.config, "decoder": decoder}) for trial in trials]

    one, other = decoded(sweep(1, 0.002, 0.002), "pillow"), decoded(sweep(2, 0.002, 0.002), "torchvision")
    assert describe_contention(config, [*one, *other], 2) == ()
    assert describe_contention(config, [*one, *sweep(2, 0.002, 0.002)], 2) == ()
    assert len(describe_contention(config, [*one, *decoded(sweep(2, 0.002, 0.002), "pillow")], 2)) == 2


def test_trials_that_name_no_number_of_workers_are_not_compared() -> None:
    for count in (None, True, "many"):
        unnamed = [replace(one, config={**one.config, "num_workers": count}) for one in sweep(1, 0.002, 0.002)]
        assert describe_contention(CONFIG, [*unnamed, *sweep(2, 0.002, 0.002)], 2) == ()


def test_stages_that_took_no_cpu_time_were_not_timed() -> None:
    free = [replace(one, stages={"read": StageCost(0.0, 1.0)}) for one in sweep(2, 0.004, 0.002)]
    _, two = describe_contention(CONFIG, [*sweep(1, 0.002, 0.002), *free], 2)
    assert (two.cpu_s_per_sample, two.not_measured["cpu_ratio"]) == (None, "stages in the workers not timed")
    assert two.wall_ratio is not None
    assert two.not_measured["beyond_cores"] == "stages in the workers not timed"


def test_where_the_fewest_workers_lack_a_figure_no_ratio_is_known_and_the_reason_is_theirs() -> None:
    idle = sweep(1, 0.002, 0.002, wait=0.01)
    _, two = describe_contention(CONFIG, [*idle, *sweep(2, 0.004, 0.002)], 2)
    assert "the consumer limits the rate" in two.not_measured["wall_ratio"]
    assert two.cpu_ratio is not None
    untimed = [*sweep(1, 0.002, None), *sweep(2, 0.004, 0.002)]
    _, two = describe_contention(CONFIG, untimed, 2)
    assert "stages in the workers not timed" in two.not_measured["cpu_ratio"]
    assert two.wall_ratio is not None


def test_configurations_that_share_no_round_say_so() -> None:
    later = [replace(one, round=one.round + 10) for one in sweep(2, 0.004, 0.002)]
    _, two = describe_contention(CONFIG, [*sweep(1, 0.002, 0.002), *later], 2)
    assert set(two.not_measured) == {"wall_ratio", "cpu_ratio", "beyond_cores"}
    assert set(two.not_measured.values()) == {"never measured in the same round"}
