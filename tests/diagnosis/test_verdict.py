"""What bounds a run, and how sure that is."""

from dataclasses import replace

import pytest
from test_cause import BLOCKED, DECODING

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.isolation import find_ceiling
from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import EpochCost, Evidence, Failure, Interval, StageCost, Trial, WorkerStates


def subject(est: float, lo: float | None = None, hi: float | None = None) -> Subject:
    return Subject({"num_workers": 2}, Interval(500.0, 490.0, 510.0), Interval(est, lo, hi), is_best=True)


def test_a_consumer_that_waits_is_input_bound() -> None:
    found = decide(subject(0.41, 0.38, 0.44), "emulated", 1000, doubts=0)
    assert (found.bound, found.confidence) == ("input", "high")
    assert found.headline == "cause unknown; nothing was measured inside the loader"
    assert found.evidence == (
        "Data wait: 41% of step time (38\N{EN DASH}44%); input-bound at 5% or more",
        "Best config num_workers=2: 500 samples/s (490\N{EN DASH}510)",
        "Target 1,000 samples/s",
    )
    assert found.stage is None
    assert "stage" in found.not_measured


def test_a_loader_that_keeps_up_leaves_nothing_to_relieve() -> None:
    found = decide(subject(0.01, 0.0, 0.02), "model", None, doubts=0)
    assert (found.bound, found.limit) == ("compute", "none")
    assert found.headline == "the loader keeps up; data wait is 1% (0\N{EN DASH}2%) of step time"


def test_five_per_cent_is_input_bound() -> None:
    assert decide(subject(0.05, 0.05, 0.06), "emulated", 1, doubts=0).bound == "input"
    assert decide(subject(0.049, 0.048, 0.0495), "emulated", 1, doubts=0).bound == "compute"


def test_an_interval_across_the_threshold_is_low_confidence_and_a_wide_one_decides_nothing() -> None:
    assert decide(subject(0.06, 0.03, 0.09), "emulated", 1, doubts=0).confidence == "low"
    assert decide(subject(0.10, 0.0, 0.40), "emulated", 1, doubts=0).bound == "unknown"


def test_a_confidence_that_is_not_high_says_why() -> None:
    assert decide(subject(0.5), "emulated", 1, doubts=0).confidence_reasons == ("only one round was measured",)
    assert decide(subject(0.06, 0.03, 0.09), "emulated", 1, doubts=0).confidence_reasons == (
        "the interval of data wait includes 5%",
    )
    assert decide(subject(0.5, 0.4, 0.6), "emulated", 1, doubts=0).confidence_reasons == ()
    assert decide(subject(0.5, 0.4, 0.6), "emulated", 1, doubts=1).confidence_reasons == ("1 warning",)
    assert decide(loop(0.5), "loop", None, doubts=2).confidence_reasons[-1] == "2 warnings"
    one_process = "a profile is one process, so it has no interval"
    assert decide(loop(0.5), "loop", None, doubts=0).confidence_reasons == (one_process,)
    near = ("data wait is between 2.5% and 10%", one_process)
    assert decide(loop(0.06), "loop", None, doubts=0).confidence_reasons == near


def test_one_round_and_doubts_lower_the_confidence() -> None:
    assert decide(subject(0.5), "emulated", 1, doubts=0).confidence == "low"
    assert decide(subject(0.5, 0.4, 0.6), "emulated", 1, doubts=1).confidence == "medium"


def test_without_a_consumer_the_loader_is_the_limit() -> None:
    assert decide(subject(1.0, 0.99, 1.0), "none", None, doubts=0).bound == "input"


def test_nothing_measured_is_unknown() -> None:
    assert decide(None, "emulated", 1, doubts=1).bound == "unknown"


def test_without_a_consumer_doubts_lower_the_confidence_and_no_threshold_is_named() -> None:
    found = decide(subject(1.0, 0.99, 1.0), "none", None, doubts=0)
    assert found.confidence == "high"
    assert found.evidence == (
        "Best config num_workers=2: 500 samples/s (490\N{EN DASH}510)",
        "Consumer: none; throughput is the loader's own",
    )
    assert decide(subject(1.0, 0.99, 1.0), "none", None, doubts=1).confidence == "medium"


