"""What workers set up for themselves, seen from inside a real worker."""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler, SubsetRandomSampler
from torch.utils.data.distributed import DistributedSampler

from loaderbench.loaders.backend import WorkerOption
from loaderbench.loaders.torch_loader import build_loader
from loaderbench.loaders.worker_options import WORKER_OPTIONS, keep_memory, worker_setup
from loaderbench.options import integer

STRATEGIES = sorted(torch.multiprocessing.get_all_sharing_strategies())


class Inside(Dataset[torch.Tensor]):
    """Tells of the process that makes the sample."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        strategy = STRATEGIES.index(torch.multiprocessing.get_sharing_strategy())
        return torch.tensor([torch.get_num_threads(), len(os.sched_getaffinity(0)), os.getpid(), strategy])


def first(arguments: dict[str, object]) -> list[int]:
    batches = build_loader(Inside(), {"batch_size": 1, **arguments}, seed=0)
    return [int(value) for value in next(iter(batches.iterable))[0]]


def test_nothing_is_set_up_where_nothing_is_asked_for() -> None:
    assert worker_setup({"num_workers": 2, "worker_affinity": "inherit", "keep_memory": False}) is None


def test_an_option_of_0_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setitem(WORKER_OPTIONS, "level", WorkerOption(integer(0, 9), seen.append, lambda _: ["pass"]))
    assert worker_setup({"level": None}) is worker_setup({"level": False}) is None
    setup = worker_setup({"level": 0})
    assert setup is not None
    setup(0)
    assert seen == [0]


def test_workers_use_as_many_threads_as_are_asked_for() -> None:
    threads, _, pid, _ = first({"num_workers": 1, "worker_threads": 3})
    assert (threads, pid != os.getpid()) == (3, True)


def test_workers_that_were_narrowed_to_one_cpu_get_them_all_back() -> None:
    everything = os.sched_getaffinity(0)
    if len(everything) < 2:
        pytest.skip("there is one CPU")
    try:
        os.sched_setaffinity(0, {min(everything)})
        assert first({"num_workers": 1})[1] == 1
        assert first({"num_workers": 1, "worker_affinity": "all"})[1] == len(everything)
    finally:
        os.sched_setaffinity(0, everything)


def test_workers_share_batches_as_they_are_asked_to() -> None:
    for strategy in STRATEGIES:
        assert first({"num_workers": 1, "worker_sharing": strategy})[3] == STRATEGIES.index(strategy)
    assert STRATEGIES[first({"num_workers": 1})[3]] == torch.multiprocessing.get_sharing_strategy()


def test_kept_memory_is_a_setting_that_a_worker_survives() -> None:
    assert first({"num_workers": 1, "keep_memory": True})[2] != os.getpid()


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
@pytest.mark.parametrize("most", [1 << 30, 32 << 20])
def test_the_largest_threshold_that_this_glibc_takes_is_set(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {}

    def mallopt(parameter: int, value: int) -> int:
        accepted = parameter != -3 or value <= most
        if accepted:
            taken[parameter] = value
        return int(accepted)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
    keep_memory(True)
    assert taken == {-3: most, -1: 1 << 30}


@pytest.mark.parametrize("knows", [True, False])
def test_an_argument_that_this_torch_lacks_is_not_said_to_be_set(knows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given = inspect.signature(DataLoader.__init__)
    old = given.replace(parameters=[one for name, one in given.parameters.items() if knows or name != "in_order"])
    monkeypatch.setattr(DataLoader.__init__, "__signature__", old, raising=False)
    batches = build_loader(DataLoader(Inside()), {"num_workers": 1, "in_order": False}, seed=0)
    assert ("in_order" in batches.configured) is knows


@pytest.mark.parametrize("sampler", [SubsetRandomSampler(range(3)), DistributedSampler(Inside(), 4, 1)])
def test_an_epoch_of_a_loader_is_what_its_sampler_draws(sampler: Any) -> None:
    loader = DataLoader(Inside(), batch_size=2, sampler=sampler)
    assert build_loader(loader, {}, seed=0).samples_per_epoch == len(sampler) < len(Inside())


class OfUnknownLength(Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(3))

    def __len__(self) -> int:
        raise RuntimeError("not begun")


@pytest.mark.parametrize(
    "how",
    [
        {"sampler": OfUnknownLength(), "batch_size": 4},
        {"sampler": BatchSampler(range(8), 4, False), "batch_size": None},
        {"batch_sampler": SimpleNamespace(sampler=BatchSampler(range(8), 4, False))},  # as in timm
    ],
)
def test_a_sampler_that_does_not_count_samples_leaves_the_length_of_the_dataset(how: dict[str, Any]) -> None:
    assert build_loader(DataLoader(Inside(), **how), {}, seed=0).samples_per_epoch == 8


def test_arguments_are_set_on_a_loader_that_somebody_else_made() -> None:
    loader = DataLoader(Inside(), batch_size=2)
    batches = build_loader(loader, {"num_workers": 1, "worker_threads": 2, "batch_size": 4}, seed=0)
    assert batches.configured == {"num_workers", "worker_threads"}
    assert (batches.cycle, batches.ahead, batches.batch_size) == (1, 2, 2)
    threads, _, pid, _ = (int(value) for value in next(iter(batches.iterable))[0])
    assert (threads, pid != os.getpid()) == (2, True)


def test_workers_are_taken_from_a_loader_that_had_some() -> None:
    loader = DataLoader(Inside(), batch_size=2, num_workers=2)
    batches = build_loader(loader, {"num_workers": 0}, seed=0)
    assert int(next(iter(batches.iterable))[0][2]) == os.getpid()


def test_a_worker_init_fn_that_was_there_is_called_first() -> None:
    called = []
    setup = worker_setup({"worker_threads": torch.get_num_threads()}, called.append)
    assert setup is not None
    setup(3)
    assert called == [3]
