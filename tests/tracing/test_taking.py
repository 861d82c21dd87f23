"""What the process that takes the batches does inside `next()`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from fake_clock import fake_clock
from torch.utils.data import DataLoader, Dataset

from loaderbench.tracing import taking
from loaderbench.tracing.batch_choice import EARLY_BATCHES
from loaderbench.tracing.loader import LoaderTrace
from loaderbench.tracing.taking import NotifyingSampler, Taken, TakingClock


class Ready(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(4)


class Slow:
    """A sampler that takes a millisecond for each index."""

    def __iter__(self) -> Iterator[int]:
        for index in range(64):
            time.sleep(1e-3)
            yield index

    def __len__(self) -> int:
        return 64


@pytest.mark.parametrize("workers", [0, 1])
def test_the_sampler_s_time_is_told_apart(workers: int) -> None:
    trace = LoaderTrace(DataLoader(Ready(), 8, sampler=Slow(), num_workers=workers))  # type: ignore[arg-type]
    assert len(list(trace.batches())) == 8
    calls, wall_s, cpu_s, sampler_s = trace.read().taking
    assert calls == 8  # without the last one, which returned none
    assert 0.005 < sampler_s <= wall_s  # with a worker, the first batches' indices are drawn before anybody asks
    assert cpu_s < wall_s


class DrawnAtOnce(Slow):
    """A sampler that needs time before its first index, and still more the first time."""

    def __init__(self, pass_s: Callable[[float], object] = lambda _: None) -> None:
        self.pass_s, self.needed_s = pass_s, 0.3

    def __iter__(self) -> Iterator[int]:
        self.pass_s(self.needed_s)
        self.needed_s = 0.05
        yield from range(64)


@pytest.mark.parametrize("arguments", [{}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}])
def test_what_a_sampler_does_before_its_first_indices_is_timed_once_per_epoch(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    sampler: Any = DrawnAtOnce(fake_clock(monkeypatch).pass_s)
    loader: DataLoader[Any] = DataLoader(Ready(), 8, sampler=sampler, **arguments)
    kind = vars(type(loader.batch_sampler))["__iter__"]
    trace = LoaderTrace(loader)
    for _ in range(3):
        assert len(list(trace.batches())) == 8
        assert vars(type(loader.batch_sampler))["__iter__"] is kind
    assert trace.taking.starts == 3
    assert trace.taking.start_s == pytest.approx(0.05)
    calls, wall_s, _, sampler_s = trace.read().taking
    assert (calls, sampler_s, wall_s) == (24, 0, pytest.approx(0, abs=1e-9))


def test_two_loaders_may_begin_with_one_sampler_at_the_same_time() -> None:
    sampler = DrawnAtOnce()
    loaders: list[DataLoader[Any]] = [DataLoader(Ready(), None, sampler=sampler) for _ in range(2)]  # type: ignore[arg-type]
    first, second = TakingClock(), TakingClock()
    with first.timing_start(loaders[0]):
        with second.timing_start(loaders[1]):
            assert next(iter(sampler)) == 0
        assert type(sampler) is not DrawnAtOnce
    assert type(sampler) is DrawnAtOnce
    assert (first.starts, second.starts) == (1, 0)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_list_of_indices_has_no_start(workers: int) -> None:
    trace = LoaderTrace(DataLoader(Ready(), None, sampler=[3, 1, 2], num_workers=workers))
    assert len(list(trace.batches())) == 3
    assert trace.taking.start_s is None


@pytest.mark.parametrize("period_s", [5e-4, 2e-2])
def test_of_calls_that_follow_fast_some_are_timed_and_stand_for_the_others(
    monkeypatch: pytest.MonkeyPatch, period_s: float
) -> None:
    fake, timed = fake_clock(monkeypatch), 0

    def cpu_now_s() -> float:
        nonlocal timed
        timed += 1
        return fake.now_s

    class Indices:
        def __next__(self) -> float:
            return fake.pass_s(1e-5)

    class Batches:
        def __init__(self) -> None:
            self._sampler_iter: Iterator[float] = Indices()  # type: ignore[assignment]

        def __next__(self) -> float:
            next(self._sampler_iter)
            return fake.pass_s(3e-5)

    monkeypatch.setattr(taking, "cpu_now_s", cpu_now_s)
    clock = TakingClock()
    taken = Taken(Batches(), clock)
    for _ in range(20_000):
        next(taken)
        fake.pass_s(period_s - 4e-5)
    calls, wall_s, cpu_s, sampler_s = clock.read()
    assert calls == pytest.approx(20_000, abs=50)
    assert (wall_s / calls, cpu_s / calls, sampler_s / calls) == pytest.approx((4e-5, 4e-5, 1e-5))
    cost_s = taking.COST_S * (timed / 2 - EARLY_BATCHES)
    assert cost_s < 1.1 * taking.MAX_COST_SHARE * 20_000 * period_s


def test_an_iterator_that_is_taken_from_is_its_own_in_everything_else() -> None:
    class Batches:
        name = "mine"

        def __init__(self) -> None:
            self.left = [3, 2, 1]

        def __next__(self) -> int:
            return self.left.pop()

        def __len__(self) -> int:
            return len(self.left)

    taken = Taken(Batches(), TakingClock())
    assert (taken.name, len(taken), next(taken), len(taken)) == ("mine", 3, 1, 2)
    with pytest.raises(AttributeError):
        _ = taken.other


def test_a_sampler_that_tells_of_its_first_index_gives_the_same_ones() -> None:
    told: list[str] = []
    indices = iter(NotifyingSampler([3, 1, 2], TakingClock(), lambda: told.append("first")))
    assert told == []
    assert [next(indices), told, *indices, told] == [3, ["first"], 1, 2, ["first"]]


def test_each_epoch_numbers_its_batches_anew() -> None:
    trace = LoaderTrace(DataLoader(Ready(), 8, num_workers=2))
    for _ in range(2):
        list(trace.batches())
        made = trace.made_last()
        assert [(number, one.worker) for number, one in made] == [(number, number % 2) for number in range(8)]
        assert all(one.began_s <= one.collate_began_s <= one.ended_s for _, one in made)


def test_what_is_counted_between_two_marks_is_what_was_taken_in_between() -> None:
    trace = LoaderTrace(DataLoader(Ready(), 8))
    batches = trace.batches()
    next(batches)
    mark = trace.mark()
    next(batches)
    next(batches)
    assert trace.read(mark).taking[0] == 2
