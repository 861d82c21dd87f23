"""What bounds a run, and how sure that is."""

import pytest

from loaderbench.diagnosis.ceiling import find_ceiling
from loaderbench.diagnosis.verdict import Subject, decide
from loaderbench.records import Failure, Interval, StageCost, Trial, WorkerStates


def subject(est: float, lo: float | None = None, hi: float | None = None) -> Subject:
    return Subject({"num_workers": 2}, Interval(500.0, 490.0, 510.0), Interval(est, lo, hi), is_best=True)


def test_a_consumer_that_waits_is_input_bound() -> None:
    found = decide(subject(0.41, 0.38, 0.44), "emulated", 1000, doubts=0)
    assert (found.bound, found.confidence) == ("input", "high")
    assert "41 % (38\N{EN DASH}44 %)" in found.headline
    assert "1,000 samples/s" in found.headline
    assert found.stage is None
    assert "stage" in found.not_measured


def test_a_loader_that_keeps_up_leaves_nothing_to_relieve() -> None:
    found = decide(subject(0.01, 0.0, 0.02), "model", 1000, doubts=0)
    assert (found.bound, found.limit) == ("compute", "none")
    assert "keeps up" in found.headline


def test_five_per_cent_is_input_bound() -> None:
    assert decide(subject(0.05, 0.05, 0.06), "emulated", 1, doubts=0).bound == "input"
    assert decide(subject(0.049, 0.048, 0.0495), "emulated", 1, doubts=0).bound == "compute"


def test_an_interval_across_the_threshold_is_low_confidence_and_a_wide_one_decides_nothing() -> None:
    assert decide(subject(0.06, 0.03, 0.09), "emulated", 1, doubts=0).confidence == "low"
    assert decide(subject(0.10, 0.0, 0.40), "emulated", 1, doubts=0).bound == "unknown"


def test_one_round_and_doubts_lower_the_confidence() -> None:
    assert decide(subject(0.5), "emulated", 1, doubts=0).confidence == "low"
    assert decide(subject(0.5, 0.4, 0.6), "emulated", 1, doubts=1).confidence == "medium"


def test_without_a_consumer_the_loader_is_the_limit() -> None:
    assert decide(subject(1.0, 0.99, 1.0), "none", 1, doubts=0).bound == "input"


def test_nothing_measured_is_unknown() -> None:
    assert decide(None, "emulated", 1, doubts=1).bound == "unknown"


def test_without_a_consumer_doubts_lower_the_confidence_and_no_threshold_is_named() -> None:
    found = decide(subject(1.0, 0.99, 1.0), "none", 1, doubts=0)
    assert found.confidence == "high"
    assert found.evidence == ("500 (490\N{EN DASH}510) samples/s are delivered",)
    assert decide(subject(1.0, 0.99, 1.0), "none", 1, doubts=1).confidence == "medium"


def test_every_trial_failed_is_said_only_where_trials_were_run_and_all_failed() -> None:
    failed = Trial(role="sweep", id="a", config={}, round=1, status="failed")
    empty = Trial(role="sweep", id="b", config={}, round=1, status="completed", samples_per_s=0.0)
    for trials, headline in (
        ([failed], "Nothing was measured: every trial failed."),
        ([], "Nothing was measured: the run ended before its first trial was done."),
        ([failed, empty], "Nothing was measured: no trial delivered a sample."),
    ):
        assert decide(None, "emulated", 1, doubts=0, trials=trials).headline == headline


def test_the_ceiling_of_an_emulated_accelerator_is_its_demand() -> None:
    found, _ = find_ceiling(None, "not run", subject(0.5), "emulated", 1000)
    assert found is not None
    assert found.headspace == pytest.approx(0.5)
    assert find_ceiling(None, "not run", subject(0.5), "model", 1000)[0] is None


def loop(share: float) -> Subject:
    return Subject({}, Interval(512.0, None, None), Interval(share, None, None), is_best=False)


def test_a_loop_is_told_how_long_it_waits_and_what_it_gets_and_of_no_configuration() -> None:
    assert decide(loop(0.41), "loop", 1, doubts=0).headline == (
        "Your loop waits for data 41 % of its time: it gets 512 samples/s."
    )
    assert decide(loop(0.01), "loop", 1, doubts=0).headline == (
        "The loader keeps up: your loop waits for data 1 % of its time."
    )


@pytest.mark.parametrize(
    ("share", "confidence"), [(0.02, "medium"), (0.026, "low"), (0.05, "low"), (0.099, "low"), (0.11, "medium")]
)
def test_one_process_decides_where_its_share_is_clearly_on_one_side(share: float, confidence: str) -> None:
    assert decide(loop(share), "loop", 1, doubts=0).confidence == confidence


def test_the_ceiling_of_a_loop_is_its_own_pace_without_the_waits() -> None:
    found, _ = find_ceiling(None, "not run", loop(0.2), "loop", 1)
    assert found is not None
    assert found.samples_per_s == pytest.approx(640.0)
    assert found.headspace == pytest.approx(0.2)
    assert found.basis == "the loop's own time between batches"


def test_a_loop_that_does_nothing_but_wait_has_no_ceiling_and_says_why() -> None:
    assert find_ceiling(None, "not run", loop(0.9995), "loop", 1) == (None, "the loop did nothing but wait for data")


TRACED = Trial(
    role="sweep",
    id="train",
    config={"num_workers": 2},
    round=1,
    status="completed",
    stages={"read": StageCost(0.001, 0.002), "decode": StageCost(0.005, 0.006), "collate": StageCost(0.001, None)},
    workers=WorkerStates(on_cpu_share=0.7, run_queue_share=0.2, blocked_share=0.1),
)


def test_a_traced_loop_names_its_dearest_stage_and_what_the_workers_did_but_no_cause() -> None:
    found = decide(loop(0.41), "loop", 1, doubts=0, trials=[TRACED])
    assert found.evidence[2:] == (
        "decode takes 75 % of the workers' time for a sample (6 ms)",
        "workers: 70 % on a CPU, 20 % waiting for a CPU, 10 % blocked",
    )
    assert (found.stage, found.limit) == (None, None)
    assert found.not_measured["stage"] == "Profiler(trace=True) times what happens inside the loader"


def test_the_stages_of_one_trial_prove_nothing_of_a_sweep() -> None:
    assert len(decide(subject(0.41, 0.38, 0.44), "emulated", 1000, doubts=0, trials=[TRACED]).evidence) == 2


def test_a_loop_without_batches_says_what_it_failed_by() -> None:
    failed = Trial(
        role="sweep",
        id="train",
        config={},
        round=1,
        status="failed",
        failure=Failure("no_batches", "the loop took no batch.", ""),
    )
    assert decide(None, "loop", 1, doubts=0, trials=[failed]).headline == (
        "Nothing was measured: the loop took no batch."
    )
