"""A step is divided by torch's hooks: what each part took is planted, and clocked inside the parts."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from recorded_loop import Loop, step_stages

from loaderbench.profiler.user_stages import UserStages
from loaderbench.recorder.batches import STEADY
from loaderbench.records.words import WITHOUT_GRADIENTS
from loaderbench.script.divided_steps import EARLY_STEPS, EVERY, DividedSteps
from loaderbench.script.step_stages import IN_A_PIPELINE, StepStages

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
def stages() -> Iterator[StepStages]:
    with step_stages() as made:
        yield made


@pytest.fixture
def profiler(stages: StepStages) -> Loop:
    return Loop(stages)


def is_hooked() -> bool:
    return bool(torch.nn.modules.module._has_any_global_hook())


def stages_of(profiler: Loop) -> dict[str, float]:
    costs = profiler.result.trials[0].step_stages
    return {name: cost.wall_s for name, cost in costs.items()}


def test_each_part_takes_what_was_planted_and_what_lies_between_belongs_to_none(profiler: Loop) -> None:
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


SCHEDULE = """\
def step(model, inputs):
    model(inputs).sum().backward()
"""


@pytest.mark.parametrize("schedule", ["torch.distributed.pipelining.schedules", "deepspeed.runtime.pipe.engine"])
def test_steps_of_a_pipeline_over_several_ranks_are_not_divided(
    schedule: str, profiler: Loop, stages: StepStages
) -> None:
    """There, a forward pass waits for the previous rank, and a backward pass for the next one."""
    names: dict[str, Any] = {"__name__": schedule}
    exec(SCHEDULE, names)
    for inputs in profiler.epoch(BATCHES):
        names["step"](SlowModel(), inputs)
        assert not is_hooked()
    assert not profiler.result.trials[0].step_stages
    assert stages.why_not_divided == IN_A_PIPELINE


def test_without_gradients_there_is_no_backward(profiler: Loop) -> None:
    model = SlowModel()
    with torch.no_grad():
        for _ in profiler.epoch(BATCHES):
            model(torch.ones(2, 4))
            time.sleep(0.005)
    assert stages_of(profiler).keys() == {"forward"}


def test_in_a_loop_that_trains_a_call_without_gradients_is_a_stage_of_its_own(profiler: Loop) -> None:
    """A frozen teacher between the model and its backward pass, and an evaluation after the optimizer."""
    model, teacher = SlowModel(), SlowModel()
    optimizer = SlowSgd(model.parameters(), lr=0.1)
    for _ in profiler.epoch(BATCHES):
        found = model(torch.ones(2, 4))
        with torch.no_grad():
            wanted = teacher(torch.ones(2, 4))
        (found - wanted).sum().backward()
        optimizer.step()
        with torch.inference_mode():
            model(torch.ones(2, 4))
    found_s = stages_of(profiler)
    planted_s = {**PLANTED_S, WITHOUT_GRADIENTS: 2 * PLANTED_S["forward"]}
    assert found_s.keys() == planted_s.keys()
    assert all(found_s[name] >= planted_s[name] for name in planted_s if name != WITHOUT_GRADIENTS)
    first_s = PLANTED_S["forward"]  # the teacher's first call comes before the first step of the optimizer
    divided = len(BATCHES) - 1
    assert found_s[WITHOUT_GRADIENTS] * divided >= planted_s[WITHOUT_GRADIENTS] * divided - first_s


def test_a_step_without_an_optimizer_ends_with_its_batch(profiler: Loop) -> None:
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


def test_an_exception_in_a_module_closes_its_part(profiler: Loop) -> None:
    broken = torch.nn.Linear(3, 1)
    for _ in profiler.epoch(BATCHES):
        with pytest.raises(RuntimeError):
            broken(torch.ones(2, 4))
        time.sleep(0.004)
    trial = profiler.result.trials[0]
    assert stages_of(profiler)["forward"] + 0.004 <= trial.step.mean_s


def test_a_warning_of_the_script_is_shown_as_often_as_without_us(stages: StepStages) -> None:
    """Each new filter makes Python forget which warnings it has shown."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        loop, model = Loop(stages), torch.nn.Linear(4, 1)
        for batch in loop.epoch(BATCHES):
            model(batch)
            warnings.warn("the learning rate is odd", stacklevel=1)
    assert len([one for one in shown if "odd" in str(one.message)]) == 1
    assert "forward" in stages_of(loop), "steps were divided"