def test_every_trial_failed_is_said_only_where_trials_were_run_and_all_failed() -> None:
    failed = Trial(role="sweep", id="a", config={}, round=1, status="failed")
    empty = Trial(role="sweep", id="b", config={}, round=1, status="completed", samples_per_s=0.0)
    for trials, headline in (
        ([failed], "nothing was measured: every trial failed"),
        ([], "nothing was measured: the run ended before the first trial completed"),
        ([failed, empty], "nothing was measured: no trial delivered a sample"),
    ):
        assert decide(None, "emulated", 1, doubts=0, trials=trials).headline == headline


def test_a_rate_of_the_earlier_version_alone_is_not_called_nothing() -> None:
    rate = Trial(role="ab", side="before", id="a", config={}, round=1, status="completed", samples_per_s=9.0)
    failed = replace(rate, side="after", status="failed", samples_per_s=None)
    empty = replace(rate, side="after", samples_per_s=0.0)
    for trials, why in (
        ([], "the run ended before its first trial completed"),
        ([failed], "all of its trials failed"),
        ([failed, empty], "none of its trials delivered a sample"),
    ):
        found = decide(None, "none", None, doubts=0, trials=trials, earlier=[rate])
        assert found.headline == f"the later version was not measured: {why}"
    nothing = decide(None, "none", None, doubts=0, trials=[failed], earlier=[replace(failed, side="before")])
    assert nothing.headline == "nothing was measured: every trial failed"


def test_the_ceiling_of_an_emulated_accelerator_is_its_demand() -> None:
    found, _ = find_ceiling(None, "not run", subject(0.5), "emulated", 1000)
    assert found is not None
    assert found.headspace == pytest.approx(0.5)
    assert find_ceiling(None, "not run", subject(0.5), "model", None)[0] is None


def loop(share: float) -> Subject:
    return Subject({}, Interval(512.0, None, None), Interval(share, None, None), is_best=False)


def test_a_loop_is_told_how_long_it_waits_and_what_it_gets_and_of_no_configuration() -> None:
    waits = decide(loop(0.41), "loop", None, doubts=0)
    assert waits.headline == "cause unknown; use Profiler(trace=True) to measure inside the loader"
    assert waits.evidence == ("Data wait: 41% of step time; input-bound at 5% or more", "Throughput: 512 samples/s")
    assert decide(loop(0.01), "loop", None, doubts=0).headline == "the loader keeps up; data wait is 1% of step time"


@pytest.mark.parametrize(
    ("share", "confidence"), [(0.02, "medium"), (0.026, "low"), (0.05, "low"), (0.099, "low"), (0.11, "medium")]
)
def test_one_process_decides_where_its_share_is_clearly_on_one_side(share: float, confidence: str) -> None:
    assert decide(loop(share), "loop", None, doubts=0).confidence == confidence


def test_the_ceiling_of_a_loop_is_its_own_pace_without_the_waits() -> None:
    found, _ = find_ceiling(None, "not run", loop(0.2), "loop", None)
    assert found is not None
    assert found.samples_per_s == pytest.approx(640.0)
    assert found.headspace == pytest.approx(0.2)
    assert found.basis == "loop time between batches"


def test_a_loop_that_does_nothing_but_wait_has_no_ceiling_and_says_why() -> None:
    assert find_ceiling(None, "not run", loop(0.9995), "loop", None) == (None, "the loop only waited for data")


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
    found = decide(loop(0.41), "loop", None, doubts=0, trials=[TRACED])
    assert found.evidence[2:] == (
        "Wall time: decode 75% of worker time per sample (6 ms)",
        "Workers: 70% on a CPU, 20% waiting for a CPU, 10% blocked",
    )
    assert (found.stage, found.limit) == (None, None)
    assert found.not_measured["stage"] == "use Profiler(trace=True) to measure inside the loader"


def test_the_stages_of_one_trial_prove_nothing_of_a_sweep() -> None:
    assert len(decide(subject(0.41, 0.38, 0.44), "emulated", 1000, doubts=0, trials=[TRACED]).evidence) == 3


