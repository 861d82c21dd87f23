"""Which part of a step a compute-bound loop spends the most time in."""

from dataclasses import replace

import pytest

from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.slow_steps import REST, longer_than_the_wait, step_parts_in_words, step_shares
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import Interval, LoopLine, RankReadings, StageCost, Trial
from loaderbench.records.words import WITHOUT_GRADIENTS

PARTS = {
    "transfer": StageCost(wall_s=0.002, cpu_s=0.002),
    "forward": StageCost(wall_s=0.027, cpu_s=0.027),
    "backward": StageCost(wall_s=0.052, cpu_s=0.052),
    "optimizer": StageCost(wall_s=0.015, cpu_s=0.015),
}
LOOP = Trial(
    role="profile", id="a", config={}, round=1, status="completed", samples_per_s=640.0, data_wait_share=0.01,
    batches=100, steady_s=10.0, step_stages=PARTS,
)  # fmt: skip
LINE = LoopLine(place="train.py:44", text="save(model)", share=0.9, looks=50)
KEEPS_UP = Subject({}, Interval(640.0, None, None), Interval(0.01, None, None), is_best=False)
WAITS = replace(KEEPS_UP, data_wait_share=Interval(0.4, None, None))


def test_a_compute_bound_verdict_names_the_largest_part_of_a_step_first() -> None:
    found = decide(KEEPS_UP, "loop", None, doubts=0, trials=[LOOP])
    assert found.bound == "compute"
    assert found.evidence[:2] == (
        "Backward: 52% of step time, the largest part; forward 27%, optimizer 15%, rest of the step 3%, "
        "host-to-device copy 2%",
        "Data wait: 1% of step time; input-bound at 5% or more",
    )


def test_an_input_bound_verdict_names_a_part_only_if_it_takes_longer_than_the_wait() -> None:
    found = decide(WAITS, "loop", None, doubts=0, trials=[replace(LOOP, data_wait_share=0.4)])
    assert not any("Backward" in line for line in found.evidence)
    wait = Interval(0.1, None, None)
    short = decide(
        replace(WAITS, data_wait_share=wait), "loop", None, doubts=0, trials=[replace(LOOP, data_wait_share=0.1)]
    )
    part = "Backward: 49% of step time, more than the data wait; forward 25%, optimizer 14%, host-to-device copy 2%"
    assert part in short.evidence


def test_the_rest_takes_longer_than_the_wait_only_with_a_line() -> None:
    marked = replace(LOOP, data_wait_share=0.3, step_stages={"forward": StageCost(wall_s=0.02, cpu_s=0.02)})
    assert longer_than_the_wait([marked]) == ()
    (rest,) = longer_than_the_wait([replace(marked, step_line=LINE)])
    assert (
        str(rest) == "Rest of the step: 50% of step time, more than the data wait, mostly in train.py:44; forward 20%"
    )


def test_an_evaluation_is_part_of_the_rest_if_that_has_a_line() -> None:
    stages = {"forward": StageCost(wall_s=0.02, cpu_s=0.02), WITHOUT_GRADIENTS: StageCost(wall_s=0.05, cpu_s=0.05)}
    evaluates = replace(LOOP, step_stages=stages)
    assert step_shares(evaluates)[WITHOUT_GRADIENTS] == pytest.approx(0.5)
    shares = step_shares(replace(evaluates, step_line=LINE))
    assert shares == {"forward": pytest.approx(0.2), REST: pytest.approx(0.79)}


def test_the_line_of_the_rest_is_named() -> None:
    mostly = replace(LOOP, step_stages={"forward": StageCost(wall_s=0.02, cpu_s=0.02)}, step_line=LINE)
    (largest,) = step_parts_in_words([mostly])
    assert str(largest) == "Rest of the step: 79% of step time, the largest part, mostly in train.py:44; forward 20%"
    (small,) = step_parts_in_words([replace(LOOP, step_line=LINE)])
    assert "rest of the step 3% (mostly in train.py:44)" in str(small)


def test_code_outside_of_the_model_can_be_the_largest_part() -> None:
    short = replace(LOOP, step_stages={"forward": StageCost(wall_s=0.02, cpu_s=0.02)})
    (line,) = step_parts_in_words([short])
    assert str(line) == "Rest of the step: 79% of step time, the largest part; forward 20%"


@pytest.mark.parametrize(
    "trial",
    [
        replace(LOOP, step_stages=None),
        replace(LOOP, step_stages={"forward": StageCost(wall_s=None, cpu_s=None)}),
        replace(LOOP, steady_s=None),
        replace(LOOP, batches=None),
        replace(LOOP, data_wait_share=None),
        replace(LOOP, status="failed"),
    ],
)
def test_without_timed_parts_nothing_is_said(trial: Trial) -> None:
    assert step_parts_in_words([trial]) == ()


def test_parts_that_overlap_are_shares_of_their_sum() -> None:
    twice = {name: StageCost(wall_s=2 * (cost.wall_s or 0.0), cpu_s=None) for name, cost in PARTS.items()}
    shares = step_shares(replace(LOOP, step_stages=twice))
    assert shares[REST] == 0
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)  # the rest is data wait


def test_in_a_trial_with_ranks_the_parts_are_those_of_the_slowest() -> None:
    own = {"forward": StageCost(wall_s=0.09, cpu_s=None)}
    slowest = RankReadings(rank=1, data_wait_share=0.0, batches=10, steady_s=1.0, step_stages=own)
    several = replace(LOOP, ranks=(replace(slowest, rank=0, step_stages=None), slowest), slowest_rank=1)
    assert step_shares(several) == pytest.approx({"forward": 0.9, REST: 0.1})
