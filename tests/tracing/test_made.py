"""Who made a batch, when, and where its time went: real loaders, real workers."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from planted import FolderStyle
from torch.utils.data import DataLoader, Dataset

from loaderbench.recorder.samples import count_samples
from loaderbench.tracing.block import BATCHES, BLOCK_BYTES, ENABLED, SPAN_STAGES, SPANS, Block
from loaderbench.tracing.loader import IterableTrace, LoaderTrace
from loaderbench.tracing.made import MadeBatches
from loaderbench.tracing.tracer import Tracer

STRAGGLER = 13  # a sample: of batch 3, for batches of 4


class Straggling(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.5 if index == STRAGGLER else 0.001)
        return torch.zeros(2)


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (1, False), (2, False), (2, True)])
def test_each_epoch_s_batches_are_found_with_their_worker(workers: int, persistent: bool) -> None:
    trace = LoaderTrace(DataLoader(Straggling(), 4, num_workers=workers, persistent_workers=persistent))
    for epoch in range(2):
        got_s = [time.perf_counter() for _ in trace.batches()]
        made = [trace.made(epoch, batch) for batch in range(10)]
        assert [one and one.worker for one in made] == [batch % workers if workers else None for batch in range(10)]
        known = [one for one in made if one]
        assert max(range(10), key=lambda batch: known[batch].ended_s - known[batch].began_s) == 3
        assert all(
            one.began_s <= one.collate_began_s <= one.ended_s <= got for one, got in zip(known, got_s, strict=True)
        )
        assert trace.made(epoch, 10) is None
    assert trace.made(0, 3) != trace.made(1, 3)  # the first epoch's are still known
    assert trace.made_in(0) == [(batch, trace.made(0, batch)) for batch in range(10)]
    assert trace.made_in(1) == trace.made_last() == list(enumerate(made))


@pytest.mark.parametrize("workers", [1, 2])
def test_batches_that_workers_made_for_an_epoch_that_was_left_are_not_the_next_one_s(workers: int) -> None:
    trace = LoaderTrace(DataLoader(Straggling(), 4, num_workers=workers, persistent_workers=True, prefetch_factor=4))
    for left in (0, 2):
        for _ in zip(range(2), trace.batches(), strict=False):
            pass  # the straggler is still to come
        assert all(trace.made(left, batch) for batch in range(2))
        began_s = time.perf_counter()
        got_s = [time.perf_counter() for _ in trace.batches()]
        made = [trace.made(left + 1, batch) for batch in range(11)]
        assert made.pop() is None
        assert [one and one.worker for one in made] == [batch % workers for batch in range(10)]
        assert all(one and began_s <= one.began_s <= one.ended_s <= got for one, got in zip(made, got_s, strict=True))
        assert trace.made_last() == list(enumerate(made))


def test_its_time_is_divided_by_stage() -> None:
    trace = LoaderTrace(DataLoader(FolderStyle(), 4, num_workers=2))
    list(trace.batches())
    made = trace.made(0, 1)
    assert made is not None
    assert {"decode", "transform", "collate"} <= made.stages_s.keys()
    assert sum(made.stages_s.values()) <= made.ended_s - made.began_s
    assert made.stages_s["decode"] >= 4 * 0.002


def test_more_stages_than_a_span_has_room_for_count_as_the_sample_s_own_time() -> None:
    block = Block(bytearray(BLOCK_BYTES))
    block.header[ENABLED] = 1.0
    tracer, found = Tracer(block), MadeBatches([block], in_workers=False)
    found.begin_epoch()
    places = [tracer.place(f"own {number}") for number in range(SPAN_STAGES)]

    def load() -> None:
        for place in places:
            tracer.clock.enter(place)
            time.sleep(0.001)
            tracer.clock.leave()

    tracer.sample(0, load)
    tracer.collate(lambda samples: samples, [])
    made = found.find(0, 0)
    assert made is not None
    assert len(made.stages_s) <= SPAN_STAGES
    assert sum(made.stages_s.values()) >= SPAN_STAGES * 0.001


def test_a_loader_out_of_order_does_not_say_which_is_which() -> None:
    trace = LoaderTrace(DataLoader(Straggling(), 4, num_workers=2, in_order=False))
    list(trace.batches())
    assert trace.made(0, 0) is None
    assert trace.made_last() == []


def test_of_a_long_epoch_the_last_batches_are_known_and_before_the_first_none() -> None:
    blocks = [Block(bytearray(BLOCK_BYTES)) for _ in range(2)]
    found = MadeBatches(blocks, in_workers=True)
    assert found.of_last_epoch() == found.of_epoch(3) == []
    found.begin_epoch()
    for block, made in zip(blocks, (SPANS + 2, SPANS + 1), strict=True):
        block.header[BATCHES] = made
    known = found.of_last_epoch()
    assert [number for number, _ in known] == list(range(3, 2 * SPANS + 3))
    assert known == [(number, found.find(0, number)) for number, _ in known]


def test_a_generator_s_batches_are_made_inside_next() -> None:
    def batches() -> Any:
        for _ in range(3):
            time.sleep(0.005)
            yield [0] * 4

    class Source:
        def __iter__(self) -> Any:
            return batches()

    trace = IterableTrace(Source(), count_samples)
    for epoch in range(2):
        list(trace.batches())
        made = [trace.made(epoch, batch) for batch in range(3)]
        assert all(one and one.worker is None and one.ended_s - one.began_s >= 0.005 for one in made)
