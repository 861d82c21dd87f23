"""Where the main process loads, some of many short batches are traced, and all are counted."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
import torch
from fake_clock import fake_clock
from torch.utils.data import DataLoader, Dataset

from loaderbench.tracing import active
from loaderbench.tracing.batch_choice import EARLY_BATCHES, MAX_COST_SHARE, BatchChoice
from loaderbench.tracing.block import BLOCK_BYTES, ENABLED, Block
from loaderbench.tracing.loader import LoaderTrace
from loaderbench.tracing.made import MadeBatches
from loaderbench.tracing.tracer import Tracer

COST_S = 40e-6


def choices(choice: BatchChoice, periods_s: list[float]) -> list[bool]:
    """For each batch, whether it is traced; the loop asks for the next one after its period."""
    at_s, found = 1.0, []
    for period_s in periods_s:
        found.append(not choice.leaves_out())
        if found[-1]:
            choice.traced(at_s, COST_S)
        at_s += period_s
    return found


def test_batches_that_take_long_are_all_traced() -> None:
    assert all(choices(BatchChoice(), [1.01 * COST_S / MAX_COST_SHARE] * 1_000))


@pytest.mark.parametrize("period_s", [1e-4, 1e-3, 5e-3])
def test_tracing_costs_no_more_than_its_share_of_the_loop_after_the_first_batches(period_s: float) -> None:
    dice = Random(0)
    periods_s = [period_s * dice.uniform(0.5, 1.5) for _ in range(20_000)]
    traced = choices(BatchChoice(), periods_s)
    assert all(traced[:EARLY_BATCHES])
    share = COST_S * sum(traced[EARLY_BATCHES:]) / sum(periods_s[EARLY_BATCHES:])
    assert 0.7 * MAX_COST_SHARE < share < 1.1 * MAX_COST_SHARE


def test_a_loop_that_slows_down_is_traced_more_often_again() -> None:
    traced = choices(BatchChoice(), [1e-4] * 5_000 + [1e-2] * 200)
    assert sum(traced[-100:]) == 100


def test_the_pause_between_two_epochs_is_no_time_of_a_batch() -> None:
    choice = BatchChoice()
    choices(choice, [1e-4] * EARLY_BATCHES)
    choice.begin_epoch()
    choice.traced(1000.0, COST_S)
    assert choice.leaves_out()


class Ready(Dataset[torch.Tensor]):
    """Samples that take no time, of a dataset that counts how often it finds itself traced."""

    traced = 0

    def __len__(self) -> int:
        return 4_000

    def __getitem__(self, index: int) -> torch.Tensor:
        Ready.traced += active.tracer() is not None
        return torch.zeros(4)


def test_batches_that_are_left_out_are_counted_and_found_by_their_number() -> None:
    Ready.traced = 0
    trace = LoaderTrace(DataLoader(Ready(), 8))
    assert [len(batch) for batch in trace.batches()] == [8] * 500
    found = trace.read()
    assert (found.batches, found.samples) == (500, 4_000)
    assert 8 * EARLY_BATCHES <= Ready.traced < 4_000
    assert sum(found.times.counts) == 4_000
    made = trace.made_last()
    assert [number for number, _ in made] == list(range(500))
    assert all(one.samples == 8 and one.began_s <= one.collate_began_s <= one.ended_s for _, one in made)
    assert all(one.ended_s <= after.began_s for (_, one), (_, after) in pairwise(made))


def test_collate_is_divided_by_the_samples_of_the_batches_in_which_it_was_timed() -> None:
    from loaderbench.recorder import loader_inside

    def mean_collate_s(all_traced: bool) -> float:
        trace = LoaderTrace(DataLoader(Ready(), 8))
        if all_traced:
            trace._choice = None
        for _ in range(3):
            list(trace.batches())
        stages = loader_inside(trace.read(), lambda _: None).stages
        assert stages is not None
        collate_s = stages["collate"].wall_s
        assert collate_s is not None
        return collate_s

    assert mean_collate_s(all_traced=False) > mean_collate_s(all_traced=True) / 3


def test_a_left_out_batch_that_takes_far_longer_than_others_has_one_slow_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake, block = fake_clock(monkeypatch), Block(bytearray(BLOCK_BYTES))
    block.header[ENABLED] = 1.0
    tracer, made = Tracer(block, max_cost_share=1e9), MadeBatches([block], in_workers=False)
    made.begin_epoch()
    for index in range(4):
        tracer.sample(index, fake.pass_s, 1e-3)
    tracer.collate(list, [])
    batches_s = map(fake.pass_s, [4e-3, 0.104, 5e-3])
    assert [tracer.left_out(batches_s) for _ in range(3)] == [4e-3, 0.104, 5e-3]
    tracer.flush()
    assert (sum(block.bins), sum(block.bin_sums_s)) == (16, pytest.approx(0.117))
    assert max(block.slow[::4]) == pytest.approx(0.1)
    assert [one.samples for batch in range(4) if (one := made.find(0, batch))] == [4, 4, 4, 4]
    with pytest.raises(StopIteration):
        tracer.left_out(batches_s)
    tracer.sample(0, fake.pass_s, 1e-3)
    tracer.flush()
    assert sum(block.bins) == 17  # samples are timed again
