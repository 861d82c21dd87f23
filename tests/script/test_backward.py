"""The time after a model's call is a backward pass only in a loop that goes backward."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from recorded_loop import Loop, step_stages

from loaderbench.script.model_calls import watch_backward
from loaderbench.script.step_stages import StepStages

BATCHES = [torch.ones(2, 4)] * 20


@pytest.fixture
def stages() -> Iterator[StepStages]:
    with step_stages() as made:
        yield made


def stages_of(loop: Loop) -> set[str]:
    return {*loop.result.trials[0].step_stages}


def test_a_loop_that_only_calls_the_model_has_no_backward(stages: StepStages) -> None:
    loop, model = Loop(stages), torch.nn.Linear(4, 1)
    for inputs in loop.epoch(BATCHES):
        model(inputs)
        time.sleep(0.001)
    assert stages_of(loop) == {"forward"}
    assert "stages of the loop: measured in 10 of 10 steps" in loop.result.record.notes


def test_a_short_loop_that_only_calls_the_model_has_none_either(stages: StepStages) -> None:
    loop, model = Loop(stages), torch.nn.Linear(4, 1)
    for inputs in loop.epoch(BATCHES[:6]):
        model(inputs)
    assert stages_of(loop) == {"forward"}


def test_weights_may_be_updated_without_an_optimizer_of_torch(stages: StepStages) -> None:
    loop, model = Loop(stages), torch.nn.Linear(4, 1)
    for inputs in loop.epoch(BATCHES):
        model(inputs).sum().backward()
        with torch.no_grad():
            for weights in model.parameters():
                weights.sub_(0.1 * weights.grad)  # type: ignore[operator]
    assert stages_of(loop) == {"forward", "backward"}


def test_a_loop_may_go_backward_only_in_its_later_steps(stages: StepStages) -> None:
    """As where the losses of several batches are added up."""
    loop, model, losses = Loop(stages), torch.nn.Linear(4, 1), list[Any]()
    for number, inputs in enumerate(loop.epoch(BATCHES)):
        losses.append(model(inputs).sum())
        if number % 4 == 3:
            sum(losses).backward()
            losses.clear()
    assert stages_of(loop) == {"forward", "backward"}


@dataclass
class Output:
    logits: Any


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: (x, 3), lambda x: {"a": [x]}, Output])
def test_a_backward_pass_is_noticed_whatever_holds_the_output(wrap: Any) -> None:
    found = torch.nn.Linear(4, 1)(torch.ones(2, 4))
    noted: list[bool] = []
    watch_backward(wrap(found), lambda: noted.append(True))
    assert noted == []
    found.sum().backward()
    assert noted == [True]


def test_an_output_without_gradients_or_of_an_unknown_class_is_left_alone() -> None:
    noted: list[Any] = []
    for output in (torch.ones(2), None, SimpleNamespace(logits=1), [torch.ones(1)] * 1_000):
        watch_backward(output, lambda output=output: noted.append(output))  # type: ignore[misc]
    torch.nn.Linear(2, 1)(torch.ones(2)).sum().backward()
    assert noted == []
