"""A traced loader gives what the loader gives, and the user's objects cannot tell."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.context import SpawnContext
from typing import Any

import numpy as np
import pytest
import torch
from planted import FolderStyle, sleep
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
)
from unusual import LENGTH, UNUSUAL, Base, Closes, Meta, Times, Told

from loaderbench.recorder.inside import loader_inside, path_of
from loaderbench.recorder.samples import counter_of_items
from loaderbench.tracing.loader import LoaderTrace
from loaderbench.tracing.reading import Traced

WORKERS = pytest.mark.parametrize("workers", [0, 1])
ATTEMPTS = 12


def traced(loader: DataLoader[Any]) -> tuple[list[Any], Traced]:
    trace = LoaderTrace(loader)
    try:
        return list(trace.batches()), trace.read()
    finally:
        trace.stop()


@WORKERS
@pytest.mark.parametrize("kind", UNUSUAL, ids=lambda kind: kind.__name__)
def test_batches_are_the_same_with_and_without(kind: type, workers: int) -> None:
    loader = DataLoader(kind(), batch_size=4, num_workers=workers)
    plain = list(loader)
    batches, found = traced(loader)
    assert all(torch.equal(told, known) for told, known in zip(batches, plain, strict=True))
    assert found.samples == LENGTH
    assert type(loader.dataset) is kind


def test_nobody_is_told_of_a_class_that_was_made_for_tracing() -> None:
    assert not Told.names
    assert Meta.made.count("WithMeta") == 1


def test_what_a_dataset_does_when_it_goes_is_not_done_while_it_is_there() -> None:
    Closes.closed = 0
    dataset = Closes()
    traced(DataLoader(dataset, batch_size=4))
    assert Closes.closed == 0


def test_a_list_of_transforms_may_be_changed_between_epochs() -> None:
    from torchvision.transforms import Compose

    class Transformed(Base):
        def __init__(self) -> None:
            super().__init__()
            self.transform = Compose([Times(1)])

        def __getitem__(self, index: int) -> Any:
            return self.transform(index)

    dataset = Transformed()
    trace = LoaderTrace(DataLoader(dataset, batch_size=LENGTH))
    list(trace.batches())
    dataset.transform.transforms.append(Times(100))
    (batch,) = trace.batches()
    trace.stop()
    assert batch.tolist() == [100 * index for index in range(LENGTH)]


class Random(Dataset[Any]):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([torch.rand(()).item(), random.random(), np.random.random()])


@pytest.mark.parametrize("arguments", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
def test_random_numbers_are_the_same_and_their_generators_go_on_as_before(arguments: dict[str, Any]) -> None:
    found = []
    for trace_it in (False, True):
        torch.manual_seed(3)
        random.seed(3)
        np.random.seed(3)
        loader = DataLoader(Random(), batch_size=4, shuffle=True, **arguments)
        trace = LoaderTrace(loader) if trace_it else None
        epochs = [torch.cat(list(trace.batches() if trace else loader)) for _ in range(2)]
        found.append([*epochs, torch.rand(3), torch.tensor([random.random(), np.random.random()])])
    plain, told = found
    several = bool(arguments)
    assert all(torch.equal(known, new) for known, new in zip(plain, told, strict=True)) or not several
    assert torch.equal(plain[-2], told[-2])
    assert torch.equal(plain[-1], told[-1])


class Tiny(Dataset[int]):
    def __len__(self) -> int:
        return 1_000

    def __getitem__(self, index: int) -> int:
        return index


class Wraps(Dataset[int]):
    def __init__(self, inner: Dataset[int]) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> int:
        return self.inner[index]


@WORKERS
@pytest.mark.parametrize("dataset", [Wraps(Wraps(Tiny())), ConcatDataset([Subset(Tiny(), list(range(1_000)))])])
def test_samples_of_nested_datasets_are_counted_once(dataset: Any, workers: int) -> None:
    _, found = traced(DataLoader(dataset, batch_size=50, num_workers=workers))
    assert found.samples == 1_000


class Threads(FolderStyle):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(self.__getitem__, indices))


class Many(Dataset[int]):
    """Makes the samples of a batch in one call."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> int:
        return 10 * int(index)

    def __getitems__(self, indices: Any) -> list[int]:
        return [self[index] for index in indices]


