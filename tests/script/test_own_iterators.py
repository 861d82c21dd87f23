"""Loaders whose class begins an epoch by an `__iter__` of its own, as torchdata's `StatefulDataLoader` does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts import HEAD, profile, write

from loaderbench.result import Run, load
from loaderbench.script.own_iterators import OwnIterators
from loaderbench.tracing.block import BLOCK_BYTES, Block
from loaderbench.tracing.parts import counted
from loaderbench.tracing.taking import NotifyingSampler, TakingClock
from loaderbench.tracing.tracer import Tracer

CLASSES = (
    HEAD
    + """\
class Own(DataLoader):  # as torchdata's
    def __init__(self, dataset, batch_size, num_workers=0):
        super().__init__(dataset, batch_size=batch_size, num_workers=num_workers)
        self.kept = None

    def __iter__(self):
        self.kept = self._get_iterator()
        return self.kept


class Inherits(Own):
    def __iter__(self):
        return super().__iter__()


class Generates(DataLoader):
    def __iter__(self):
        batches = self._get_iterator()
        for batch in batches:
            yield batch


class CallsBase(DataLoader):
    def __iter__(self):
        for batch in super().__iter__():
            yield batch


class CallsRenamedBase(DataLoader):
    def __iter__(self, base=DataLoader):
        return base.__iter__(self)


class Endless(DataLoader):  # as that of YOLO and of timm
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.kept = super().__iter__()

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.kept)


class Delegates(DataLoader):
    def __init__(self, dataset, **options):
        super().__init__(dataset)
        self.inner = DataLoader(dataset, **options)

    def __iter__(self):
        yield from self.inner


class Alias(DataLoader):
    __iter__ = DataLoader.__iter__
"""
)

KINDS = ["Own", "Inherits", "Generates", "CallsBase", "CallsRenamedBase", "Endless", "Delegates", "Alias"]

OWN = (
    CLASSES
    + f"""\
if __name__ == "__main__":
    loaders = {{}}
    for kind in {KINDS}:
        loaders[kind] = globals()[kind](Slow(80, 0.004), batch_size=8, num_workers=int(sys.argv[1]))
        for epoch in range(2):
            assert sum(1 for batch in loaders[kind]) == 10
            if kind == "Endless":
                break
"""
)

UNDONE = (
    CLASSES
    + """\
from loaderbench.script.in_process import LoaderRecording

kinds = [DataLoader, Own, Inherits, Generates, CallsBase, Alias]
before = [vars(kind)["__iter__"] for kind in kinds], vars(DataLoader).get("__init_subclass__")
recording = LoaderRecording(out="run")
recording.start()


class Later(Own):
    def __iter__(self):
        return self._get_iterator()


own = vars(Later)["__iter__"].__wrapped__
for batch in Later(Slow(160, 0.001), 8):
    pass
print(len(recording.finish()))
print(before == ([vars(kind)["__iter__"] for kind in kinds], vars(DataLoader).get("__init_subclass__")))
print(vars(Later)["__iter__"] is own, sum(1 for _ in Later(Slow(16, 0), 8)))
"""
)

ODD = (
    CLASSES
    + """\
class Fixed(type(DataLoader)):
    __hash__ = None

    def __setattr__(self, name, value):
        if name == "__iter__":
            raise AttributeError("is fixed")
        super().__setattr__(name, value)


class Unchangeable(DataLoader, metaclass=Fixed):
    def __iter__(self):
        return self._get_iterator()


class NoFunction(DataLoader):
    class Begin:
        def __get__(self, loader, kind=None):
            return loader._get_iterator

        def __getattr__(self, name):
            raise ValueError(name)

    __iter__ = Begin()


class NotIterable(DataLoader):
    __iter__ = None


class Options(DataLoader):
    def __init_subclass__(cls, *, size, **options):
        super().__init_subclass__(**options)
        cls.size = size


class HasOptions(Options, size=3):
    def __iter__(self):
        return self._get_iterator()


class Misleading(DataLoader):
    def __iter__(self):
        if len(self) < 0:
            return super().__iter__()
        return self._get_iterator()


if __name__ == "__main__":
    for kind in (Unchangeable, NoFunction, HasOptions, Misleading):
        print(kind.__name__, sum(1 for batch in kind(Slow(80, 0), batch_size=8)))
    try:
        iter(NotIterable(Slow(80, 0)))
    except TypeError:
        print("not iterable")
    print(HasOptions.size)
"""
)


@pytest.fixture(
    scope="module", params=[pytest.param("0", marks=pytest.mark.slow), pytest.param("1", marks=pytest.mark.sleeping)]
)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The run of each loader of a script that has one of each class, with so many workers."""
    place = tmp_path_factory.mktemp("own")
    write(place, OWN)
    done = profile(place, "--out", "run", "train.py", request.param)
    assert done.returncode == 0, done.stderr
    assert "cannot record" not in done.stderr
    runs = [load(file.parent) for file in (place / "run").rglob("run.json")]
    assert len(runs) == len(KINDS), "each is recorded once"
    return {run.record.name: run for run in runs}


