"""What one traced trial tells in a sentence."""

from dataclasses import replace

import pytest

from loaderbench.diagnosis.wording import describe_inside, states_in_words
from loaderbench.records import StageCost, Trial

TRIAL = Trial(role="sweep", id="a", config={}, round=1, status="completed", stages={"sample": StageCost(0.01, 0.02)})


def test_an_opaque_dataset_is_called_by_its_name() -> None:
    assert describe_inside([TRIAL]) == ("the dataset itself takes 100 % of a sample's time inside the loader (20 ms)",)


def test_without_workers_the_time_is_the_main_process_s() -> None:
    (said,) = describe_inside([replace(TRIAL, config={"num_workers": 0})])
    assert "a sample's time in the main process" in said


@pytest.mark.parametrize("stages", [None, {}, {"decode": StageCost(0.1, None)}, {"decode": StageCost(0.0, 0.0)}])
def test_what_was_not_timed_is_not_told(stages: dict[str, StageCost] | None) -> None:
    assert describe_inside([replace(TRIAL, stages=stages)]) == ()


def test_a_trial_that_failed_tells_nothing() -> None:
    assert describe_inside([replace(TRIAL, status="failed")]) == ()
    assert states_in_words(None) == ""
