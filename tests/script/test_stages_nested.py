"""Stages within stages, such as the closure of an optimizer: at each planted point, it is known which are open."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest
import torch
from recorded_loop import step_stages

from loaderbench.script.step_stages import StepStages


class Noted:
    """A loop, and a clock of its stages: which are open, and which steps count."""

    ident = 1

    def __init__(self) -> None:
        self.calls_model = self.trains = False
        self.goes_backward: bool | None = None
        self.open: list[str] = []
        self.entered: list[str] = []
        self.counted: list[bool] = []
        self.seen: dict[str, list[str]] = {}

    def stage(self, name: str) -> Any:
        return self, name

    def enter(self, name: str) -> None:
        self.open.append(name)
        self.entered.append(name)

    def leave(self) -> None:
        self.open.pop()

    def step_divided(self, took_s: float | None, around: str) -> None:
        self.counted.append(took_s is not None)

    def at(self, point: str) -> None:
        """Note which stages are open at a point of the script; a class and its base both have an `optimizer`."""
        self.seen[point] = [*dict.fromkeys(self.open)]


class Model(torch.nn.Module):
    def __init__(self, loop: Noted) -> None:
        super().__init__()
        self.layer, self.loop = torch.nn.Linear(4, 1), loop

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.loop.at("model")
        found: torch.Tensor = self.layer(inputs)
        found.register_hook(lambda _: self.loop.at("gradients"))
        return found


class Sgd(torch.optim.SGD):
    """Notes where it updates the weights, which is after the closure."""

    loop: Noted

    def step(self, closure: Any = None) -> Any:
        loss = super().step(closure)
        self.loop.at("update")
        return loss


class Twice(torch.optim.Optimizer):
    """As SAM: it holds another optimizer, and calls the model itself."""

    def __init__(self, own: Sgd) -> None:
        super().__init__(own.param_groups, {})
        self.own = own

    def step(self, closure: Any = None) -> Any:
        loss = torch.enable_grad()(closure)()  # type: ignore[no-untyped-call]
        self.own.loop.at("before the second")
        self.own.step()
        self.own.loop.at("after the second")
        return loss


IN_CLOSURE = {"model": ["optimizer", "forward"], "gradients": ["optimizer", "backward"], "update": ["optimizer"]}


@pytest.fixture(autouse=True, scope="module")
def no_compiled_module() -> None:
    """While a module of another test lives that was compiled in place, no step is divided."""
    gc.collect()


@pytest.fixture
def stages() -> Iterator[StepStages]:
    with step_stages() as made:
        yield made


@pytest.fixture
def loop() -> Noted:
    return Noted()


def made(loop: Noted) -> tuple[Sgd, Callable[[], torch.Tensor]]:
    """An optimizer, and the closure for its step."""
    model = Model(loop)
    optimizer = Sgd(model.parameters(), lr=0.1)
    optimizer.loop = loop

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        return loss

    return optimizer, closure


@pytest.mark.parametrize("named", [True, False])
def test_what_follows_the_closure_of_an_optimizer_is_no_backward_and_the_step_ends_with_it(
    stages: StepStages, loop: Noted, named: bool
) -> None:
    optimizer, closure = made(loop)
    stages.divide(loop, None)
    loss = optimizer.step(closure=closure) if named else optimizer.step(closure)
    loop.at("logging")
    stages.leave_step(loop)
    assert loss.requires_grad
    assert loop.seen == {**IN_CLOSURE, "logging": []}
    assert loop.counted == [True]


def test_a_closure_that_is_called_several_times_leaves_no_stage_open(stages: StepStages, loop: Noted) -> None:
    _, closure = made(loop)
    lbfgs = torch.optim.LBFGS([torch.nn.Parameter(torch.ones(1))], max_iter=3)

    def with_gradient() -> torch.Tensor:
        parameter = lbfgs.param_groups[0]["params"][0]
        lbfgs.zero_grad()
        (parameter**4).sum().backward()
        return closure()

    stages.divide(loop, None)
    lbfgs.step(with_gradient)  # type: ignore[no-untyped-call]
    assert loop.open == []
    assert loop.entered.count("forward") == loop.entered.count("backward") > 1
    stages.leave_step(loop)


def test_an_optimizer_within_another_ends_by_itself(stages: StepStages, loop: Noted) -> None:
    optimizer, closure = made(loop)
    twice = Twice(optimizer)
    stages.divide(loop, None)
    twice.step(closure)
    loop.at("logging")
    stages.leave_step(loop)
    assert loop.seen == {
        **IN_CLOSURE,
        "before the second": ["optimizer"],
        "update": ["optimizer"],
        "after the second": ["optimizer"],
        "logging": [],
    }


def test_a_closure_that_raises_leaves_backward_and_its_step_does_not_count(stages: StepStages, loop: Noted) -> None:
    optimizer, closure = made(loop)

    def broken() -> None:
        closure()
        raise ValueError

    for close in (broken, closure):
        stages.divide(loop, None)
        try:
            optimizer.step(close)
        except ValueError:
            loop.at("caught")
        stages.leave_step(loop)
        assert loop.open == []
    assert loop.seen["caught"] == ["optimizer"]
    assert loop.counted == [False, True]


def test_a_step_that_takes_too_long_ends_where_the_next_model_is_called(stages: StepStages, loop: Noted) -> None:
    """As a loop that is left while its iterator lives on."""
    model = Model(loop)
    stages.divide(loop, None, longest_s=0.0)
    model(torch.ones(2, 4))
    assert loop.counted == [False]
    assert loop.seen == {"model": []}
    assert not torch.nn.modules.module._has_any_global_hook()


def in_a_thread(call: Callable[[], object]) -> None:
    thread = Thread(target=call)
    thread.start()
    thread.join()


def test_a_loop_is_divided_in_the_thread_that_it_runs_in_also_after_one_in_another_thread(loop: Noted) -> None:
    found: list[StepStages] = []
    in_a_thread(lambda: found.append(StepStages(watches_optimizers=False)))
    (stages,) = found
    other = Noted()

    def other_loop() -> None:
        """It calls no model, and its thread ends within a step."""
        stages.divide(other, None)

    in_a_thread(other_loop)
    try:
        stages.divide(loop, None)
        Model(loop)(torch.ones(2, 4)).sum().backward()
        stages.leave_step(loop)
    finally:
        stages.end()
    assert other.counted == [False]
    assert (loop.counted, loop.entered) == ([True], ["forward", "backward"])


def test_of_two_loops_that_begin_at_the_same_time_one_is_divided(
    stages: StepStages, loop: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Noted()

    def look(_: object) -> bool:
        """Meanwhile, a step of the other loop begins."""
        in_a_thread(lambda: stages.divide(other, None))
        return False

    monkeypatch.setattr(stages.training_thread, "is_another", look)
    stages.divide(loop, None)
    stages.leave_step(loop)
    stages.end()
    assert (loop.counted, other.counted) == ([True], [])
    assert not torch.nn.modules.module._has_any_global_hook()


def test_a_thread_that_only_prefetches_is_not_divided_once_another_one_trains(stages: StepStages, loop: Noted) -> None:
    background, model = Noted(), Model(loop)

    def prefetch() -> None:
        stages.divide(background, None)
        stages.leave_step(background)

    in_a_thread(prefetch)
    model(torch.ones(2, 4))
    in_a_thread(prefetch)
    assert background.counted == [True]