@pytest.mark.parametrize("kind", KINDS)
def test_each_class_is_recorded(recorded: dict[str, Run], kind: str) -> None:
    called = {"Delegates": "inner", "Endless": "Slow loader"}  # which begins its epoch before it has a name
    run = recorded[called.get(kind, f"loaders[{kind!r}]")]
    (trial,) = run.trials
    assert trial.status == "completed"
    assert run.verdict.bound == "input"
    if kind != "Endless":  # which ends its epoch when the loader would begin another
        assert trial.epochs is not None
        assert trial.epochs.begun == 2
    assert trial.stages
    assert trial.samples_per_s
    sample_s = sum(cost.wall_s or 0.0 for cost in trial.stages.values())
    assert 0.0039 < sample_s < 1.5 / trial.samples_per_s, "a sample sleeps for 4 ms, and is counted once"


ONE_ITERATOR = """
import time
from torch.utils.data import DataLoader

class Samples:
    def __len__(self): return 40
    def __getitem__(self, index):
        time.sleep(0.004)
        return index

class Repeats:  # as timm's
    def __init__(self, sampler): self.sampler = sampler
    def __iter__(self):
        while True:
            yield from self.sampler

class Endless(DataLoader):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        object.__setattr__(self, "batch_sampler", Repeats(self.batch_sampler))
        self.kept = super().__iter__()
    def __len__(self): return 10
    def __iter__(self):
        for _ in range(10):
            yield next(self.kept)

loader = Endless(Samples(), batch_size=4)
for epoch in range(3):
    for batch in loader:
        time.sleep(0.016)
    time.sleep(1)  # a validation
"""


@pytest.mark.slow
def test_a_validation_is_no_step_of_a_loader_that_keeps_one_iterator(tmp_path: Path) -> None:
    write(tmp_path, ONE_ITERATOR)
    done = profile(tmp_path, "--out", "run", "train.py", "--warmup", "0")
    assert done.returncode == 0, done.stderr
    (trial,) = load(tmp_path / "run").trials
    assert trial.step
    assert trial.step.max_s < 0.5
    assert (trial.data_wait_share or 0.0) > 0.3


def test_classes_that_are_defined_later_are_recorded_and_all_is_undone(tmp_path: Path) -> None:
    write(tmp_path, UNDONE)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "True", "True", "2"], done.stderr


def test_a_class_that_is_pickled_by_value_has_the_iter_that_it_had() -> None:
    class Kind:
        def __iter__(self) -> Iterator[int]:
            return iter((1, 2))

    class Own(Kind):
        def __iter__(self) -> Iterator[int]:
            return iter((3, 4))

    usual, changed = Own.__iter__, OwnIterators(Kind, lambda _: iter(()), lambda: True, lambda _: None)
    changed.change()
    assert list(Own()) == []
    restored, parts = vars(Own)["__iter__"].__reduce__()
    assert restored(*parts) is usual
    changed.undo()
    assert Own.__iter__ is usual


def test_odd_classes_run_as_ever_and_a_line_says_what_cannot_be_recorded(tmp_path: Path) -> None:
    write(tmp_path, ODD)
    done = profile(tmp_path, "--out", "run", "train.py")
    assert done.returncode == 0, done.stderr
    assert "cannot record a Unchangeable: AttributeError: is fixed; the script continues" in done.stderr
    assert "cannot record a Misleading" in done.stderr
    assert done.stdout.splitlines() == [
        "Unchangeable 10", "NoFunction 10", "HasOptions 10", "Misleading 10", "not iterable", "3",
    ]  # fmt: skip


class Standing:
    """Indices that are saved with a checkpoint, as torchdata's are."""

    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Standing:
        return self

    def __next__(self) -> int:
        self.at += 1
        return self.at

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class Batches:
    """As torch's iterator, with its private attribute."""

    def __init__(self, indices: object) -> None:
        self._sampler_iter: Any = indices


def test_indices_that_are_saved_with_a_checkpoint_stay_so_while_they_are_timed() -> None:
    begun: list[int] = []
    batches = Batches(iter(NotifyingSampler(Standing(), TakingClock(), lambda: begun.append(1))))
    TakingClock().follow_sampler(batches)
    timed = batches._sampler_iter
    assert (next(timed), next(timed), begun) == (1, 2, [1])
    assert timed.state_dict() == {"at": 2}
    timed.load_state_dict({"at": 7})
    assert next(timed) == 8


def test_indices_without_a_state_get_none() -> None:
    batches = Batches(iter(NotifyingSampler([1, 2], TakingClock(), lambda: None)))
    TakingClock().follow_sampler(batches)
    assert not hasattr(batches._sampler_iter, "state_dict")


def test_an_iterator_over_samples_keeps_its_state_while_they_are_counted() -> None:
    tracer = Tracer(Block(bytearray(BLOCK_BYTES)))
    samples: Any = counted(Standing(), tracer)
    assert next(samples) == 1
    assert samples.state_dict() == {"at": 1}
    samples.load_state_dict({"at": 7})
    assert next(samples) == 8
    assert not hasattr(counted(iter([1, 2]), tracer), "state_dict")