def test_a_loop_without_batches_says_what_it_failed_by() -> None:
    failed = Trial(
        role="sweep",
        id="train",
        config={},
        round=1,
        status="failed",
        failure=Failure("no_batches", "the loop took no batch.", ""),
    )
    assert decide(None, "loop", None, doubts=0, trials=[failed]).headline == (
        "nothing was measured: the loop took no batch"
    )


def caused(est: float, lo: float | None, hi: float | None, facts: Facts) -> Subject:
    return replace(subject(est, lo, hi), facts=facts)


@pytest.mark.parametrize(
    ("lo", "hi", "bound", "confidence"),
    [
        (0.04, 0.23, "input", "low"),
        (0.04, 0.25, "unknown", "low"),
        (0.0, 0.2, "input", "low"),
        (0.049, 0.05, "input", "low"),
        (0.05, 0.5, "input", "high"),
        (0.0, 0.0499, "input", "high"),
        (None, None, "input", "low"),
        (0.04, None, "input", "low"),
    ],
)
def test_an_interval_decides_where_it_lies_on_one_side_and_is_too_noisy_where_it_is_wide(
    lo: float | None, hi: float | None, bound: str, confidence: str
) -> None:
    found = decide(subject(0.06, lo, hi), "emulated", 1, doubts=0)
    assert (found.bound, found.confidence) == (bound, confidence)


def test_what_is_too_noisy_says_how_much_and_names_the_threshold() -> None:
    found = decide(subject(0.10, 0.0, 0.40), "emulated", 1, doubts=0)
    assert "10% (0\N{EN DASH}40%)" in found.headline
    assert found.evidence[0] == "Data wait interval: includes 5%, the cutoff for input-bound"
    assert set(found.not_measured) == {"stage", "limit"}


def test_what_is_too_noisy_keeps_all_that_was_measured() -> None:
    found = decide(subject(0.10, 0.0, 0.40), "emulated", 1000, doubts=0, costs=(ORDER,))
    assert found.evidence[1:] == (
        "Data wait: 10% of step time (0\N{EN DASH}40%); input-bound at 5% or more",
        "Best config num_workers=2: 500 samples/s (490\N{EN DASH}510)",
        "Target 1,000 samples/s",
        "Head-of-line blocking: 20% of epoch time (2 s per epoch)",
    )


def test_just_below_the_threshold_is_not_printed_as_the_threshold() -> None:
    found = decide(subject(0.049, 0.048, 0.0495), "emulated", 1, doubts=0)
    assert "data wait is 4.9% (4.8\N{EN DASH}4.9%)" in found.headline
    assert found.evidence[0].startswith("Data wait: 4.9% of step time (4.8\N{EN DASH}4.9%)")
    assert "5% of step time (5\N{EN DASH}6%)" in decide(subject(0.05, 0.05, 0.06), "emulated", 1, doubts=0).evidence[0]


def test_a_copy_that_takes_more_than_the_starts_of_epochs_is_the_bound() -> None:
    facts = replace(DECODING, startup_share=0.055, wait_share=0.005, transfer_share=0.6)
    assert decide(caused(0.005, 0.0, 0.01, facts), "model", None, doubts=0).bound == "transfer"


@pytest.mark.parametrize(("startup", "bound"), [(0.049, "compute"), (0.05, "input")])
def test_epochs_that_begin_too_often_bind_the_input_however_little_waits_after(startup: float, bound: str) -> None:
    facts = replace(DECODING, startup_share=startup, startup_s=1.0, wait_share=0.01)
    found = decide(caused(0.01, 0.0, 0.02, facts), "emulated", 1, doubts=0)
    assert found.bound == bound
    says = next(line for line in found.evidence if line.startswith("Data wait"))
    assert says.endswith(", without epoch starts" if bound == "input" else "; input-bound at 5% or more")


@pytest.mark.parametrize(
    ("transfer", "wait", "bound"),
    [(0.09, 0.01, "compute"), (0.1, 0.01, "transfer"), (0.19, 0.2, "input"), (0.2, 0.2, "transfer")],
)
def test_moving_batches_binds_from_a_tenth_of_the_time_on_and_where_it_takes_more_than_waiting(
    transfer: float, wait: float, bound: str
) -> None:
    found = decide(caused(wait, wait, wait, replace(DECODING, transfer_share=transfer)), "model", None, doubts=0)
    assert found.bound == bound
    if bound == "transfer":
        assert f"{transfer * 100:.0f}%" in found.headline
        assert f"{transfer * 100:.0f}%" in found.evidence[0]
        assert (found.stage, found.limit, set(found.not_measured)) == (None, None, {"stage", "limit"})


