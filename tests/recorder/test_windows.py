"""Of a loop of any length the beginning, the longest wait and the end are kept, with who made each batch."""

from __future__ import annotations

import numpy as np
import pytest

from loaderbench.recorder.batches import APART, STEADY, Numbers
from loaderbench.recorder.loop import ROWS
from loaderbench.recorder.windows import AROUND, FIRST, LAST, BatchWindows
from loaderbench.tracing.block import SPANS
from loaderbench.tracing.made import Made

STEP_S = 0.01


def table(numbers: range, epoch: int = 0, left: bool = False) -> Numbers:
    """Rows of batches that are asked for every hundredth of a second, and come after a tenth of that."""
    rows = [(n * STEP_S, (n + 1) * STEP_S, n * STEP_S + 0.001, 4, STEADY if n else APART, epoch) for n in numbers]
    if left:
        rows[-1] = (*rows[-1][:1], rows[-1][0], rows[-1][2], 0, APART, epoch)
    return np.array(rows)


def waits(numbers: range, longest: int | None = None) -> Numbers:
    return np.array([0.009 if n == longest else 0.001 for n in numbers])


@pytest.mark.parametrize("chunk", [1, 7, 100, 5_000])
def test_first_longest_and_last_batches_are_kept_however_they_come(chunk: int) -> None:
    windows = BatchWindows()
    for start in range(0, 5_000, chunk):
        numbers = range(start, min(5_000, start + chunk))
        windows.add(table(numbers), waits(numbers, longest=2_000))

    kept = [one.batch for one in windows.batches()]
    assert kept == [*range(FIRST), *range(2_000 - AROUND, 2_000 + AROUND), *range(5_000 - LAST, 5_000)]


def test_the_first_batch_of_an_epoch_is_not_its_longest_wait() -> None:
    windows, numbers = BatchWindows(), range(1_000)
    slow = waits(numbers, longest=700)
    slow[0] = 9.0
    windows.add(table(numbers), slow)
    assert {699, 700, 701} <= {one.batch for one in windows.batches()}


def test_each_epoch_numbers_its_batches_from_zero() -> None:
    windows = BatchWindows()
    for epoch in range(3):
        windows.add(table(range(5), epoch), waits(range(5)))
        windows.epoch_ended()
    assert [(one.epoch, one.batch) for one in windows.batches()] == [(e, b) for e in range(3) for b in range(5)]


def test_a_batch_that_the_loop_was_left_with_has_no_end_and_its_whole_wait() -> None:
    windows = BatchWindows()
    windows.add(table(range(3), left=True), np.array([0.001, 0.001, 0.0]))
    last = windows.batches()[-1]
    assert last.ended_s is None
    assert last.wait_s == pytest.approx(0.001)


def made_at(epoch: int, batch: int, early_s: float = 0.005) -> Made | None:
    """Two workers in turn; 8 batches are made in all."""
    ended_s = batch * STEP_S + 0.001 - early_s
    return Made(batch % 2, ended_s - 0.004, ended_s - 0.001, ended_s, 4, {"decode": 0.003}) if batch < 8 else None


def test_who_made_a_batch_is_kept_and_what_nobody_took_follows() -> None:
    windows = BatchWindows(made_at)
    windows.add(table(range(6)), waits(range(6)))
    found = windows.batches()
    assert [one.worker for one in found] == [0, 1] * 4
    assert [one.got_s is None for one in found] == [False] * 6 + [True] * 2
    assert all(one.made_s is not None and one.stages_s == {"decode": 0.003} for one in found)


def test_workers_that_forget_were_asked_in_time() -> None:
    """A worker remembers so many batches, and is some ahead: those of the beginning are asked for while it does."""
    asked: list[int] = []
    ahead = SPANS // 8

    def find(epoch: int, batch: int) -> Made | None:
        asked.append(batch)
        made = windows_now + ahead
        return made_at(epoch, batch % 8) if made - SPANS <= batch < windows_now else None

    windows = BatchWindows(find)
    for windows_now in range(ROWS, 8 * ROWS, ROWS):
        numbers = range(windows_now - ROWS, windows_now)
        windows.add(table(numbers), waits(numbers))
    assert all(one.worker is not None for one in windows.batches())
    assert len(asked) < 1_000  # each kept batch about once, not every batch


def test_batches_that_came_before_they_were_made_lose_their_workers() -> None:
    windows = BatchWindows(lambda epoch, batch: made_at(epoch, batch, early_s=-0.1))
    windows.add(table(range(6)), waits(range(6)))
    found = windows.batches()
    assert len(found) == 6
    assert all(one.made_s is None and one.worker is None for one in found)


def test_reading_what_is_kept_changes_nothing_that_the_loop_adds_to() -> None:
    """Another thread saves while the loop runs."""
    windows = BatchWindows(lambda *_: Made(0, 0.0, 0.0, 0.0, 4, {}))
    windows.add(table(range(FIRST + 50)), waits(range(FIRST + 50)))
    before = windows._made.copy()
    assert all(one.worker == 0 for one in windows.batches())
    assert windows._made == before
    assert len(before) < FIRST + 50, "the last were asked about by reading alone"
