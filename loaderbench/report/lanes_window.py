"""The parts of a trial to draw: the start of an epoch, and the time around the slowest batch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from loaderbench.report.lanes import Lanes, Made, Piece, Taken

WHOLE = 40  # the most batches of a trial drawn in one window
MOST_PIECES = 290  # pieces in one window; a report draws two windows
_BEFORE_START, _AFTER_START = 6, 12  # batches
_AROUND = 12
_BATCHES_PER_WORKER = 3  # batches per worker, at least
Shows = frozenset[Literal["whole", "start", "slowest"]]


@dataclass(frozen=True)
class Window:
    """A period to draw, and what it shows: all batches, the start of an `epoch`, the slowest batch, or both.

    `shows` is empty if the first recorded batches are not the start of an epoch.
    """

    shows: Shows
    epoch: int
    began_s: float
    ended_s: float

    @property
    def seconds(self) -> float:
        """The length of the window."""
        return self.ended_s - self.began_s

    def place(self, at_s: float) -> float:
        """The position of a time in the window, 0 to 1. Times outside are clipped."""
        return min(1.0, max(0.0, (at_s - self.began_s) / self.seconds))

    def overlaps(self, one: Piece | Made) -> bool:
        """Whether any of its time is in the window."""
        return one.ended_s > self.began_s and one.began_s < self.ended_s


@dataclass(frozen=True)
class _Range:
    """Consecutive batches, including the last one.

    The batches from `needed` to `focus` are the ones to show. Others are dropped first, from the more distant end.
    """

    first: int
    last: int
    shows: Shows
    needed: int
    focus: int

    @property
    def _after(self) -> int:
        return max(self.needed, self.focus)

    @property
    def _before(self) -> int:
        return min(self.needed, self.focus)

    @property
    def is_least(self) -> bool:
        """Whether no batch can be dropped."""
        return (self.first, self.last) == (self._before, self._after)

    def smaller(self) -> _Range:
        """The range without the batch at its more distant end."""
        if self._before - self.first > self.last - self._after:
            return replace(self, first=self.first + 1)
        return replace(self, last=self.last - 1)


def windows_of(lanes: Lanes) -> list[Window]:
    """The windows to draw, in order of time; none if no batch was consumed."""
    windows = (_window(lanes.taken, one) for one in _ranges(lanes))
    return [window for window in windows if window is not None]


def _ranges(lanes: Lanes) -> list[_Range]:
    """All batches, if there are few. Otherwise a start and the slowest batch, in one range if they meet and fit."""
    taken = lanes.taken
    if not taken:
        return []
    whole = _within(taken, 0, 0, WHOLE - 1, frozenset({"whole"}))
    if whole.last == len(taken) - 1 and _fits(lanes, whole):
        return [whole]
    pair = sorted((_around_start(lanes), _around_slowest(lanes)), key=lambda one: one.focus)
    joined = _joined(taken, *pair)
    shortened = _shortened(lanes, joined) if joined else None
    if shortened and _fits(lanes, shortened):
        return [shortened]
    return [_focused(lanes, one) for one in _apart(*pair)]


def _around_start(lanes: Lanes) -> _Range:
    taken, turns = lanes.taken, _BATCHES_PER_WORKER * max(1, len(lanes.makers))
    start = _start(taken)
    shows: Shows = frozenset() if taken[start].batch.batch else frozenset({"start"})
    return _within(taken, start, start - _BEFORE_START, start + max(_AFTER_START, turns), shows)


def _around_slowest(lanes: Lanes) -> _Range:
    """The batches consumed while the slowest one was loaded.

    With deep prefetch, loading begins long before its turn.
    """
    taken, around, made = lanes.taken, max(_AROUND, _BATCHES_PER_WORKER * max(1, len(lanes.makers))), lanes.slowest()
    slowest, shows = _slowest(lanes, taken), Shows({"slowest"})
    around_slowest = _within(taken, slowest, slowest - around, slowest + around, shows)
    if made is None:
        return around_slowest
    asked_s = [taken[i].asked_s for i in range(around_slowest.first, slowest + 1)]
    began, ended = (bisect_right(asked_s, at_s) - 1 for at_s in (made.began_s, made.ended_s))
    focus = around_slowest.first + ended if ended >= 0 else slowest
    wide = _within(taken, focus, focus - around, focus + around, shows)
    return replace(wide, needed=min(focus, max(wide.first, around_slowest.first + began)))


def _joined(taken: Sequence[Taken], before: _Range, after: _Range) -> _Range | None:
    """One range for two that overlap or are adjacent; `None` if batches between them were not recorded."""
    follow = after.first == before.last + 1 and _follows(taken[before.last], taken[after.first])
    if after.first > before.last and not follow:
        return None
    first, last = min(before.first, after.first), max(before.last, after.last)
    needed, focus = min(before.needed, after.needed), max(before.focus, after.focus)
    return _Range(first, last, before.shows | after.shows, needed, focus)


def _apart(before: _Range, after: _Range) -> list[_Range]:
    """The two ranges, divided in the middle if they overlap, or one range if both are for the same batch."""
    if before.focus == after.focus:
        return [replace(before, shows=before.shows | after.shows)]
    end = min(before.last, max(before.focus, after.needed - 1))
    start = max(after.first, end + 1)
    return [
        replace(before, last=end),
        replace(after, first=start, needed=max(start, after.needed)),
    ]


def _start(taken: Sequence[Taken]) -> int:
    """The start of an epoch that follows another one, to show how epochs end and start; otherwise the first batch."""
    return next((i for i in range(1, len(taken)) if taken[i].batch.batch == 0 and _follows(taken[i - 1], taken[i])), 0)


def _slowest(lanes: Lanes, taken: Sequence[Taken]) -> int:
    """The batch that took the longest to load. If no worker is known, the one with the longest wait."""
    made = lanes.slowest()
    indices = [i for i, one in enumerate(taken) if made is not None and one.batch == made.batch]
    return indices[0] if indices else max(range(len(taken)), key=lambda i: (taken[i].batch.steady, taken[i].wait_s))


def _within(taken: Sequence[Taken], focus: int, wanted_first: int, wanted_last: int, shows: Shows) -> _Range:
    """The range, limited to consecutive recorded batches."""
    first = last = focus
    while first > max(0, wanted_first) and _follows(taken[first - 1], taken[first]):
        first -= 1
    while last < min(len(taken) - 1, wanted_last) and _follows(taken[last], taken[last + 1]):
        last += 1
    return _Range(first, last, shows, focus, focus)


def _follows(before: Taken, after: Taken) -> bool:
    one, other = before.batch, after.batch
    same = other.epoch == one.epoch and other.batch == one.batch + 1
    return same or (other.epoch == one.epoch + 1 and other.batch == 0)


def _shortened(lanes: Lanes, batches: _Range) -> _Range:
    """The range with batches dropped until it is small enough to draw, or none can be dropped."""
    while not batches.is_least and not _fits(lanes, batches):
        batches = batches.smaller()
    return batches


def _focused(lanes: Lanes, batches: _Range) -> _Range:
    """The range, shortened.

    If it is still too large to draw, `needed` batches on both sides of its focus are dropped too.
    """
    least = _shortened(lanes, batches)
    return least if _fits(lanes, least) else _shortened(lanes, replace(batches, needed=batches.focus))


def _fits(lanes: Lanes, batches: _Range) -> bool:
    """Whether the range is small enough to draw."""
    window = _window(lanes.taken, batches)
    return window is None or next(islice(pieces_in(lanes, window), MOST_PIECES, None), None) is None


def _window(taken: Sequence[Taken], batches: _Range) -> Window | None:
    began_s, end = taken[batches.first].asked_s, taken[batches.last]
    ended_s = max(end.got_s, end.ended_s or end.got_s)
    if ended_s <= began_s:
        return None
    epochs = [one.batch.epoch for one in taken[batches.first : batches.last + 1] if one.batch.batch == 0]
    return Window(batches.shows, next(iter(epochs), taken[batches.first].batch.epoch), began_s, ended_s)


def pieces_in(lanes: Lanes, window: Window) -> Iterator[object]:
    """All that is drawn in a window: stages and frames of batches, waits and steps."""
    for own in lanes.shown.values():
        for made in own:
            if window.overlaps(made):
                yield made
                yield from made.stages()
    yield from filter(window.overlaps, lanes.loop)