def test_a_cause_is_named_with_its_reason_first() -> None:
    found = decide(caused(0.6, 0.55, 0.65, DECODING), "emulated", 1000.0, doubts=0)
    assert (found.bound, found.stage, found.limit, found.confidence) == ("input", "decode", "workers", "high")
    assert found.evidence[0] == "Decode: 77% of CPU time per sample; 1.1 of 2 CPUs busy"
    few = "too few workers: 1 busy, 0.9 CPUs free"
    assert found.headline == f"{few}; decode is the largest stage (77% of CPU time)"
    assert found.not_measured == {}
    assert "target 1,000" in found.evidence[-1]
    assert "target" not in decide(caused(0.6, 0.5, 0.7, DECODING), "model", None, doubts=0).evidence[-1]


def test_a_loader_that_keeps_up_has_no_cause_to_be_named() -> None:
    found = decide(caused(0.01, 0.0, 0.02, DECODING), "emulated", 1000.0, doubts=0)
    assert (found.bound, found.stage, found.limit) == ("compute", None, "none")
    assert found.not_measured == {"stage": "the loader keeps up"}


START = (
    EpochCost(name="boundary", s_per_epoch=0.5, share=0.5),
    EpochCost(name="first_batch", s_per_epoch=1, share=0.6),
)
ORDER = EpochCost(name="stragglers", s_per_epoch=2.0, share=0.2)


def test_the_costs_of_an_epoch_come_last() -> None:
    found = decide(subject(0.41, 0.38, 0.44), "emulated", 1, doubts=0, costs=(*START, ORDER))
    assert [part.label for part in found.evidence_parts][-3:] == ["Epoch boundary", "Startup", "Head-of-line blocking"]


def test_a_start_of_the_epochs_that_is_the_cause_is_said_once() -> None:
    facts = replace(DECODING, startup_s=0.5, startup_share=0.6)
    found = decide(caused(0.6, 0.55, 0.65, facts), "emulated", 1, doubts=0, costs=(*START, ORDER))
    assert found.limit == "startup"
    assert [part.label for part in found.evidence_parts].count("Startup") == 1
    assert [part.label for part in found.evidence_parts if part.about == "epoch"] == ["Head-of-line blocking"]


def test_where_others_hold_the_cpus_bound_and_stage_are_told_and_how_much_they_use() -> None:
    found = decide(caused(0.6, 0.5, 0.7, replace(DECODING, idle_cpus=0.0, others_cpus=0.95)), "emulated", 1, doubts=0)
    assert (found.bound, found.stage, found.limit, found.confidence) == ("input", "decode", "neighbors", "low")
    assert found.headline.startswith("other programs use CPUs that the loader needs; decode is the largest stage")
    assert found.evidence[0] in ("Other programs: 0.9 of 2 CPUs busy", "Other programs: 1.0 of 2 CPUs busy")
    assert any("60% of step time (50\N{EN DASH}70%)" in line for line in found.evidence[1:])


def test_a_second_stage_that_costs_as_much_lowers_the_confidence_by_one() -> None:
    tied = replace(DECODING, cpu_s={"decode": 2e-3, "transform": 1.9e-3}, samples_per_s=250)
    for doubts, confidence in ((0, "medium"), (1, "low")):
        found = decide(caused(0.6, 0.5, 0.7, tied), "emulated", 1, doubts=doubts)
        assert (found.confidence, len(found.against)) == (confidence, 1)
        assert found.confidence_reasons == (*["1 warning"] * doubts, "decode and transform cost almost the same")
    assert decide(caused(0.6, None, None, tied), "emulated", 1, doubts=0).confidence == "low"


