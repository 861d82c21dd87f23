"""What trials with a free stage show, and which stage the verdict then names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.bottlenecks import (
    NOT_MEASURED,
    bottlenecks_in_words,
    describe_bottlenecks,
    stages_to_free,
    with_measured,
)
from loaderbench.diagnosis.cause import find_cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import Bottleneck, Failure, Interval, Stage, StageCost, TimeSlices, Trial, Verdict


def trial(freed: str | None, number: int, rate: float | None, *, sliced: bool = True) -> Trial:
    """One of a round; a rate of `None` is a failure."""
    return Trial(
        id=f"f{number}-{freed or 'present'}",
        role="freed",
        config={},
        round=number,
        freed=freed,
        status="failed" if rate is None else "completed",
        samples_per_s=rate,
        time_slices=TimeSlices(10, 10, 100, 1.0) if sliced else None,
        failure=Failure("raised", "CannotFreeError: stored where it cannot be replaced", "") if rate is None else None,
    )


def rounds(**rates: float | None) -> list[Trial]:
    """Three rounds of an unchanged loader at 100 samples/s, on a machine that changes by a tenth."""
    speeds = enumerate((1.0, 0.9, 1.1), 1)
    return [
        trial(None if name == "present" else name.replace("__", "/"), number, rate and rate * speed)
        for number, speed in speeds
        for name, rate in {"present": 100.0, **rates}.items()
    ]


def test_gains_are_paired_by_round_and_the_largest_comes_first() -> None:
    found, reasons = describe_bottlenecks(rounds(collate=101.0, decode=180.0), {})
    assert [one.stage for one in found] == ["decode", "collate"]
    assert found[0].gain_if_free == Interval(pytest.approx(1.8), pytest.approx(1.8), pytest.approx(1.8))
    assert found[0].samples_per_s_if_free.lo is not None
    assert found[0].samples_per_s_if_free.lo < 170
    assert found[0].trials == ("f1-decode", "f2-decode", "f3-decode")
    assert (found[0].basis, reasons) == ("measured", {})


def test_named_transforms_are_parts_of_their_stage() -> None:
    found, _ = describe_bottlenecks(rounds(transform=150.0, transform__Normalize=110.0, transform__Crop=130.0), {})
    assert [one.stage for one in found] == ["transform"]
    assert [part.name for part in found[0].parts] == ["Crop", "Normalize"]
    assert found[0].parts[0].gain_if_free.est == pytest.approx(1.3)


def test_a_stage_that_failed_has_a_reason_and_no_number() -> None:
    found, reasons = describe_bottlenecks(rounds(decode=None, collate=100.0), {})
    assert [one.stage for one in found] == ["collate"]
    assert "stored where it cannot be replaced" in reasons["bottlenecks.decode"]


def test_a_round_that_a_signal_ended_is_not_paired_with_its_slices() -> None:
    trials = [trial(None, 1, 100.0), trial("decode", 1, 180.0, sliced=False)]
    found, reasons = describe_bottlenecks(trials, {})
    assert not found
    assert set(reasons) == {"bottlenecks", "bottlenecks.decode"}


def test_without_trials_the_reason_is_the_one_of_the_run() -> None:
    assert describe_bottlenecks([], {"bottlenecks": "interrupted"}) == ((), {"bottlenecks": "interrupted"})
    assert describe_bottlenecks([], {}) == ((), {"bottlenecks": NOT_MEASURED})


def test_each_stage_that_gains_has_a_line_and_the_others_share_one() -> None:
    found = [
        gained("decode", 1.84, 1.76, 1.93),
        gained("transform", 1.31, 1.24, 1.38),
        gained("collate", 1.0, 0.9, 1.1),
        gained("transport", 0.92, 0.89, 0.95),
    ]
    assert [str(line) for line in bottlenecks_in_words(found)] == [
        "If decode were free: +84% (76\N{EN DASH}93%)",
        "If transform were free: +31% (24\N{EN DASH}38%)",
        "No clear gain if free: collate, worker-to-main IPC",
    ]
    assert [str(line) for line in bottlenecks_in_words([gained("decode", 2.3, 2.1, 2.4)])] == [
        "If decode were free: 2.3\N{MULTIPLICATION SIGN} (2.1\N{EN DASH}2.4\N{MULTIPLICATION SIGN})"
    ]
    assert [str(line) for line in bottlenecks_in_words(found[2:3])] == ["No clear gain if free: collate"]
    one_round = [replace(found[0], gain_if_free=Interval(1.84, None, None))]
    assert bottlenecks_in_words([*one_round, found[1]]) == bottlenecks_in_words(found[1:2])
    assert [str(line) for line in bottlenecks_in_words(one_round)] == ["If decode were free: +84% (1 round)"]
    smaller = replace(found[1], gain_if_free=Interval(1.3, None, None))
    assert bottlenecks_in_words([*one_round, smaller]) == bottlenecks_in_words(one_round)
    assert bottlenecks_in_words([]) == ()


def gained(stage: Stage, est: float, lo: float, hi: float) -> Bottleneck:
    return Bottleneck(
        stage=stage, samples_per_s_if_free=Interval(100 * est, 100 * lo, 100 * hi), gain_if_free=Interval(est, lo, hi)
    )


def test_the_largest_gain_that_is_beyond_doubt_overrules_the_rules() -> None:
    facts = Facts(workers=2, cpus=2, own_cpus=1.95, cpu_s={"decode": 1e-3}, wall_s={"decode": 1e-3}, idle_share=0.0)
    cause = find_cause(facts)
    assert cause is not None
    wide, narrow = gained("transform", 1.9, 1.01, 2.8), gained("collate", 1.8, 1.75, 1.85)
    named = gained("decode", 1.0, 0.98, 1.02)
    overruled = with_measured(cause, facts, [wide, narrow, named])
    assert overruled is not None
    assert (overruled.stage, overruled.is_measured) == ("collate", True)
    assert with_measured(cause, facts, [wide, named]) == cause


def swept(parts: dict[str, float] | None = None, **stages: float) -> Trial:
    costs, named = (
        {name: StageCost(wall_s, wall_s) for name, wall_s in each.items()} for each in (stages, parts or {})
    )
    return Trial(id="r1-c00", role="sweep", config={}, round=1, status="completed", stages=costs, stage_parts=named)


def test_stages_are_tried_by_their_share_and_large_transforms_by_name() -> None:
    parts = {"decode/loader": 5e-3, "transform/Crop": 3e-3, "transform/Flip": 1e-5, "transform/Normalize": 1e-3}
    found, reasons = stages_to_free([swept(parts, read=1e-4, decode=5e-3, transform=4e-3, collate=5e-4)], 2)
    assert found == ["decode", "transport", "transform", "collate", "read", "transform/Crop", "transform/Normalize"]
    assert set(reasons) == {"bottlenecks.sample"}


def test_an_opaque_sample_is_tried_as_a_whole_and_the_rest_has_reasons() -> None:
    found, reasons = stages_to_free([swept(sample=5e-3, collate=5e-4)], 0)
    assert found == ["sample", "collate"]
    assert set(reasons) == {f"bottlenecks.{stage}" for stage in ("read", "decode", "transform", "transport")}


def test_a_loader_without_timed_stages_has_nothing_to_try() -> None:
    assert stages_to_free([], 2)[0] == []


DECODES = Facts(
    workers=2,
    cpus=2.0,
    wait_share=0.5,
    samples_per_s=200.0,
    cpu_s={"decode": 5e-3, "transform": 4.8e-3},
    wall_s={"decode": 5e-3, "transform": 4.8e-3},
    own_cpus=2.0,
    idle_cpus=0.0,
)


def verdict_with(*found: Bottleneck) -> Verdict:
    wait = Interval(0.5, 0.4, 0.6)
    subject = Subject({"num_workers": 2}, Interval(200.0, 190.0, 210.0), wait, is_best=True, facts=DECODES)
    return decide(subject, "emulated", 1000.0, 0, bottlenecks=found)


def test_a_stage_that_gains_more_overrules_the_one_the_rules_name() -> None:
    assert verdict_with().stage == "decode"
    found = verdict_with(gained("transform", 1.9, 1.8, 2.0), gained("decode", 1.1, 1.0, 1.2))
    assert (found.bound, found.stage, found.limit) == ("input", "transform", "cpu")
    assert found.headline == "CPUs saturated; transform gains most if free (+90%)"
    assert "takes precedence over the rules" in found.evidence[0]
    assert "the rules alone name decode" in found.against[0]


def test_gains_whose_intervals_overlap_leave_the_rules_their_stage() -> None:
    found = verdict_with(gained("transform", 1.3, 1.15, 1.5), gained("decode", 1.2, 1.1, 1.3))
    assert (found.stage, found.headline) == ("decode", verdict_with().headline)


def test_measured_gains_settle_two_stages_that_cost_almost_the_same() -> None:
    assert "decode and transform cost almost the same" in verdict_with().confidence_reasons
    found = verdict_with(gained("decode", 1.9, 1.8, 2.0), gained("transform", 1.3, 1.2, 1.4))
    assert (found.stage, found.confidence, found.confidence_reasons) == ("decode", "high", ())


def test_the_line_of_the_gains_follows_the_cause() -> None:
    found = verdict_with(gained("decode", 1.9, 1.8, 2.0))
    assert [part.about for part in found.evidence_parts][:2] == ["cause", "free"]


def test_a_whole_sample_does_not_overrule_a_stage_in_it() -> None:
    cause = find_cause(DECODES)
    assert cause is not None
    found = [gained("sample", 3.0, 2.9, 3.1), gained("decode", 1.5, 1.4, 1.6)]
    assert with_measured(cause, DECODES, found) == replace(cause, is_measured=True)


def test_a_stage_that_was_not_made_free_is_left_to_the_rules() -> None:
    cause = find_cause(DECODES)
    assert with_measured(cause, DECODES, [gained("collate", 3.0, 2.9, 3.1)]) == cause
