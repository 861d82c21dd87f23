"""Two versions are compared by their pairs, and every gate decides in every configuration."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from loaderbench.records import Config, Failure, Gate, SideBySide, TimeSlices, Trial, Version
from loaderbench.statistics.gates import judge_sides, parse_gate
from loaderbench.statistics.sequential import planned_looks
from loaderbench.statistics.sides import (
    EARLIER_FAILED,
    FAILED,
    LATER_FAILED,
    NO_RATE,
    NO_WAIT,
    comparison_of,
    is_decided,
    pairs_of,
)

TWO: Config = {"num_workers": 2}
FOUR: Config = {"num_workers": 4}
VERSIONS = (
    Version(side="before", name="main", suite_file="s.yaml"),
    Version(side="after", name="working tree", suite_file="s.yaml"),
)


def trial(number: int, side: Any, rate: float | None, config: Config, **fields: Any) -> Trial:
    status: Any = "failed" if rate is None else "completed"
    found = {"data_wait_share": 0.3, "consumer": "emulated", **fields}
    return Trial(
        id=f"p{number}-{side}", role="ab", config=config, round=number, side=side, status=status,
        samples_per_s=rate, **found,
    )  # fmt: skip


def pairs(ratio: float, count: int = 8, config: Config = TWO, noise: float = 0.01, **fields: Any) -> list[Trial]:
    """Pairs in which the later version has `ratio` times the rate, on a machine whose speed drifts."""
    chance = random.Random(1)
    found = []
    for number in range(1, count + 1):
        machine = 100 * chance.uniform(0.5, 2)
        found.append(trial(number, "before", machine, config))
        found.append(trial(number, "after", machine * ratio * (1 + chance.uniform(-noise, noise)), config, **fields))
    return found


def asked(*gates: str, configs: Sequence[Config] = (TWO,), most: int = 8) -> SideBySide:
    return SideBySide(
        versions=VERSIONS,
        configs=tuple(configs),
        gates=tuple(parse_gate(gate, "--fail-if") for gate in gates),
        looks=planned_looks(most),
        budget_s=180,
        ended="decided",
    )


@pytest.mark.parametrize(
    ("ratio", "noise", "outcome", "gate"),
    [
        (1.0, 0.01, "within noise", "passed"),
        (0.9, 0.01, "regressed", "failed"),
        (1.2, 0.01, "improved", "passed"),
        (1.0, 0.2, "inconclusive", "inconclusive"),
        (0.97, 0.01, "regressed", "inconclusive"),
    ],
)
def test_the_drift_of_the_machine_cancels_in_pairs(ratio: float, noise: float, outcome: str, gate: str) -> None:
    found = comparison_of(asked("samples_per_s:-3%"), pairs(ratio, noise=noise))
    assert found.outcome == outcome
    assert judge_sides(parse_gate("samples_per_s:-3%", ""), found).outcome == gate
    assert found.metrics[0].change is not None
    assert found.metrics[0].change.est == pytest.approx(ratio, rel=noise)


def test_more_looks_make_a_wider_interval_of_the_same_pairs() -> None:
    few, many = (comparison_of(asked(most=most), pairs(1.0)).metrics[0].change for most in (5, 40))
    assert few is not None
    assert many is not None
    assert (many.lo or 0) < (few.lo or 0) < (few.hi or 0) < (many.hi or 0)


def test_a_loss_in_one_configuration_is_enough_to_fail_and_is_named() -> None:
    both = asked("samples_per_s:-3%", configs=(TWO, FOUR))
    found = comparison_of(both, [*pairs(1.0), *pairs(0.8, config=FOUR)])
    gate = judge_sides(both.gates[0], found)
    assert gate.outcome == "failed"
    assert "with num_workers=4" in gate.said
    assert found.config == FOUR
    assert "num_workers=4" in found.headline


def test_a_configuration_is_decided_when_each_of_its_gates_is() -> None:
    found = comparison_of(asked(), pairs(0.9))
    assert is_decided(TWO, asked("samples_per_s:-3%"), found)
    assert is_decided(TWO, asked(), found)
    assert not is_decided(TWO, asked("samples_per_s:-3%", "samples_per_s:-10%"), found)
    assert not is_decided(TWO, asked(), comparison_of(asked(), pairs(1.0, noise=0.2)))


def test_two_pairs_decide_nothing() -> None:
    found = comparison_of(asked("samples_per_s:-3%", most=2), pairs(0.5, count=2))
    assert found.outcome == "inconclusive"
    assert "--budget" in found.reasons[0]
    assert judge_sides(parse_gate("samples_per_s:-3%", ""), found).outcome == "inconclusive"


def test_a_round_counts_where_both_were_measured() -> None:
    trials = [*pairs(1.0, count=5), trial(6, "before", 100, TWO), trial(6, "after", None, TWO)]
    assert pairs_of(TWO, trials) == 5
    nothing = comparison_of(asked("samples_per_s:-3%"), [trial(1, "before", 100, TWO), trial(1, "after", None, TWO)])
    assert nothing.metrics[0].not_measured == {"after": LATER_FAILED, "change": LATER_FAILED}
    assert judge_sides(parse_gate("samples_per_s:-3%", ""), nothing).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ("data_wait_share:+3pp", "failed"),
        ("data_wait_share:+30pp", "passed"),
        ("data_wait_share>20%", "failed"),
        ("data_wait_share>80%", "passed"),
        ("samples_per_s<20", "passed"),
        ("samples_per_s<900", "failed"),
    ],
)
def test_other_gates_are_of_the_later_version_or_of_what_changed_in_its_data_wait(
    expression: str, outcome: str
) -> None:
    gate: Gate = parse_gate(expression, "")
    found = comparison_of(asked(expression), pairs(1.0, data_wait_share=0.5))
    assert judge_sides(gate, found).outcome == outcome


def test_data_wait_of_a_loader_alone_is_not_measured() -> None:
    found = comparison_of(
        asked(), [trial(n, side, 9.0, TWO, consumer="none") for n in (1, 2) for side in ("before", "after")]
    )
    assert found.metrics[1].change is None
    assert found.metrics[1].not_measured["change"] == NO_WAIT


def test_data_wait_of_a_version_that_always_fails_is_missing_for_that_reason() -> None:
    gate = "data_wait_share:+3pp"
    failing = [trial(n, side, 9.0 if side == "before" else None, TWO) for n in (1, 2) for side in ("before", "after")]
    failing = [replace(one, data_wait_share=None) if one.status == "failed" else one for one in failing]
    found = comparison_of(asked(gate), failing)
    assert found.metrics[1].not_measured == {"after": LATER_FAILED, "change": LATER_FAILED}
    assert judge_sides(parse_gate(gate, ""), found).said == "every trial of the later version failed"


def test_a_loader_alone_and_a_version_that_always_fails_have_a_reason_each() -> None:
    alone = [trial(n, "before", 9.0, TWO, consumer="none") for n in (1, 2)]
    failing = [trial(n, "after", None, TWO, consumer="none", data_wait_share=None) for n in (1, 2)]
    missing = comparison_of(asked(), [*alone, *failing]).metrics[1].not_measured
    assert missing == {"before": NO_WAIT, "after": LATER_FAILED, "change": LATER_FAILED}


@pytest.mark.parametrize(
    ("trials", "change"),
    [
        ([trial(1, "before", 9.0, TWO)], "no trial of the later version was completed: interrupted after 1 trial"),
        ([trial(1, "after", 9.0, TWO)], "no trial of the earlier version was completed: interrupted after 1 trial"),
        ([trial(1, "before", 9.0, TWO), trial(1, "after", None, TWO)], LATER_FAILED),
        ([trial(1, "before", None, TWO), trial(1, "after", 9.0, TWO)], EARLIER_FAILED),
        ([trial(1, "before", None, TWO), trial(1, "after", None, TWO)], FAILED),
        (
            [trial(1, "before", None, TWO)],
            f"{EARLIER_FAILED}; no trial of the later version was completed: interrupted after 1 trial",
        ),
        ([trial(1, "before", 9.0, TWO), trial(1, "after", 0.0, TWO)], NO_RATE),
    ],
)
def test_without_a_pair_it_says_which_version_has_no_completed_trial_and_why(trials: list[Trial], change: str) -> None:
    interrupted = replace(asked("samples_per_s:-3%"), ended="interrupted after 1 trial")
    found = comparison_of(interrupted, trials)
    assert found.headline == f"Samples/s: change unknown, {change}"
    assert judge_sides(interrupted.gates[0], found).said == change


def test_a_configuration_that_only_the_later_version_fails_to_load_is_the_worst() -> None:
    broken = [one for one in pairs(1.0, config=FOUR) if one.side == "before"]
    assert comparison_of(asked(configs=(TWO, FOUR)), [*pairs(1.2), *broken]).config == TWO, "it has not begun"
    failure = Failure("user_code", "no such file", "")
    broken += [trial(number, "after", None, FOUR, failure=failure) for number in range(1, 9)]
    found = comparison_of(asked(configs=(TWO, FOUR)), [*pairs(1.2), *broken])
    assert (found.config, found.outcome) == (FOUR, "inconclusive")
    assert LATER_FAILED in found.headline
    judged = judge_sides(parse_gate("samples_per_s:-10%", "--fail-if"), found)
    assert (judged.outcome, judged.said) == ("failed", f"{LATER_FAILED} with num_workers=4")
    in_both = [one for one in [*pairs(1.2), *broken] if one.config == TWO or one.side == "after"]
    found = comparison_of(asked(configs=(TWO, FOUR)), in_both)
    assert judge_sides(parse_gate("samples_per_s:-10%", "--fail-if"), found).outcome == "inconclusive"


def test_a_rate_in_time_slices_makes_no_pair_with_one_without() -> None:
    slices = TimeSlices(count=4, batches=40, samples=160, seconds=1.0)
    trials = [replace(one, time_slices=slices if one.side == "before" else None) for one in pairs(1.0)]
    assert pairs_of(trials[0].config, trials) == 0
    alike = [replace(one, time_slices=slices) for one in pairs(1.0)]
    assert pairs_of(alike[0].config, alike) == pairs_of(trials[0].config, pairs(1.0)) > 0