BATCHES: dict[str, Callable[[], list[Any]]] = {
    "tensors": lambda: list(torch.arange(12).split(4)),
    "arrays": lambda: np.array_split(np.arange(12), 3),
    "ranges": lambda: [range(4), range(4, 8), range(8, 12)],
    "sets": lambda: [{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}],
    "iterators": lambda: [iter(range(4)), iter(range(4, 8)), iter(range(8, 12))],
}


@pytest.mark.parametrize("dataset", [Many(), Subset(Many(), range(12))], ids=["own", "subset"])
@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_sampler_may_give_indices_in_anything_that_torch_takes(kind: str, dataset: Dataset[int]) -> None:
    batches, found = traced(DataLoader(dataset, batch_sampler=BATCHES[kind](), collate_fn=list))
    assert batches == [[0, 10, 20, 30], [40, 50, 60, 70], [80, 90, 100, 110]]
    assert found.samples == 12


def test_samples_made_in_threads_are_counted() -> None:
    _, found = traced(DataLoader(Threads(), batch_size=8))
    assert found.samples == 24


class ByTheBatch(Dataset[Any]):
    took_s = 0.0

    def __len__(self) -> int:
        return 64

    def __getitem__(self, indices: list[int]) -> Any:
        self.took_s += sleep(0.008)
        return torch.tensor(indices)


def test_an_index_that_is_a_batch_counts_as_its_samples() -> None:
    sampler = BatchSampler(SequentialSampler(range(64)), 16, drop_last=False)
    dataset = ByTheBatch()
    trace = LoaderTrace(DataLoader(dataset, batch_size=None, sampler=sampler))
    batches, waits_s = trace.batches(), []
    for _ in range(4):
        asked_s = time.perf_counter()
        next(batches)
        waits_s.append(time.perf_counter() - asked_s)
    found = trace.read()
    trace.stop()
    assert found.samples == 64
    assert 0.99 * dataset.took_s <= sum(found.times.sums_s) <= sum(waits_s)


def test_a_slow_sample_of_a_subset_has_its_own_path() -> None:
    dataset = FolderStyle(24)
    reverse = Subset(dataset, list(reversed(range(24))))
    for _ in range(ATTEMPTS):  # another program may delay some other sample even longer
        _, found = traced(DataLoader(reverse, batch_size=4))
        slowest = loader_inside(found, partial(path_of, reverse)).sample_times.slowest[0]
        if slowest.path == "/photos/7.jpg":
            break
    assert slowest.path == "/photos/7.jpg"
    assert slowest.index == 24 - 1 - 7


def test_slow_samples_of_before_a_mark_make_room() -> None:
    class Settles(Dataset[int]):
        def __len__(self) -> int:
            return 120

        def __getitem__(self, index: int) -> int:
            sleep(0.05 if index < 40 else 0.001)
            return index

    loader = DataLoader(Settles(), batch_size=8)
    trace = LoaderTrace(loader)
    batches: Iterator[Any] = trace.batches()
    for _ in range(6):
        next(batches)
    moment = trace.mark()
    list(batches)
    found = trace.read(moment)
    assert 0.001 < found.times.max_s < 0.045
    assert found.slowest
    assert all((slow.index or 0) >= 48 for slow in found.slowest)
    trace.stop()


