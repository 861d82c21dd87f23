"""Wrong calls get one clear line, loops that end badly keep what was measured, and nothing of the user's is changed."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from loops import Numbers, Planted, Unpicklable, pause, state_of, trial_of
from torch.utils.data import DataLoader, TensorDataset

from loaderbench import Profiler
from loaderbench.errors import UsageError

Make = Callable[..., DataLoader[Any]]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes loaders, and holds each against what it was when the test is over: no hook is left behind."""
    made: list[tuple[DataLoader[Any], dict[str, Any]]] = []

    def loader(dataset: Any = None, **arguments: Any) -> DataLoader[Any]:
        new = DataLoader(dataset or Numbers(), **{"batch_size": 4, **arguments})
        made.append((new, state_of(new)))
        return new

    yield loader
    for loader_, before in made:
        loader_._iterator = None  # workers that persist are the loader's own, as without us
        after = state_when_workers_ended(loader_, before["children"])
        assert after.pop("children") <= before.pop("children")
        assert after == before


def state_when_workers_ended(loader: Any, known: set[int]) -> dict[str, Any]:
    """The loader's state; workers of a loader that raised take some seconds to end, with us or without."""
    ends_s = time.monotonic() + 20
    while not (state := state_of(loader))["children"] <= known and time.monotonic() < ends_s:
        gc.collect()
        time.sleep(0.1)
    return state


WAYS = pytest.mark.parametrize("arguments", [{}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}])


def batches(prof: Profiler) -> int:
    (trial,) = prof.result.trials
    return trial.batches or 0


def loop_that_raises(prof: Profiler, loader: Any, error: BaseException) -> None:
    with prof:
        for number, _ in enumerate(prof.iter(loader)):
            if number == 6:
                raise error


@WAYS
def test_a_loop_left_by_break_keeps_what_was_measured(make: Make, arguments: dict[str, Any]) -> None:
    with Profiler(warmup=0, trace=True) as prof:
        for number, _ in enumerate(prof.iter(make(**arguments))):
            if number == 6:
                break
    assert batches(prof) == 5


@WAYS
def test_a_loop_that_raises_passes_it_on_and_keeps_what_was_measured(make: Make, arguments: dict[str, Any]) -> None:
    prof = Profiler(warmup=0, trace=True)
    with pytest.raises(KeyError, match="mine"):
        loop_that_raises(prof, make(**arguments), KeyError("mine"))
    assert batches(prof) == 5
    assert any("KeyError" in note for note in prof.result.notes)


@pytest.mark.usefixtures("torch_looks_often")
@WAYS
def test_a_loader_that_raises_in_mid_epoch_passes_it_on(make: Make, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="planted in the dataset"), Profiler(warmup=0, trace=True) as prof:
        for _ in prof.iter(make(Numbers(raise_at=30), **arguments)):
            pass
    assert batches(prof) == 6


@WAYS
def test_an_iterator_that_is_abandoned_leaves_nothing(make: Make, arguments: dict[str, Any]) -> None:
    with Profiler(warmup=0, trace=True) as prof:
        abandoned = iter(prof.iter(make(**arguments)))
        next(abandoned)
        del abandoned
    assert prof.result.trials[0].failure.kind == "no_batches"


@WAYS
def test_a_loop_that_goes_on_after_stop_gets_all_its_batches(make: Make, arguments: dict[str, Any]) -> None:
    prof = Profiler(warmup=0, trace=True).start()
    seen = 0
    for _ in prof.iter(make(**arguments)):
        seen += 1
        if seen == 4:
            prof.stop()
    assert seen == 12
    assert batches(prof) == 2


