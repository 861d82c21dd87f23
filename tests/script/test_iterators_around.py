"""Code around a loader counts as waiting for data: what it takes is planted."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
from recorded_loop import Loop, step_stages

from loaderbench.records import Trial
from loaderbench.script.iterators_around import LOOK_EVERY

BATCHES = [torch.ones(2, 4)] * 20
AROUND_S, STEP_S = 0.006, 0.003
MODULE = "loaderbench.script.iterators_around"


@pytest.fixture
def loop() -> Iterator[Loop]:
    with step_stages() as stages:
        yield Loop(stages)


def converted(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        time.sleep(AROUND_S)
        yield batch


def one_ahead(batches: Iterable[Any]) -> Iterator[Any]:
    """As a prefetcher: it works, asks for the next batch, and hands on the one before."""
    iterator = iter(batches)
    batch = next(iterator, None)
    while batch is not None:
        time.sleep(AROUND_S)
        following = next(iterator, None)
        yield batch
        batch = following


class Converted:
    """An iterator of a class, which asks by a method of its own."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = iter(batches)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = self._fetch()
        time.sleep(AROUND_S)
        return batch

    def _fetch(self) -> Any:
        return next(self._batches)


def through_two(batches: Iterable[Any]) -> Iterator[Any]:
    return (batch for batch in converted(batches))


def through_the_same_twice(batches: Iterable[Any]) -> Iterator[Any]:
    half = converted(batches)
    return (batch for batch in converted(half))


def trial_of(loop: Loop) -> Trial:
    (found,) = loop.result.trials
    assert isinstance(found, Trial)
    assert found.data_wait is not None
    assert found.step is not None
    return found


def note_of(loop: Loop) -> list[str]:
    return [note for note in loop.result.record.notes if "around" in note]


@pytest.mark.parametrize("around", [converted, one_ahead, Converted, through_two])
def test_what_an_iterator_takes_is_waiting_and_no_step(loop: Loop, around: Any) -> None:
    for _ in around(loop.epoch(BATCHES)):
        time.sleep(STEP_S)
    trial = trial_of(loop)
    assert trial.data_wait.mean_s >= AROUND_S
    assert trial.data_wait_share >= AROUND_S * trial.batches / trial.steady_s
    assert trial.step.mean_s >= 0.9 * STEP_S  # a step is what is left by a mean
    whole_s = (trial.data_wait.mean_s + trial.step.mean_s) * trial.batches
    assert whole_s == pytest.approx(trial.steady_s, rel=0.02)
    assert trial.step_stages is None
    (note,) = note_of(loop)
    assert trial.taking is not None
    assert trial.taking.around is not None
    assert "(test_iterators_around.py:" in trial.taking.around.place
    assert note.endswith(f"code around the loader: {trial.taking.around.place}")
    assert sys.getprofile() is None


def test_the_same_generator_within_itself_counts_once(loop: Loop) -> None:
    for _ in through_the_same_twice(loop.epoch(BATCHES)):
        time.sleep(STEP_S)
    trial = trial_of(loop)
    assert trial.data_wait.mean_s >= 2 * AROUND_S
    assert trial.step.mean_s >= 0.9 * STEP_S


def test_a_loop_without_any_has_no_note(loop: Loop) -> None:
    for _ in loop.epoch(BATCHES):
        time.sleep(STEP_S)
    assert note_of(loop) == []
    assert trial_of(loop).step.mean_s >= STEP_S


def test_a_generator_that_trains_is_the_loop_itself(loop: Loop) -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def training() -> Iterator[float]:
        for inputs in converted(loop.epoch(BATCHES)):
            loss = model(inputs).sum()
            loss.backward()
            optimizer.step()
            time.sleep(STEP_S)
            yield loss.item()

    assert len(list(training())) == len(BATCHES)
    trial = trial_of(loop)
    assert trial.data_wait.mean_s >= AROUND_S
    assert trial.step.mean_s >= 0.9 * STEP_S
    assert {"forward", "backward", "optimizer"} <= (trial.step_stages or {}).keys()
    assert "converted" in note_of(loop)[0]


def test_a_generator_that_runs_all_of_the_training_is_none(loop: Loop) -> None:
    def program() -> Iterator[str]:
        for _ in loop.epoch(BATCHES):
            time.sleep(STEP_S)
        yield "trained"

    assert list(program()) == ["trained"]
    assert note_of(loop) == []
    assert trial_of(loop).step.mean_s >= STEP_S


