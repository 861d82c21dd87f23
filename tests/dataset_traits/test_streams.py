"""Whether a stream divides its samples among workers is read from its code, which is not called."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from plain_streams import Divided, Stream, divides
from torch.utils.data import ChainDataset, DataLoader, IterableDataset

from loaderbench.dataset_traits import is_undivided, traits_of
from loaderbench.loaders.worker_options import WorkerSetup
from loaderbench.profiler.known_loader import KnownLoader


class Batched(Stream):
    def __init__(self, held: Any) -> None:
        self.held = held

    def __iter__(self) -> Iterator[int]:
        yield from self.held


def share() -> int:
    info = torch.utils.data.get_worker_info()
    return info.id if info else 0


def seeds(worker: int) -> None:
    torch.manual_seed(worker)


@pytest.mark.parametrize(
    "stream", [Stream(), Batched([1]), Batched(Stream()), Batched(seeds), ChainDataset([Stream()])]
)
def test_a_stream_whose_code_asks_for_no_worker_is_undivided(stream: Any) -> None:
    assert is_undivided(stream)
    assert is_undivided(stream, seeds)
    assert not is_undivided(stream, divides)
    assert not is_undivided(stream, WorkerSetup({}, divides)), "what loaderbench sets up calls the loader's own first"


@pytest.mark.parametrize(
    "stream",
    [Divided(), Batched(Divided()), Batched([Divided()]), Batched(share), ChainDataset([Divided()]), [1, 2]],
)
def test_what_a_stream_holds_may_divide_it(stream: Any) -> None:
    assert not is_undivided(stream)


FED = multiprocessing.Queue()  # type: ignore[var-annotated]


class OfAGlobal(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield FED.get()


class Receiving(Stream):
    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Iterator[int]:
        yield self.source.recv()


@pytest.mark.parametrize("stream", [OfAGlobal(), Receiving(FED), Receiving(multiprocessing.Pipe()[0])])
def test_what_another_process_sends_reaches_one_worker(stream: Any) -> None:
    assert not is_undivided(stream)


def logs(_: int) -> None:
    FED.put("began")


def test_a_queue_that_a_stream_does_not_receive_from_divides_nothing() -> None:
    assert is_undivided(Batched(FED))
    assert is_undivided(Stream(), logs)
    assert is_undivided(Receiving([]))


def test_a_stream_that_holds_itself_is_read_once() -> None:
    stream = Batched(None)
    stream.held = [stream]
    assert is_undivided(stream)


def test_a_pipe_of_torch_is_divided_by_its_sharding_filter() -> None:
    from torch.utils.data.datapipes.iter import IterableWrapper

    pipe = IterableWrapper(range(8))
    assert is_undivided(pipe)
    assert not is_undivided(pipe.sharding_filter())
    assert not is_undivided(pipe.sharding_filter().map(abs))


def test_attributes_that_refuse_are_passed_over() -> None:
    class Lazy:
        @property
        def __class__(self) -> Any:  # type: ignore[override]
            raise RuntimeError("settings are not configured")

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    assert is_undivided(Batched(Lazy()))


def test_the_traits_of_a_loader_know_its_worker_init_fn() -> None:
    assert traits_of(DataLoader(Stream())).keys() == {"stream", "undivided", "loader"}
    assert traits_of(DataLoader(Stream(), worker_init_fn=divides)).keys() == {"stream", "loader"}
    assert traits_of(Divided()).keys() == {"stream"}


def test_a_profiled_loader_tells_of_its_worker_init_fn() -> None:
    plain, divided = DataLoader(Stream()), DataLoader(Stream(), worker_init_fn=divides)
    assert KnownLoader(plain).traits() == {"stream": "Stream", "undivided": "Stream"}
    assert KnownLoader(divided).traits() == {"stream": "Stream", "own_arguments": "worker_init_fn=divides"}