def test_times_that_do_not_explain_the_rate_leave_no_confidence() -> None:
    odd = replace(DECODING, samples_per_s=4000, own_cpus=None)
    found = decide(caused(0.6, 0.5, 0.7, odd), "emulated", 1, doubts=0)
    assert (found.confidence, found.confidence_reasons) == ("low", ("throughput exceeds what the traced times allow",))
    busy_machine = replace(BLOCKED, idle_cpus=0.0, others_cpus=1.9)
    found = decide(caused(0.6, 0.5, 0.7, busy_machine), "emulated", 1, doubts=0)
    assert (found.limit, found.confidence) == ("storage_latency", "low")


def test_a_sample_of_which_no_stage_was_timed_is_not_named() -> None:
    untimed = replace(DECODING, cpu_s={}, wall_s={})
    for consumer, why in (("emulated", "nothing was measured inside the loader"), ("loop", "Profiler(trace=True)")):
        found = decide(caused(0.6, 0.5, 0.7, untimed), consumer, 1, doubts=0)
        assert (found.stage, found.limit) == (None, "workers")
        assert why in found.not_measured["stage"]


def test_without_any_fact_the_reason_is_that_nothing_was_seen() -> None:
    found = decide(caused(0.6, 0.5, 0.7, Facts(workers=2, cpus=2)), "emulated", 1, doubts=0)
    assert found.not_measured == dict.fromkeys(("stage", "limit"), "nothing was measured inside the loader")


def test_the_configuration_is_named_as_best_or_as_the_fastest_estimate() -> None:
    best = decide(subject(0.41, 0.38, 0.44), "emulated", 1000, doubts=0)
    assert best.evidence[1].startswith("Best config num_workers=2: 500 samples/s")
    other = decide(replace(subject(0.41, 0.38, 0.44), is_best=False), "model", None, doubts=0)
    assert other.evidence[1].startswith("Fastest estimate num_workers=2: 500 samples/s")
    nameless = decide(replace(subject(0.41, 0.38, 0.44), config={}), "target", None, doubts=0)
    assert nameless.evidence[1].startswith("Throughput: 500 samples/s")


def test_the_target_is_said_in_the_words_it_came_with() -> None:
    target = Evidence("target", "", "Target 1,000 samples/s (default)")
    found = decide(subject(0.41, 0.38, 0.44), "emulated", 1000, doubts=0, target=target)
    assert "Target 1,000 samples/s (default)" in found.evidence
    assert not [line for line in decide(subject(0.41), "model", None, doubts=0).evidence if line.startswith("Target")]


def test_without_a_consumer_one_round_leaves_little_confidence() -> None:
    alone = Subject({}, Interval(500.0, None, None), Interval(1.0, None, None), is_best=False)
    assert decide(alone, "none", None, doubts=0).confidence == "low"


@pytest.mark.parametrize(("doubts", "confidence"), [(0, "medium"), (1, "low"), (2, "low")])
def test_a_loop_that_is_doubted_leaves_little_confidence(doubts: int, confidence: str) -> None:
    assert decide(loop(0.5), "loop", None, doubts=doubts).confidence == confidence


@pytest.mark.parametrize(
    ("share", "confidence"), [(0.0249, "medium"), (0.025, "low"), (0.1, "low"), (0.1001, "medium")]
)
def test_one_process_is_clear_below_half_of_the_threshold_and_above_twice(share: float, confidence: str) -> None:
    assert decide(loop(share), "loop", None, doubts=0).confidence == confidence


def test_the_last_failure_of_a_loop_is_the_one_that_is_told() -> None:
    failed = [
        Trial(role="profile", id=said, config={}, round=1, status="failed", failure=Failure("error", said, ""))
        for said in ("ValueError: one.", "ValueError: two.")
    ]
    assert decide(None, "loop", None, doubts=0, trials=failed).headline == "nothing was measured: ValueError: two"
    assert "every trial failed" in decide(None, "model", None, doubts=0, trials=failed).headline


def test_a_stage_is_named_where_it_was_timed_or_needs_no_timing() -> None:
    waiting = replace(BLOCKED, cpu_s={}, wall_s={"read": 1e-2})
    assert decide(caused(0.6, 0.5, 0.7, waiting), "emulated", 1, doubts=0).stage == "read"
    opaque = replace(DECODING, cpu_s={"sample": 9e-3}, wall_s={"sample": 9e-3})
    assert decide(caused(0.6, 0.5, 0.7, opaque), "emulated", 1, doubts=0).stage == "sample"
