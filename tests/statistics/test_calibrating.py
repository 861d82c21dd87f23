"""The step time of a run by batch size, without the data wait, and the line through it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loaderbench import load
from loaderbench.errors import UsageError
from loaderbench.records import Config, Gpu, GpuUse, RankReadings, RunRecord, Trial
from loaderbench.statistics.calibrating import calibration_of

EXAMPLES = Path(__file__).parents[2] / "reports" / "examples"


@pytest.fixture(scope="module")
def recorded() -> RunRecord:
    """Any run: its trials are replaced."""
    return load(next(EXAMPLES.glob("*/run.json")).parent).record


def trial(config: Config, round_: int, batch_s: float, wait: float | None) -> Trial:
    return Trial(
        id=f"r{round_}-{config}",
        role="sweep",
        config=config,
        round=round_,
        status="completed",
        batches=10,
        steady_s=10 * batch_s,
        data_wait_share=wait,
        computed_in="bfloat16",
        gpus=(GpuUse(0, "GPU-a"),),
    )


def run_of(recorded: RunRecord, trials: list[Trial], consumer: str = "model") -> RunRecord:
    gpu = Gpu(0, "GPU-a", "NVIDIA Z1", 8 << 30)
    return replace(
        recorded,
        trials=tuple(trials),
        consumer=consumer,
        environment=replace(recorded.environment, gpus=(gpu,)),
        suite={**recorded.suite, "consumer": {"model": "resnet18", "precision": None}},
    )


def test_the_wait_is_not_part_of_a_step_and_the_fastest_configuration_counts(recorded: RunRecord) -> None:
    trials = [
        *(trial({"batch_size": 32, "pin_memory": True}, n, 0.04, 0.5) for n in (1, 2, 3)),
        *(trial({"batch_size": 32, "pin_memory": False}, n, 0.04, 0.25) for n in (1, 2, 3)),
        *(trial({"batch_size": 128, "pin_memory": True}, n, 0.10, 0.5) for n in (1, 2, 3)),
    ]
    found = calibration_of(run_of(recorded, trials))
    assert [(step.batch_size, step.trials) for step in found.steps] == [(32, 3), (128, 3)]
    assert [step.step_s.est for step in found.steps] == pytest.approx([0.02, 0.05])
    assert all(step.step_s.lo is not None and step.step_s.lo > 0 for step in found.steps)
    assert (found.fixed_s, found.s_per_sample) == (pytest.approx(0.01), pytest.approx(0.0003125))
    assert (found.device, found.model, found.precision) == ("NVIDIA Z1", "resnet18", "bfloat16")
    known = calibration_of(run_of(recorded, [replace(one, computed_in="float16") for one in trials]))
    assert known.precision == "float16", "which of the 16-bit types it was"


def test_one_batch_size_or_a_line_below_zero_is_proportional(recorded: RunRecord) -> None:
    one = calibration_of(run_of(recorded, [trial({"batch_size": 50}, 1, 0.1, 0.0)]))
    assert (one.fixed_s, one.s_per_sample) == (0.0, pytest.approx(0.002))
    below = [trial({"batch_size": 10}, 1, 0.01, 0.0), trial({"batch_size": 20}, 1, 0.05, 0.0)]
    found = calibration_of(run_of(recorded, below))
    assert (found.fixed_s, found.s_per_sample) == (0.0, pytest.approx(0.002))


@pytest.mark.parametrize("consumer", ["emulated", "none"])
def test_a_run_that_trained_nothing_is_refused(recorded: RunRecord, consumer: str) -> None:
    trials = [trial({"batch_size": 8}, 1, 0.1, 0.0)]
    with pytest.raises(UsageError, match=r"trains nothing; measure with consumer\.kind: model or target"):
        calibration_of(run_of(recorded, trials, consumer))


def test_without_a_wait_there_is_no_step_time(recorded: RunRecord) -> None:
    with pytest.raises(UsageError, match="no completed trial of this run has a batch size and a data wait"):
        calibration_of(run_of(recorded, [trial({"batch_size": 8}, 1, 0.1, None)]))


def test_batches_that_nobody_trained_on_are_no_step(recorded: RunRecord) -> None:
    """With `kind: auto`, batches that are not images are copied, and a GPU is emulated."""
    copied = [replace(trial({"batch_size": 8}, 1, 0.1, 0.0), computed_in=None)]
    with pytest.raises(UsageError, match="no trial of this run trained on its batches"):
        calibration_of(run_of(recorded, copied))
    assert calibration_of(run_of(recorded, copied, "target")).device == "NVIDIA Z1"


def test_a_step_that_does_not_grow_with_the_batch_is_fixed(recorded: RunRecord) -> None:
    found = calibration_of(run_of(recorded, [trial({"batch_size": n}, 1, 0.02, 0.0) for n in (8, 32)]))
    assert (found.fixed_s, found.s_per_sample) == (pytest.approx(0.02), 0.0)
    assert found.samples_per_s == pytest.approx(32 / 0.02)


def test_a_step_is_that_of_one_rank(recorded: RunRecord) -> None:
    """Batches of a trial are those of all its ranks."""
    trials = []
    for number in (1, 2, 3):
        alone = trial({"batch_size": 32, "ranks": 1}, number, 0.04, 0.5)
        rank = RankReadings(rank=0, batches=10, steady_s=0.4, data_wait_share=0.5)
        trials.append(replace(alone, ranks=(rank,), slowest_rank=0))
        two = replace(alone, id=f"two{number}", config={"batch_size": 32, "ranks": 2}, batches=20)
        trials.append(replace(two, ranks=(rank, replace(rank, rank=1)), slowest_rank=1))
    (step,) = calibration_of(run_of(recorded, trials)).steps
    assert step.step_s.est == pytest.approx(0.02)
