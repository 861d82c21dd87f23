"""Workers whose part of an iterable dataset ends early are passed over, and each batch is still known by its worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, zip_longest

import pytest
import torch
from hypothesis import given, strategies
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from loaderbench.tracing.loader import LoaderTrace
from loaderbench.tracing.made import number_of, place_of


class Shards(IterableDataset[torch.Tensor]):
    """Each worker has so many samples, which are its own number."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = get_worker_info()
        assert info is not None
        for _ in range(self.sizes[info.id]):
            time.sleep(0.0005 * info.id)  # they end at different moments
            yield torch.tensor(info.id)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("sizes", [(0, 31), (40, 3, 17), (2, 9, 0, 22)])
def test_each_batch_is_that_of_the_worker_that_made_it(sizes: tuple[int, ...], persistent: bool) -> None:
    loader = DataLoader(
        Shards(*sizes), 2, num_workers=len(sizes), persistent_workers=persistent, prefetch_factor=3, drop_last=True
    )
    trace = LoaderTrace(loader)
    for epoch in range(2):
        asked_s, makers = time.perf_counter(), []
        for number, batch in enumerate(trace.batches()):
            made = trace.made(epoch, number)
            assert made is not None
            assert asked_s <= made.began_s <= made.ended_s <= time.perf_counter()
            assert made.worker == int(batch[0])
            makers.append(made.worker)
        assert [makers.count(worker) for worker in range(len(sizes))] == [size // 2 for size in sizes]
        assert [made.worker for _, made in trace.made_last()] == makers
        assert [trace.made(epoch, number) for number in range(len(makers))] == [made for _, made in trace.made_last()]
        assert trace.made(epoch, len(makers)) is None


@given(strategies.lists(strategies.integers(0, 6), min_size=1, max_size=5))
def test_batches_come_in_turn_from_workers_that_have_more(counts: list[int]) -> None:
    turns = zip_longest(*([(worker, turn) for turn in range(count)] for worker, count in enumerate(counts)))
    order = [place for place in chain.from_iterable(turns) if place is not None]

    assert [place_of(batch, counts) for batch in range(len(order))] == order
    assert place_of(len(order), counts) is None
    assert [number_of(worker, turn, counts) for worker, turn in order] == list(range(len(order)))
