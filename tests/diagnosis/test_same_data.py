"""Which trials speak of the dataset of a configuration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.datasets import saved_dataset
from loaderbench.diagnosis.ranking import axes_of_work
from loaderbench.remedies.target_call import traits_with_same_data

OPENCV, NONE = {"opencv": "cv2"}, dict[str, str]()


def measured(section: dict[str, Any], *trials: tuple[dict[str, Any], dict[str, str]]) -> Any:
    sweep = [SimpleNamespace(config=config, dataset_traits=traits) for config, traits in trials]
    return SimpleNamespace(section=lambda _: section, sweep=sweep)


def test_the_traits_of_another_function_are_not_those_of_this_one() -> None:
    target = {"kind": "target"}
    run = measured(target, ({"target": "m:old"}, OPENCV), ({"target": "m:new"}, NONE))
    assert traits_with_same_data(run, {"target": "m:new"}) == NONE
    assert traits_with_same_data(run, {"target": "m:old"}) == OPENCV


def test_a_trial_of_other_arguments_speaks_of_the_same_data() -> None:
    run = measured({"kind": "target"}, ({"num_workers": 0}, NONE), ({"num_workers": 1}, OPENCV))
    assert traits_with_same_data(run, {"num_workers": 0}) == OPENCV


@pytest.mark.parametrize(
    ("section", "axes"),
    [
        ({"kind": "image_folder"}, ("ranks", "sample", "skip_bad")),
        ({"kind": "target"}, ("ranks",)),
    ],
)
def test_a_sample_of_files_is_no_choice_of_the_loader(section: dict[str, Any], axes: tuple[str, ...]) -> None:
    assert axes_of_work(saved_dataset(section)) == axes