def test_a_dataset_that_cannot_be_sent_to_a_worker_raises_what_it_would_without_us(make: Make) -> None:
    loader = make(Unpicklable(), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(TypeError, match="pickle"), Profiler(trace=True) as prof:
        for _ in prof.iter(loader):
            pass
    assert prof.result.trials[0].failure is not None


def test_two_profilers_on_one_loader_are_refused(make: Make) -> None:
    loader = make()
    with Profiler("outer") as outer, Profiler("inner") as inner:
        for _ in outer.iter(loader):
            with pytest.raises(UsageError, match="'outer' is already recording this loader"):
                inner.iter(loader)
            break
        with pytest.raises(UsageError, match="already profiled"):
            inner.iter(outer.iter(loader))


def test_profilers_one_after_the_other_are_fine(make: Make) -> None:
    loader = make()
    for _ in range(2):
        with Profiler(warmup=0) as prof:
            assert len(list(prof.iter(loader))) == 12
        assert batches(prof) == 11


def test_two_profilers_on_two_loaders_may_be_nested(make: Make) -> None:
    one, other = make(), make()
    with Profiler("train", warmup=0) as train, Profiler("validate", warmup=0) as validate:
        for number, _ in enumerate(train.iter(one)):
            if number == 5:
                list(validate.iter(other))
    assert (batches(train), batches(validate)) == (11, 11)


@pytest.mark.parametrize("call", [Profiler.stop, lambda prof: prof.result, lambda prof: list(prof.iter([1, 2]))])
def test_a_profiler_that_was_not_started_says_so(call: Callable[[Profiler], Any]) -> None:
    with pytest.raises(UsageError, match="was not started"):
        call(Profiler("early"))


def test_a_profiler_is_started_once() -> None:
    with Profiler("once") as prof, pytest.raises(UsageError, match="was already started"):
        prof.start()


def test_a_stopped_profiler_lets_batches_through() -> None:
    with Profiler() as prof:
        pass
    assert list(prof.iter([1, 2])) == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"warmup": -1}, "warmup must be an integer of 0 or more, got -1"),
        ({"warmup": 1.5}, "warmup"),
        ({"warmup": None}, "warmup"),
        ({"steps": 0}, "steps must be an integer of 1 or more, got 0"),
        ({"steps": True}, "steps"),
        ({"steps": np.array([4, 8])}, "steps"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Profiler(**arguments)


def test_integers_may_be_those_of_numpy() -> None:
    with Profiler(warmup=np.int64(2), steps=np.int32(5)) as prof:  # type: ignore[arg-type]
        for _ in prof.iter([1] * 30):
            pass
    assert trial_of(prof.result).batches == 5


@pytest.mark.parametrize("source", [3, None, object()])
def test_what_cannot_be_iterated_over_is_refused(source: Any) -> None:
    with Profiler() as prof, pytest.raises(UsageError, match="expects a loader"):
        prof.iter(source)


@pytest.mark.parametrize("name", ["", "a/b", 3, None])
def test_a_stage_needs_a_name(name: Any) -> None:
    with pytest.raises(UsageError, match="expects a name"):
        Profiler().stage(name)


def test_a_generator_function_cannot_be_a_stage() -> None:
    with pytest.raises(UsageError, match="use the stage inside it"):

        @Profiler().stage("stream")
        def stream() -> Iterator[int]:
            yield 1


def test_nothing_measured_is_a_result_that_says_so() -> None:
    with Profiler("idle") as prof:
        pass
    result = prof.result
    assert result.trials[0].failure.kind == "no_batches"
    assert result.verdict.bound == "unknown"
    assert "no batch was taken" in str(result)
    assert "prof.iter" in result.trials[0].failure.hint


@pytest.mark.parametrize(
    ("loader", "message", "hint"),
    [
        ([], "the loader gave no batch", "the dataset's length"),
        ([torch.zeros(0, 3)] * 5, "empty batches", "the collate function"),
    ],
)
def test_a_loader_without_samples_says_what_to_look_at(loader: list[Any], message: str, hint: str) -> None:
    with Profiler(warmup=0) as prof:
        list(prof.iter(loader))
    failure = prof.result.trials[0].failure
    assert message in failure.message
    assert hint in failure.hint


def test_a_batch_alone_is_too_few() -> None:
    with Profiler(warmup=0) as prof:
        list(prof.iter(Planted(1)))
    assert prof.result.trials[0].failure.kind == "no_batches"


def test_epochs_begin_when_they_are_asked_to(make: Make) -> None:
    def shuffled() -> DataLoader[Any]:
        return make(TensorDataset(torch.arange(32)), shuffle=True)

    torch.manual_seed(5)
    plain = [(a, b) for (a,), (b,) in zip(shuffled(), shuffled(), strict=True)]
    torch.manual_seed(5)
    one, other = shuffled(), shuffled()
    with Profiler() as prof, Profiler() as second:
        told = [(a, b) for (a,), (b,) in zip(prof.iter(one), second.iter(other), strict=True)]
    assert all(
        torch.equal(*pair) for known, new in zip(plain, told, strict=True) for pair in zip(known, new, strict=True)
    )


def test_a_user_s_generator_goes_on_after_the_recording() -> None:
    numbers = iter(number for number in range(100))
    with Profiler(warmup=0, steps=2) as prof:
        for number in prof.iter(numbers):
            if number == 10:
                break
    assert next(numbers) == 11


def test_a_loop_within_the_loop_over_the_same_loader_is_recorded_in_place_of_the_outer_one(make: Make) -> None:
    loader = make()
    with Profiler(warmup=0) as prof:
        for _ in (outer := iter(prof.iter(loader))):
            assert len(list(prof.iter(loader))) == 12
    assert next(outer, None) is None
    assert batches(prof) == 12 * 11
    assert not any("not recorded" in note for note in prof.result.notes)


@pytest.mark.parametrize("trace", [False, True])
def test_epochs_of_a_fixed_number_of_steps_are_all_recorded(make: Make, trace: bool) -> None:
    """`it` still holds the iterator of the last epoch when the next one begins."""
    loader = make()
    with Profiler(warmup=0, trace=trace) as prof:
        profiled = prof.iter(loader)
        for _ in range(4):
            it = iter(profiled)
            for _ in range(6):
                next(it)
    assert batches(prof) >= 4 * 4, "the first of an epoch is apart, and the last step may not have ended"
    assert not any("not recorded" in note for note in prof.result.notes)


def test_another_loader_of_the_same_profiler_is_let_through(make: Make) -> None:
    with Profiler(warmup=0) as prof:
        list(prof.iter(make()))
        assert len(list(prof.iter(make(TensorDataset(torch.arange(8)))))) == 2
        list(prof.iter(make()))
    assert batches(prof) == 22


def test_python_s_random_numbers_are_the_same_whether_the_result_is_read() -> None:
    random.seed(1)
    with Profiler() as prof:
        list(prof.iter(Planted(3)))
    str(prof.result)
    told = random.random()
    random.seed(1)
    assert told == random.random()


def test_an_interrupted_loop_is_not_complete() -> None:
    prof = Profiler(warmup=0)
    with pytest.raises(KeyboardInterrupt):
        loop_that_raises(prof, Planted(20), KeyboardInterrupt())
    assert prof.result.complete is False
    assert any("KeyboardInterrupt" in note for note in prof.result.notes)


def test_methods_of_every_kind_can_be_stages() -> None:
    prof = Profiler()

    class Loader:
        @prof.stage("a")
        @staticmethod
        def static(value: int) -> int:
            return value

        @prof.stage("b")
        @classmethod
        def of_class(cls, value: int) -> int:
            return value

    assert (Loader.static(1), Loader().of_class(2)) == (1, 2)


@pytest.mark.parametrize("thing", [3, int, property(lambda _: 1)])
def test_what_is_no_function_cannot_be_a_stage(thing: Any) -> None:
    with pytest.raises(UsageError, match="expects a function or method"):
        Profiler().stage("a")(thing)


def test_stages_of_other_threads_are_told_too() -> None:
    with Profiler(warmup=0) as prof, ThreadPoolExecutor(1) as pool:
        for _ in prof.iter(Planted(10, 0.001)):
            with prof.stage("here"):
                pool.submit(in_stage, prof).result()
    stages = prof.result.trials[0].step_stages
    assert set(stages) == {"here", "there"}
    assert stages["here"].wall_s >= stages["there"].wall_s >= 0.002


def in_stage(prof: Profiler) -> None:
    with prof.stage("there"):
        pause(0.002)


class Odd(dict[str, int]):
    __getattr__ = dict.__getitem__


class Shapely:
    shape = 5


ODD = (Odd(a=1), Shapely(), None, "text", 3, {1, 2}, defaultdict(list, {"a": [1, 2]}))


@pytest.mark.parametrize("batch", ODD, ids=range(len(ODD)))
def test_batches_of_any_kind_pass_through_unchanged(batch: Any) -> None:
    before = repr(batch)
    with Profiler(warmup=0) as prof:
        assert all(given is batch for given in prof.iter([batch] * 30))
    assert repr(batch) == before
    assert batches(prof) == 29


LEFT_OPEN = """
from loaderbench import Profiler
profiler = Profiler("open")
profiler.start()
batches = iter(profiler.iter([1, 2, 3]))
next(batches), next(batches)
"""


def test_an_epoch_that_is_open_when_the_program_ends_says_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stderr == ""