def test_a_script_that_is_profiled_keeps_its_own_profiler(loop: Loop) -> None:
    seen = []

    def own(*event: Any) -> None:
        seen.append(event[1])

    sys.setprofile(own)
    try:
        for _ in converted(loop.epoch(BATCHES)):
            assert sys.getprofile() is own
    finally:
        sys.setprofile(None)
    assert seen
    assert note_of(loop) == []


def test_an_exception_in_the_iterator_reaches_the_loop_and_nothing_follows_calls_any_more(loop: Loop) -> None:
    def broken(batches: Iterable[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            if number == 7:
                raise ValueError("a bad batch")
            yield batch

    epoch = loop.epoch(BATCHES)
    with pytest.raises(ValueError, match="a bad batch"):
        list(broken(epoch))
    epoch.leave_out_the_rest()
    assert sys.getprofile() is None


def call_often(times: int) -> None:
    for _ in range(times):
        abs(-1)


def test_the_calls_of_a_step_are_not_followed_where_that_would_slow_it_down(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}.EVENT_S", 1.0)
    followed = []
    for number, _ in enumerate(converted(loop.epoch(BATCHES))):
        followed += [number] if sys.getprofile() else []
        call_often(LOOK_EVERY)
        assert sys.getprofile() is None
    assert followed == [1, 2, 3], "the second step is the first to be divided, and three are enough"
    assert note_of(loop) == []
    assert trial_of(loop).batches


def test_calls_that_cost_little_of_a_step_are_followed_and_a_single_long_step_ends_nothing(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}.EVENT_S", 0.0)
    for number, _ in enumerate(converted(loop.epoch(BATCHES))):
        with monkeypatch.context() as costly:
            if number == 5:
                costly.setattr(f"{MODULE}.EVENT_S", 1.0)
            call_often(LOOK_EVERY)
        assert (sys.getprofile() is None) is (number in (0, 5))
    assert "converted" in note_of(loop)[0]


def test_code_around_the_loader_of_very_many_calls_is_not_timed(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.MOST_EVENTS", 1000)
    for _ in calling_often(loop.epoch(BATCHES)):
        assert sys.getprofile() is None
    assert note_of(loop) == []


def calling_often(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        call_often(1000)
        yield batch


def test_a_loop_that_is_left_while_its_iterator_lives_on_is_followed_for_a_limited_time(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaderbench.script.divided_steps.LEAST_LIMIT_S", 0.0)
    monkeypatch.setattr("loaderbench.script.divided_steps.LIMIT_STEPS", 0.0)
    monkeypatch.setattr(f"{MODULE}.EVENT_S", 0.0)
    batches = converted(loop.epoch(BATCHES))
    next(batches), next(batches)
    assert sys.getprofile() is not None
    call_often(LOOK_EVERY)
    assert sys.getprofile() is None
    assert loop.steps.stages.loop is None
    next(batches)
    assert loop.steps.stages.loop is not None, "a later step is divided"


def test_of_iterators_around_the_loader_the_outermost_one_of_the_user_is_named(loop: Loop) -> None:
    """It is timed with those of libraries around it, such as a progress bar."""
    names: dict[str, Any] = {}
    exec(compile(PROGRESS, "/venv/lib/python3.11/site-packages/progress/bar.py", "exec"), names)
    for _ in names["progress"](one_ahead(converted(loop.epoch(BATCHES)))):
        pass
    assert "one_ahead (test_iterators_around.py:" in note_of(loop)[0]


def test_where_all_iterators_around_are_those_of_libraries_the_outermost_is_named(loop: Loop) -> None:
    names: dict[str, Any] = {}
    exec(compile(PROGRESS, "/venv/lib/python3.11/site-packages/progress/bar.py", "exec"), names)
    for _ in names["progress"](loop.epoch(BATCHES)):
        pass
    assert "progress (progress/bar.py:1)" in note_of(loop)[0]


PROGRESS = """\
def progress(batches):
    for batch in batches:
        yield batch
"""


class Converter(torch.nn.Module):
    """A transform, which has no parameters."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        time.sleep(AROUND_S)
        return batch


def test_a_generator_that_calls_a_transform_without_parameters_is_no_loop(loop: Loop) -> None:
    convert, model = torch.nn.Sequential(Converter()), torch.nn.Linear(4, 1)

    def transformed(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield convert(batch)

    for inputs in transformed(loop.epoch(BATCHES)):
        model(inputs).sum().backward()
    trial = trial_of(loop)
    assert "transformed" in note_of(loop)[0]
    assert trial.data_wait.mean_s >= AROUND_S
    assert (trial.step_stages or {}).keys() == {"forward", "backward"}