class Noted:
    """A loop that notes what is to be timed of its steps, and which steps count."""

    def __init__(self) -> None:
        self.calls_model = self.trains = False
        self.goes_backward: bool | None = None
        self.entered: list[str] = []
        self.counted: list[bool] = []

    def stage(self, name: str) -> None:
        self.entered.append(name)

    def step_divided(self, took_s: float | None, around: str) -> None:
        self.counted.append(took_s is not None)


def names_entered(stages: StepStages, steps: int, calls_model: bool) -> list[str]:
    """The parts of so many steps, in order."""
    loop, model = Noted(), torch.nn.Linear(4, 1)
    for inputs in BATCHES[:steps]:
        stages.divide(loop, None)
        if calls_model:
            model(inputs).sum().backward()
        stages.leave_step(loop)
    return loop.entered


def test_on_a_gpu_the_time_before_the_model_is_called_is_transfer(
    monkeypatch: pytest.MonkeyPatch, stages: StepStages
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    step = ["forward", "backward"]
    assert names_entered(stages, 3, calls_model=True) == [*step, "transfer", *step, "transfer", *step]
    assert names_entered(stages, 3, calls_model=False) == []


def test_without_a_gpu_nothing_is_transferred(stages: StepStages) -> None:
    assert names_entered(stages, 2, calls_model=True) == ["forward", "backward"] * 2


def test_only_some_steps_have_hooks_of_modules_and_they_alone_count(profiler: Loop) -> None:
    """What the others take does not change the share that a stage has of a step."""
    model, hooked = torch.nn.Linear(4, 1), []
    for number, inputs in enumerate(profiler.epoch([torch.ones(2, 4)] * (EARLY_STEPS + 2 * EVERY))):
        hooked += [number] if is_hooked() else []
        if is_hooked():
            time.sleep(0.001)
        model(inputs)
    assert hooked == [*range(1, EARLY_STEPS), EARLY_STEPS - 1 + EVERY, EARLY_STEPS - 1 + 2 * EVERY]
    assert not is_hooked()
    assert f"stages of the loop: measured in {16 + 2} of {16 + 2 * EVERY} steps" in profiler.result.record.notes
    trial = profiler.result.trials[0]
    assert 0 < stages_of(profiler)["forward"] <= trial.step.mean_s


def test_a_share_is_that_of_the_steps_that_were_divided() -> None:
    stages = UserStages()
    for took_s in (0.5, 1.5):
        clock, place = stages.find("forward")
        clock.wall_s[place] += took_s / 4
        stages.end_body(STEADY, took_s)
    assert stages.costs(STEADY, 1000, step_s=0.1)["forward"].wall_s == pytest.approx(0.1 / 4)
    assert stages.divided(STEADY) == 2


def test_a_loop_that_is_left_leaves_no_hooks_and_its_last_step_does_not_count(profiler: Loop) -> None:
    model = torch.nn.Linear(4, 1)
    for last in (15, 5):
        for number, inputs in enumerate(profiler.epoch(BATCHES)):
            model(inputs)
            if number == last:
                assert is_hooked()
                break
        assert not is_hooked()
    assert profiler.profiler.batches_done == 15 + 5
    assert "stages of the loop: measured in 9 of 9 steps" in profiler.result.record.notes


def test_a_step_with_another_loop_inside_does_not_count(stages: StepStages) -> None:
    outer, inner, model = Loop(stages), Loop(stages), torch.nn.Linear(4, 1).requires_grad_(False)
    for inputs in outer.epoch(BATCHES):
        for other in inner.epoch(BATCHES[:3]):
            model(other)
        assert not is_hooked()
        model(inputs)
    assert outer.result.trials[0].step_stages is None
    assert stages_of(inner).keys() == {"forward"}


def test_a_step_that_takes_batches_of_two_loaders_is_divided(stages: StepStages) -> None:
    first, second, model = Loop(stages), Loop(stages), torch.nn.Linear(4, 1)
    for one, other in zip(first.epoch(BATCHES), second.epoch([*BATCHES]), strict=True):
        model(one + other).sum().backward()
    assert stages_of(first).keys() >= {"forward", "backward"}


def test_optimizers_are_watched_in_every_step_only_where_that_is_asked_for() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    for watches in (True, False):
        stages = StepStages(watches_optimizers=watches)
        stages.begin()
        found = []
        steps = DividedSteps(stages, None)  # type: ignore[arg-type]
        for updates in (True, False):
            if updates:
                optimizer.step()
            steps.step_ended()
            found.append(steps.optimizes)
        stages.end()
        assert found == [watches, False]


def test_each_of_two_loops_knows_of_an_update_in_its_own_step() -> None:
    """As where one loop takes a batch of another loader in each step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    stages = StepStages(watches_optimizers=True)
    stages.begin()
    labeled, unlabeled = (DividedSteps(stages, None) for _ in range(2))  # type: ignore[arg-type]
    for _ in range(2):
        labeled.step_ended()
        unlabeled.step_ended()
        optimizer.step()
    labeled.step_ended()
    unlabeled.step_ended()
    stages.end()
    assert (labeled.optimizes, unlabeled.optimizes) == (True, True)


class OwnModule(torch.nn.Module):
    """A user's: torch 2.11 compiles none of its own modules in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(inputs)
        return found


class Compiler:
    """Compiles nothing, and counts the graphs that it is given."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: Any, _: Any) -> Any:
        self.graphs += 1
        return graph.forward


def test_what_torch_compiles_is_compiled_whole_and_once(profiler: Loop) -> None:
    compiler = Compiler()
    compiled = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), backend=compiler)
    hooked = 0
    for inputs in profiler.epoch(BATCHES):
        hooked += is_hooked()
        compiled(inputs)
    assert (compiler.graphs, hooked) == (1, 19)
    assert "forward" in stages_of(profiler)


def test_a_module_that_is_compiled_in_place_is_compiled_once(profiler: Loop) -> None:
    """For hooks that come and go, torch would compile it again each time."""
    compiler, model = Compiler(), OwnModule()
    model.compile(backend=compiler)
    hooked = 0
    for inputs in profiler.epoch(BATCHES):
        hooked += is_hooked()
        model(inputs)
    assert (compiler.graphs, hooked) == (1, 0)


def test_a_step_in_which_torch_compiles_does_not_count_and_is_the_last_divided(profiler: Loop) -> None:
    gc.collect()  # a module of another test, compiled in place
    compiler, model, hooked = Compiler(), OwnModule(), []
    for number, inputs in enumerate(profiler.epoch(BATCHES)):
        hooked += [number] if is_hooked() else []
        if number == 5:
            model.compile(backend=compiler)
        model(inputs)
    assert hooked == [1, 2, 3, 4, 5]
    assert compiler.graphs == 2  # with hooks, and without
    assert "compile" in profiler.steps.stages.why_not_divided


class StepOnModel(torch.optim.SGD):
    """An optimizer whose step takes a model, which is callable, but no closure."""

    def step(self, model: Any) -> None:  # type: ignore[override]
        for parameter in model.parameters():
            parameter.grad = None


def test_an_optimizer_gets_the_model_that_the_script_passes(profiler: Loop) -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = StepOnModel(model.parameters(), lr=0.1)
    for _ in profiler.epoch(BATCHES):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step(model)
    assert all(parameter.grad is None for parameter in model.parameters())
