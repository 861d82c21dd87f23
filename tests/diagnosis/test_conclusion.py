"""What a run says as a whole, and that saying it again changes nothing."""

from dataclasses import replace
from typing import Any

import pytest
from machine import TWO_CPUS

from loaderbench.conclusion import conclude, diagnose
from loaderbench.diagnosis.ranking import expected_wait
from loaderbench.records import Config, DatasetSummary, Gpu, Interval, Kind, Measured, PlanSummary, RunRecord, Trial

GPU = Gpu(0, "GPU-a", "an accelerator", 1 << 30)


def concluded(
    *rates: float, consumer: str = "emulated", gpus: tuple[Gpu, ...] = (), kind: Kind = "sweep", **loader: Any
) -> RunRecord:
    config: Config = {"num_workers": 0}
    trials = [
        Trial(
            role="sweep",
            id=f"r{n}",
            config=config,
            round=n,
            status="completed",
            samples_per_s=rate,
            data_wait_share=0.5,
            samples_per_epoch=10,
        )
        for n, rate in enumerate(rates, 1)
    ]
    return conclude(
        Measured(
            name="test",
            suite={"consumer": {"demand": 1000.0}, "loader": loader},
            environment=replace(TWO_CPUS, gpus=gpus),
            dataset=DatasetSummary("nothing"),
            plan=PlanSummary({"num_workers": [0]}, 1, 3, 3, (config,), config, ""),
            consumer=consumer,
            trials=tuple(trials),
            started_at="",
            finished_at="",
            complete=True,
            kind=kind,
        )
    )


CAPPED = (
    "Samples/s are capped by the target of 1,000; the loader may be faster. "
    "Set a higher consumer.demand, or consumer.kind: none"
)


def test_a_rate_at_the_emulated_demand_is_noted_as_capped_and_only_once() -> None:
    run = concluded(975, 980, 970)
    assert run.remarks == (CAPPED,)
    assert conclude(run).remarks == (CAPPED,)
    assert conclude(replace(run, notes=(CAPPED,))).remarks == ()


@pytest.mark.parametrize(("rate", "consumer"), [(900.0, "emulated"), (990.0, "none"), (990.0, "model")])
def test_a_rate_that_nothing_caps_is_not_noted(rate: float, consumer: str) -> None:
    assert concluded(rate, rate, rate, consumer=consumer).remarks == ()


def test_a_saved_run_concluded_again_is_the_same() -> None:
    run = concluded(500, 510, 490)
    assert conclude(run) == run


def test_the_remedies_know_whether_there_is_an_accelerator() -> None:
    for gpus, status in (((), "not_checked"), ((GPU,), "already_ok")):
        run = concluded(500, 510, 490, gpus=gpus, pin_memory=True)
        assert {found.id: found.status for found in run.recommendations}["pin_memory"] == status


def test_a_run_that_delivered_nothing_is_concluded_without_an_error() -> None:
    run = concluded(0.0, 0.0, 0.0)
    assert run.best is None
    assert run.verdict.headline == "nothing was measured: no trial delivered a sample"


def test_a_fixed_batch_larger_than_the_dataset_is_doubted() -> None:
    found = concluded(500, 510, 490, batch_size=64).warnings
    assert any("batch_size=64 exceeds an epoch (10 samples)" in doubt for doubt in found)
    assert not any("batch_size" in doubt for doubt in concluded(500, 510, 490, batch_size=8).warnings)


def test_a_profile_names_no_best_gives_no_advice_that_needs_a_sweep_and_says_so() -> None:
    run = concluded(512, consumer="loop", kind="profile")
    assert (run.kind, run.best, run.recommendations, run.warnings) == ("profile", None, (), ())
    assert run.not_measured["best"] == "a profile measures one config"
    assert run.ceiling is not None
    assert run.ceiling.samples_per_s == pytest.approx(1024)


def test_a_saved_profile_concluded_again_is_the_same() -> None:
    run = concluded(512, consumer="loop", kind="profile")
    assert conclude(run) == run


def test_the_wait_that_a_demand_would_have_is_what_the_rate_falls_short_of_it() -> None:
    assert expected_wait(Interval(750.0, 500.0, 1250.0), 1000.0) == Interval(0.25, 0.0, 0.5)
    assert expected_wait(Interval(750.0, None, None), 1000.0) == Interval(0.25, None, None)
    assert expected_wait(Interval(2000.0, 1500.0, 2500.0), 1000.0) == Interval(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("total", "reasons", "known"),
    [
        (400_000, {}, 400_000),
        (None, {"total_files": "only part of the folder was listed"}, None),
        (None, {}, 20_000),  # a run of an older version
    ],
)
def test_fixes_are_told_the_size_of_the_whole_folder(
    total: int | None, reasons: dict[str, str], known: int | None
) -> None:
    run = concluded(100.0, 101.0, 99.0)
    summary = DatasetSummary("a sample", files=20_000, total_files=total, not_measured=reasons)
    measured = replace(run, dataset=summary)
    found = diagnose(measured, run.baseline.config, run.sweep)
    assert found is not None
    assert found.files == known
