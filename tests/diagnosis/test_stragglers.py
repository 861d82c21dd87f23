"""A batch that took much longer than others, and whether others lay ready meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.stragglers import STRAGGLER, WAITED, slow_batch
from loaderbench.recorder.inside import TIMES_MEDIAN
from loaderbench.records import BatchTimes

SLOW = 3


def loop(step_s: float, slow_s: float, ahead: int, make_s: float = 0.01, count: int = 12) -> list[BatchTimes]:
    """One worker that makes up to `ahead` batches before they are asked for, and a loop that takes them in turn."""
    batches: list[BatchTimes] = []
    now_s = free_s = 0.0
    for number in range(count):
        allowed_s = batches[number - ahead].got_s if number >= ahead else 0.0
        assert allowed_s is not None
        began_s = max(free_s, allowed_s)
        made_s = free_s = began_s + (slow_s if number == SLOW else make_s)
        got_s = max(now_s, made_s)
        batches.append(
            BatchTimes(
                epoch=0,
                batch=number,
                samples=1,
                steady=True,
                asked_s=now_s,
                got_s=got_s,
                wait_s=got_s - now_s,
                worker=0,
                began_s=began_s,
                collate_began_s=made_s,
                made_s=made_s,
            )
        )
        now_s = got_s + step_s
    return batches


def test_a_straggler_takes_as_many_medians_as_a_slow_sample() -> None:
    assert STRAGGLER == TIMES_MEDIAN
    for slow_s, said in ((0.039, False), (0.041, True)):
        batches = loop(0.01, slow_s, ahead=2)
        found = slow_batch(batches[SLOW], batches)
        assert found is not None
        assert found.is_straggler is said
        assert found.ratio == pytest.approx(100 * slow_s)


def test_without_a_prefetched_batch_a_long_step_hides_it_and_nothing_lies_ready() -> None:
    batches = loop(step_s=0.1, slow_s=0.09, ahead=1)
    found = slow_batch(batches[SLOW], batches)
    assert found is not None
    assert (found.waited_s, found.ready) == (0.0, 0)


def test_batches_that_are_taken_before_it_and_lie_ready_when_it_is_done_are_counted() -> None:
    batches = loop(step_s=0.1, slow_s=0.09, ahead=3)
    found = slow_batch(batches[SLOW], batches)
    assert found is not None
    assert (found.waited_s, found.ready) == (0.0, 1)


def test_a_wait_for_it_is_its_own() -> None:
    batches = loop(step_s=0.01, slow_s=0.09, ahead=2)
    found = slow_batch(batches[SLOW], batches)
    assert found is not None
    assert found.waited_s == batches[SLOW].wait_s
    assert found.ready == 0


@pytest.mark.parametrize(("share", "waited"), [(WAITED * 0.9, False), (WAITED * 1.1, True)])
def test_a_wait_that_is_short_next_to_its_time_is_none(share: float, waited: bool) -> None:
    batches = loop(step_s=0.1, slow_s=0.09, ahead=1)
    batches[SLOW] = replace(batches[SLOW], wait_s=share * 0.09)
    found = slow_batch(batches[SLOW], batches)
    assert found is not None
    assert bool(found.waited_s) is waited


def test_what_was_never_taken_has_no_wait_and_one_batch_alone_is_no_slower_than_others() -> None:
    batches = loop(0.01, 0.09, ahead=2)
    batches[SLOW] = replace(batches[SLOW], asked_s=None, got_s=None, wait_s=None)
    found = slow_batch(batches[SLOW], batches)
    assert found is not None
    assert (found.waited_s, found.ready) == (None, 0)
    assert slow_batch(batches[0], batches[:1]) is None