def test_a_thread_that_prefetches_may_take_the_batches() -> None:
    trace = LoaderTrace(DataLoader(Base(), batch_size=4))
    batches = trace.batches()
    with ThreadPoolExecutor(1) as pool:
        assert len(pool.submit(list, batches).result()) == LENGTH // 4
        found = pool.submit(trace.read).result()
    assert (found.batches, found.samples) == (LENGTH // 4, LENGTH)


class StreamOfBatches(IterableDataset[Any]):
    """Makes its batches itself, as WebDataset does with `batched`."""

    def __iter__(self) -> Iterator[Any]:
        for _ in range(4):
            sleep(0.008)
            yield torch.zeros(16, 3, 8, 8), torch.zeros(16)


@WORKERS
def test_an_item_of_a_stream_that_is_a_batch_counts_as_its_samples(workers: int) -> None:
    loader = DataLoader(StreamOfBatches(), batch_size=None, num_workers=workers)
    trace = LoaderTrace(loader, count=counter_of_items(loader))
    assert len(list(trace.batches())) == 4
    found = trace.read()
    trace.stop()
    assert (found.batches, found.samples, found.traced) == (4, 64, 64)


@WORKERS
def test_a_tensor_as_dataset_gives_tensors(workers: int) -> None:
    numbers = torch.arange(LENGTH * 2.0).reshape(LENGTH, 2)
    batches, found = traced(DataLoader(numbers, batch_size=4, num_workers=workers))  # type: ignore[arg-type]
    assert [type(batch) for batch in batches] == [torch.Tensor, torch.Tensor]
    assert torch.equal(torch.cat(batches), numbers)
    assert found.samples == (LENGTH - 4 if workers else LENGTH), "a worker's first batch is not timed"
    assert "__getitem__" not in vars(torch.Tensor)


def test_indices_from_a_tensor_are_plain_tensors() -> None:
    kinds: list[type] = []

    class Asked(Base):
        def __getitem__(self, index: Any) -> Any:
            kinds.append(type(index))
            return super().__getitem__(int(index))

    traced(DataLoader(Asked(), batch_size=None, sampler=torch.arange(LENGTH)))  # type: ignore[arg-type]
    assert set(kinds) == {torch.Tensor}


class Padding:
    """A collate function with an attribute and an option, as a loader's own code may use them."""

    pad = 7

    def __call__(self, samples: list[int], pad: int = 0) -> list[int]:
        return [*samples, pad]


class Bucketed(DataLoader[Any]):
    def __iter__(self) -> Any:
        for indices in self.batch_sampler:  # type: ignore[union-attr]
            collate: Any = self.collate_fn
            yield collate([self.dataset[index] for index in indices], pad=collate.pad)


@WORKERS
def test_a_loader_s_own_code_can_use_its_collate_function_as_before(workers: int) -> None:
    loader = Bucketed(Base(), batch_size=4, num_workers=workers, collate_fn=Padding())
    assert list(LoaderTrace(loader).batches()) == [[0, 1, 2, 3, 7], [4, 5, 6, 7, 7]]


class ThreadQueue(queue.Queue[Any]):
    def close(self) -> None:
        """A queue of threads has nothing to close."""

    cancel_join_thread = close


class ProcessOfThread(threading.Thread):
    pid = 0

    def terminate(self) -> None:
        """A thread cannot be ended."""


class ThreadContext(SpawnContext):
    """Workers that are threads, as in MONAI's `ThreadDataLoader(use_thread_workers=True)`."""

    Process: Any = ProcessOfThread

    def Queue(self, maxsize: int = 0) -> Any:  # noqa: N802
        return ThreadQueue(maxsize)


def test_workers_that_are_threads_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.utils.data._utils.signal_handling, "_set_worker_signal_handlers", lambda: None)
    monkeypatch.setattr(torch.utils.data._utils.worker, "_worker_info", None)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    before = vars(Base)["__getitem__"], open
    loader = DataLoader(Base(), batch_size=4, num_workers=1, multiprocessing_context=ThreadContext())
    batches, found = traced(loader)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert (vars(Base)["__getitem__"], open) == before
    assert not found.samples
    assert any("threads of the main process" in error for error in found.reasons)
