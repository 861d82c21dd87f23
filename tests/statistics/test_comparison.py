"""What is said of two runs: a change, no change, too little to tell, or that they cannot be compared."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from machine import TWO_CPUS

from loaderbench.records import (
    AssumedDemand,
    Baseline,
    Best,
    Comparison,
    Config,
    DatasetSummary,
    Gpu,
    Interval,
    MetricChange,
    Noise,
    PlanSummary,
    RunRecord,
    Trial,
    Verdict,
)
from loaderbench.statistics.comparison import ONE_PROCESS, compare_runs, welch_interval
from loaderbench.statistics.target_rate import CAPPED

Rates = dict[int, list[float]]
"""Samples/s of each process, by the number of workers."""

MACHINE = replace(TWO_CPUS, cpu_model="a CPU", python="3.11.7", versions={"torch": "2.4.0", "torchvision": "0.19.0"})


def workers(number: int) -> Config:
    return {"num_workers": number}


def trials(config: Config, rates: list[float], waits: list[float] | None = None) -> tuple[Trial, ...]:
    shares = waits or [0.5] * len(rates)
    return tuple(
        Trial(
            role="sweep",
            id=f"{config}{n}",
            config=config,
            round=n,
            status="completed",
            samples_per_s=rate,
            data_wait_share=share,
        )
        for n, (rate, share) in enumerate(zip(rates, shares, strict=True), 1)
    )


def run(rates: Rates, **changed: Any) -> RunRecord:
    record = RunRecord(
        name="test",
        suite={"consumer": {"demand": 1000.0}, "measure": {"cache": "warm"}},
        environment=MACHINE,
        dataset=DatasetSummary("some images"),
        plan=PlanSummary({"num_workers": list(rates)}, len(rates), 3, 3 * len(rates), (), {}, ""),
        started_at="",
        finished_at="",
        complete=True,
        trials=tuple(trial for number, found in rates.items() for trial in trials(workers(number), found)),
        configurations=(),
        best=None,
        baseline=Baseline(config={}, samples_per_s=None, data_wait_share=None, why_this_one=""),
        consumer="emulated",
        ceiling=None,
        verdict=Verdict(bound="unknown", stage=None, limit=None, headline="", evidence=(), confidence="low"),
        recommendations=(),
        overhead=None,
        noise=Noise(None, None),
        warnings=(),
    )
    return replace(record, **changed)


def compare(before: list[float], after: list[float]) -> Comparison:
    return compare_runs(run({0: before}), run({0: after}))


def compare_waits(before: list[float], after: list[float]) -> MetricChange:
    both = [run({}, trials=trials(workers(0), [10.0] * len(waits), waits)) for waits in (before, after)]
    return next(change for change in compare_runs(*both).metrics if change.metric == "data_wait_share")


def test_faster_beyond_the_noise_is_improved() -> None:
    found = compare([100, 101, 102], [124, 125, 126])
    assert found.outcome == "improved"
    assert found.headline == "Samples/s: improved, 1.24\u00d7 (1.21\u20131.26\u00d7)"
    assert found.reasons == ()


def test_slower_beyond_the_noise_is_regressed() -> None:
    assert compare([124, 125, 126], [100, 101, 102]).outcome == "regressed"


def test_an_interval_close_around_no_change_is_within_noise() -> None:
    assert compare([100, 101, 102], [100.5, 101, 101.5]).outcome == "within noise"


@pytest.mark.parametrize("after", [[95.5, 98.0, 100.5], [99.5, 102.0, 104.5]], ids=["maybe slower", "maybe faster"])
def test_an_interval_that_leaves_room_for_more_than_five_per_cent_is_not_called_noise(after: list[float]) -> None:
    assert compare([99, 100, 101], after).outcome == "inconclusive"


@pytest.mark.parametrize(("factor", "outcome"), [(1.02, "within noise"), (1.03, "inconclusive")])
def test_a_rate_is_the_same_within_five_per_cent(factor: float, outcome: str) -> None:
    """The interval reaches from just below 1 to about the square of the factor."""
    assert compare([100, 100, 100], [100 * factor**n for n in (0.5, 1.0, 1.25)]).outcome == outcome


@pytest.mark.parametrize(("step", "outcome"), [(0.007, "within noise"), (0.012, "inconclusive")])
def test_a_share_is_the_same_within_two_points(step: float, outcome: str) -> None:
    waits = [0.2 + step * n for n in (-0.5, 0.5, 1.0)]
    assert compare_waits([0.2, 0.2, 0.2], waits).outcome == outcome


def test_an_interval_that_reaches_from_slower_to_faster_decides_nothing_and_says_what_would() -> None:
    found = compare([100, 140, 90], [100, 150, 120])
    assert found.outcome == "inconclusive"
    assert "more rounds" in found.reasons[0]


@pytest.mark.parametrize("sides", [([100.0], [150.0]), ([100.0, 101.0, 102.0], [150.0]), ([100.0], [150.0, 151.0])])
def test_one_process_on_a_side_has_an_estimate_without_an_interval(sides: tuple[list[float], list[float]]) -> None:
    found = compare(*sides)
    change = found.metrics[0].change
    assert change is not None
    assert (change.est, change.lo, change.hi) == (pytest.approx(1.5, rel=0.02), None, None)
    assert (found.outcome, found.reasons) == ("inconclusive", (ONE_PROCESS,))
    assert found.metrics[0].not_measured == {"change": ONE_PROCESS}
    assert found.headline.startswith("Samples/s: inconclusive, ")


def test_less_waiting_is_better_and_is_told_as_a_difference() -> None:
    found = compare_waits([0.50, 0.51, 0.52], [0.20, 0.21, 0.22])
    assert (found.outcome, found.change and found.change.est) == ("improved", pytest.approx(-0.30))
    assert compare_waits([0.20, 0.21, 0.22], [0.50, 0.51, 0.52]).outcome == "regressed"
    assert compare_waits([0.20, 0.21, 0.20], [0.21, 0.20, 0.20]).outcome == "within noise"
    assert compare_waits([0.20, 0.22, 0.24], [0.21, 0.23, 0.25]).outcome == "inconclusive"


def test_shares_that_never_vary_have_not_changed_however_many_there_are() -> None:
    assert compare_waits([0.1] * 7, [0.1] * 3).outcome == "within noise"


def test_a_difference_of_shares_stays_within_one() -> None:
    change = compare_waits([0.0, 0.9], [0.1, 1.0]).change
    assert change is not None
    assert (change.lo, change.hi) == (-1, 1)


def test_a_configuration_that_gave_nothing_on_a_side_is_inconclusive_with_a_reason() -> None:
    failed = Trial(role="sweep", id="a", config=workers(0), round=1, status="failed")
    found = compare_runs(run({}, trials=(failed,)), run({0: [100, 101, 102]}))
    assert found.outcome == "inconclusive"
    assert found.headline == "Samples/s: change unknown, not measured before"
    assert (found.metrics[0].before, found.metrics[0].change) == (None, None)
    assert found.metrics[0].not_measured.keys() == {"before", "change"}
    assert found.metrics[0].after is not None


def test_a_trial_that_was_not_completed_does_not_count() -> None:
    before = run({0: [100, 101, 102]})
    broken = replace(before.trials[0], status="timed_out", samples_per_s=1.0, data_wait_share=1.0)
    found = compare_runs(before, replace(before, trials=(*before.trials, broken)))
    assert [change.before for change in found.metrics] == [change.after for change in found.metrics]


def test_the_outcome_follows_the_best_of_the_run_after() -> None:
    before, after = run({0: [100, 101, 102], 2: [200, 201, 202]}), run({0: [124, 125, 126], 2: [150, 151, 152]})
    fastest = compare_runs(before, after)
    assert fastest.outcome == "regressed"
    assert "with num_workers=2" in fastest.headline
    faster = run({0: [224, 225, 226], 2: [150, 151, 152]})
    assert compare_runs(before, faster).outcome == "improved", "another is as fast as the best was"
    known = Interval(225, 224, 226)
    best = Best(config=workers(0), samples_per_s=known, data_wait_share=None, ties=(), why_this_one="", gain=None)
    named = compare_runs(before, replace(faster, best=best))
    assert named.outcome == "improved"
    assert "with num_workers=0" in named.headline
    assert [change.metric for change in named.metrics] == ["samples_per_s", "data_wait_share"] * 2


def test_a_best_that_only_one_run_measured_leaves_it_to_the_fastest_that_both_did() -> None:
    best = Best(
        config=workers(9), samples_per_s=Interval(9, 9, 9), data_wait_share=None, ties=(), why_this_one="", gain=None
    )
    after = run({0: [124, 125, 126], 9: [900, 900, 901]}, best=best)
    found = compare_runs(run({0: [100, 101, 102]}), after)
    assert found.outcome == "improved"
    assert {change.config["num_workers"] for change in found.metrics} == {0}


def test_profiles_without_any_axis_share_the_loader_as_it_is() -> None:
    both = [run({}, trials=trials({}, [rate]), kind="profile", consumer="loop", suite={}) for rate in (100.0, 150.0)]
    found = compare_runs(*both)
    assert (found.outcome, found.metrics[0].config) == ("inconclusive", {})


H200 = Gpu(0, "GPU-1", "NVIDIA H200", 1)


@pytest.mark.parametrize(
    ("changed", "values"),
    [
        ({"environment": replace(MACHINE, cpu_model="another")}, ("CPU", "a CPU", "another")),
        ({"environment": replace(MACHINE, cpu_model=None)}, ("CPU", "a CPU", "unknown")),
        ({"environment": replace(MACHINE, cpus_allotted=1.5)}, ("available CPUs", "2", "1.5")),
        ({"environment": replace(MACHINE, gpus=(H200,))}, ("GPUs", "none", "NVIDIA H200")),
        ({"environment": replace(MACHINE, python="3.12.1")}, ("Python", "3.11.7", "3.12.1")),
        (
            {"environment": replace(MACHINE, versions={**MACHINE.versions, "torch": "2.5"})},
            ("torch version", "2.4.0", "2.5"),
        ),
        (
            {"environment": replace(MACHINE, versions={"torch": "2.4.0"})},
            ("torchvision", "0.19.0", "unknown"),
        ),
        ({"dataset": DatasetSummary("other images")}, ("dataset", "some images", "other images")),
        ({"consumer": "model"}, ("consumer", "emulated", "model")),
        (
            {"trials": trials(workers(9), [1.0, 2.0])},
            ("no config was measured in both runs", "num_workers=0", "num_workers=9"),
        ),
    ],
)
def test_runs_that_differ_cannot_be_compared_and_both_values_are_said(
    changed: dict[str, Any], values: tuple[str, ...]
) -> None:
    before = run({0: [100, 101, 102]})
    found = compare_runs(before, replace(before, **changed))
    assert (found.outcome, found.metrics, len(found.reasons)) == ("incomparable", (), 1)
    assert all(value in found.reasons[0] for value in values)
    assert found.headline.startswith("Runs are not comparable. ")


def test_the_headline_counts_the_differences_and_names_the_first() -> None:
    before = run({0: [1.0]})
    found = compare_runs(before, replace(before, consumer="model", dataset=DatasetSummary("others")))
    first = found.reasons[0]
    assert found.headline == f"Runs are not comparable (2 differences). D{first[1:]}"


def test_the_same_devices_in_another_order_are_the_same() -> None:
    gpus = Gpu(0, "GPU-1", "NVIDIA H200", 1), Gpu(1, "GPU-2", "NVIDIA A100", 1)
    one, other = (run({0: [1.0]}, environment=replace(MACHINE, gpus=order)) for order in (gpus, gpus[::-1]))
    assert compare_runs(one, other).outcome != "incomparable"


def test_one_configuration_in_common_needs_no_name_in_the_headline() -> None:
    before, after = run({0: [100, 101, 102], 1: [1.0]}), run({0: [124, 125, 126], 2: [1.0]})
    assert "with" not in compare_runs(before, after).headline


def test_two_processes_on_a_side_have_an_interval() -> None:
    found = compare([100, 101], [150, 151])
    assert found.metrics[0].not_measured == {}
    assert found.outcome == "improved"


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ([100.4, 100.41, 100.42], "1.004\u00d7 (1.004\u20131.004\u00d7)"),
        ([100.04, 100.0401, 100.0402], "1.0003\u00d7 (1.0001\u20131.0005\u00d7)"),
        ([0.3, 0.3001, 0.3002], "0.003\u00d7 (0.003\u20130.003\u00d7)"),
        ([250.0, 250.1, 250.2], "2.5\u00d7 (2.5\u20132.5\u00d7)"),
    ],
)
def test_a_ratio_has_as_many_places_as_tell_it_from_no_change_and_from_nothing(after: list[float], said: str) -> None:
    assert said in compare([100.00, 100.01, 100.02], after).headline


def test_a_ratio_of_one_itself_has_two_places() -> None:
    assert "1.00\u00d7 (1.00\u20131.00\u00d7)" in compare([100.0, 100.0], [100.0, 100.0]).headline


def test_every_difference_is_a_reason() -> None:
    before = run({0: [1.0]})
    found = compare_runs(before, replace(before, consumer="model", dataset=DatasetSummary("others")))
    assert len(found.reasons) == 2
    assert "(2 differences)" in found.headline


def test_another_cache_regime_casts_doubt_on_the_outcome() -> None:
    before = run({0: [100, 101, 102]})
    suite = {"consumer": {"demand": 1000.0}, "measure": {"cache": "cold"}}
    found = compare_runs(before, run({0: [124, 125, 126]}, suite=suite))
    assert found.outcome == "improved"
    assert "warm" in found.reasons[0]


def test_without_a_consumer_data_wait_is_not_compared() -> None:
    both = [run({0: [100, 101, 102]}, consumer="none") for _ in range(2)]
    rate, wait = compare_runs(*both).metrics
    assert rate.change is not None
    assert (wait.metric, wait.before, wait.after, wait.change) == ("data_wait_share", None, None, None)
    assert wait.not_measured["change"] == "nothing consumes the batches"


def test_rates_that_two_targets_cap_are_not_compared() -> None:
    before, after = (run({0: [rate] * 3}, suite={"consumer": {"demand": rate}}) for rate in (900.0, 300.0))
    found = compare_runs(before, after)
    assert found.outcome == "incomparable"
    assert found.reasons == ("target of the emulated GPU (samples/s): 900.0 \N{RIGHTWARDS ARROW} 300.0",)


@pytest.mark.parametrize(
    ("rate", "changed", "hidden"),
    [
        (1000.0, {}, True),
        (980.0, {}, True),
        (960.0, {}, False),
        (1000.0, {"consumer": "model"}, False),
    ],
)
def test_two_rates_at_the_target_say_nothing_about_the_loader(
    rate: float, changed: dict[str, Any], hidden: bool
) -> None:
    before, after = run({0: [1000.0, 1001.0, 999.0]}, **changed), run({0: [rate, rate, rate]}, **changed)
    assert (CAPPED in compare_runs(before, after).reasons) is hidden


def test_the_target_of_a_trial_with_ranks_is_that_of_all_of_them() -> None:
    config: Config = {"ranks": 2}
    before, after = (run({}, trials=trials(config, [rate] * 3)) for rate in (1990.0, 1980.0))
    assert CAPPED in compare_runs(before, after).reasons
    before = run({}, trials=trials(config, [1000.0] * 3))
    assert CAPPED not in compare_runs(before, before).reasons


def test_two_published_rates_are_two_demands_though_both_suites_name_one_gpu() -> None:
    demand = AssumedDemand(samples_per_s=2470.0, origin="accelerator", accelerator="A100")
    suite = {"consumer": {"demand": None, "accelerator": "a100"}}
    before, after = run({0: [100, 101, 102]}, suite=suite), run({0: [124, 125, 126]}, suite=suite)
    same = compare_runs(replace(before, assumed_demand=demand), replace(after, assumed_demand=demand))
    assert same.reasons == ()
    corrected = replace(demand, samples_per_s=2500.0)
    found = compare_runs(replace(before, assumed_demand=demand), replace(after, assumed_demand=corrected))
    assert found.reasons == ("target of the emulated GPU (samples/s): 2470.0 \N{RIGHTWARDS ARROW} 2500.0",)


def test_a_bound_never_reads_as_no_change_beside_a_clear_outcome() -> None:
    found = compare([100.00, 100.01, 100.02], [100.4, 100.41, 100.42])
    assert found.outcome == "improved"
    assert "(1.00\N{EN DASH}" not in found.headline


def test_welch_s_interval_is_the_one_scipy_finds() -> None:
    from scipy.stats import ttest_ind

    before, after = [27.5, 21.0, 19.0, 23.6], [27.1, 22.0, 20.8, 23.4, 23.5, 38.4]
    theirs = ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    found = welch_interval(before, after)
    assert (found.lo, found.hi) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_two_runs_of_the_same_thing_are_told_apart_no_oftener_than_is_said() -> None:
    draw = random.Random(0)
    false_alarms = 0
    for _ in range(3000):
        before, after = ([draw.gauss(0, spread) for _ in range(3)] for spread in (0.05, 0.15))
        found = welch_interval(before, after)
        assert found.lo is not None
        assert found.hi is not None
        false_alarms += not found.lo <= 0 <= found.hi
    assert false_alarms / 3000 <= 0.06


def test_the_ratio_is_of_geometric_means() -> None:
    change = compare([50, 200], [100, 400]).metrics[0].change
    assert change is not None
    assert change.est == pytest.approx(2)
    assert change.lo is not None
    assert change.hi is not None
    assert math.sqrt(change.lo * change.hi) == pytest.approx(2)


def test_trials_that_tried_remedies_are_no_part_of_what_is_compared() -> None:
    before = run({0: [100, 101, 102]})
    tried = tuple(
        replace(trial, id=f"v-{trial.id}", role="remedy", samples_per_s=900.0)
        for trial in trials(workers(0), [1, 2, 3])
    )
    elsewhere = tuple(replace(trial, id=f"w-{trial.id}", config={"num_workers": 9}) for trial in tried)
    after = replace(before, trials=(*before.trials, *tried, *elsewhere))
    found = compare_runs(before, after)
    assert [change.config for change in found.metrics] == [workers(0), workers(0)]
    assert found.metrics[0].change is not None
    assert found.metrics[0].change.est == pytest.approx(1.0)
