"""A step is divided by torch's hooks: what each part took is planted, and clocked inside the parts."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
import torch

from loaderbench.script.loader_profiler import LoaderProfiler
from loaderbench.script.step_stages import StepStages

PLANTED_S = {"forward": 0.004, "backward": 0.006, "optimizer": 0.003}


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, inputs: torch.Tensor) -> torch.Tensor:
        return inputs * 2

    @staticmethod
    def backward(_: Any, *grads: torch.Tensor) -> torch.Tensor:
        time.sleep(PLANTED_S["backward"])
        return grads[0] * 2


class SlowModel(torch.nn.Module):
    """Modules within modules: only the outermost call counts."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        time.sleep(PLANTED_S["forward"])
        found: torch.Tensor = SlowBackward.apply(self.inner(inputs))  # type: ignore[no-untyped-call]
        return found


class SlowSgd(torch.optim.SGD):
    def step(self, closure: Any = None) -> None:
        time.sleep(PLANTED_S["optimizer"])
        super().step(closure)


BATCHES = [torch.ones(2, 4)] * 20


@pytest.fixture
def profiler() -> Iterator[LoaderProfiler]:
    """A profiler whose loop's steps are divided."""
    made: list[StepStages] = []

    def step_ended() -> None:
        made[0].step_ended()

    found = LoaderProfiler(
        "train", iter, steps=None, until_s=inf, step_ended=step_ended, between_batches=lambda _: None
    )
    made.append(StepStages(found.loop_stage))
    made[0].begin()
    try:
        yield found
    finally:
        made[0].end()


def stages_of(profiler: LoaderProfiler) -> dict[str, float]:
    costs = profiler.result.trials[0].step_stages
    return {name: cost.wall_s for name, cost in costs.items()}


def test_each_part_takes_what_was_planted_and_what_lies_between_belongs_to_none(profiler: LoaderProfiler) -> None:
    model, between_s = SlowModel(), 0.005
    optimizer = SlowSgd(model.parameters(), lr=0.1)
    for _ in profiler.epoch(BATCHES):
        time.sleep(between_s)
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    found = stages_of(profiler)
    assert found.keys() == PLANTED_S.keys()
    assert all(found[name] >= planted_s for name, planted_s in PLANTED_S.items())
    step_s = profiler.result.trials[0].step.mean_s
    assert sum(found.values()) + between_s <= step_s


def test_without_gradients_there_is_no_backward(profiler: LoaderProfiler) -> None:
    model = SlowModel()
    with torch.no_grad():
        for _ in profiler.epoch(BATCHES):
            model(torch.ones(2, 4))
            time.sleep(0.005)
    assert stages_of(profiler).keys() == {"forward"}


def test_a_step_without_an_optimizer_ends_with_its_batch(profiler: LoaderProfiler) -> None:
    """As where gradients are accumulated: the wait for the next batch is none of its parts."""
    model, waits_s = SlowModel(), 0.02

    def batches() -> Iterator[torch.Tensor]:
        for _ in range(20):
            time.sleep(waits_s)
            yield torch.ones(2, 4)

    for inputs in profiler.epoch(batches()):
        model(inputs).sum().backward()
    trial = profiler.result.trials[0]
    assert sum(stages_of(profiler).values()) <= trial.step.mean_s


def test_an_exception_in_a_module_closes_its_part(profiler: LoaderProfiler) -> None:
    broken = torch.nn.Linear(3, 1)
    for _ in profiler.epoch(BATCHES):
        with pytest.raises(RuntimeError):
            broken(torch.ones(2, 4))
        time.sleep(0.004)
    trial = profiler.result.trials[0]
    assert stages_of(profiler)["forward"] + 0.004 <= trial.step.mean_s


def names_entered(steps: int, calls_model: bool) -> list[str]:
    """The parts of so many steps, in order, with a clock that only notes what it is asked to time."""
    entered: list[str] = []
    stages, model = StepStages(entered.append), torch.nn.Linear(4, 1)  # type: ignore[arg-type]
    stages.begin()
    try:
        for inputs in BATCHES[:steps]:
            stages.batch_came()
            if calls_model:
                model(inputs).sum().backward()
            stages.step_ended()
    finally:
        stages.end()
    return entered


def test_on_a_gpu_the_time_before_the_model_is_called_is_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    step = ["forward", "backward"]
    assert names_entered(3, calls_model=True) == [*step, "transfer", *step, "transfer", *step]
    assert names_entered(3, calls_model=False) == []


def test_without_a_gpu_nothing_is_transferred() -> None:
    assert names_entered(2, calls_model=True) == ["forward", "backward"] * 2


def test_what_torch_compiles_is_compiled_whole() -> None:
    graphs: list[Any] = []

    def count(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    entered: defaultdict[str, int] = defaultdict(int)
    stages = StepStages(lambda name: entered.update({name: entered[name] + 1}))  # type: ignore[arg-type, func-returns-value]
    stages.begin()
    try:
        compiled = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), backend=count)
        for _ in range(2):
            compiled(torch.ones(2, 4))
    finally:
        stages.end()
    assert len(graphs) == 1
    assert entered["forward"] == 2
