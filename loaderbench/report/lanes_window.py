"""Which parts of a trial to draw: the start of an epoch, and the time around the slowest batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from loaderbench.report.lanes import Lanes, Taken

WHOLE = 40  # batches of a trial that is drawn in one piece
MOST_PIECES = 290  # of one window; a page draws two
_BEFORE_START, _AFTER_START = 6, 12  # batches
_AROUND = 12
_TURNS = 3  # of all workers, at least


@dataclass(frozen=True)
class Window:
    """A stretch of time, and what it shows: all batches, the start of an `epoch`, the slowest batch, or both."""

    shows: frozenset[Literal["whole", "start", "slowest"]]
    epoch: int
    began_s: float
    ended_s: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.ended_s - self.began_s

    def place(self, at_s: float) -> float:
        """A moment as a place in the window: 0 to 1, its edge for one outside."""
        return min(1.0, max(0.0, (at_s - self.began_s) / self.seconds))


@dataclass(frozen=True)
class _Range:
    """Batches that were taken, from one place to another, the last one included."""

    first: int
    last: int
    shows: frozenset[Literal["whole", "start", "slowest"]]
    focus: int


def windows_of(lanes: Lanes) -> list[Window]:
    """In the order of time; none where nothing was taken."""
    taken = lanes.taken
    if not taken:
        return []
    ranges = _ranges(lanes, taken)
    found = (_shortened(lanes, taken, one) for one in ranges)
    return [window for window in found if window is not None]


def _ranges(lanes: Lanes, taken: Sequence[Taken]) -> list[_Range]:
    if len(taken) <= WHOLE:
        return [_Range(0, len(taken) - 1, frozenset({"whole"}), 0)]
    turns = _TURNS * max(1, len(lanes.makers))
    start, slowest = _start(taken), _slowest(lanes, taken)
    first = _within(taken, _Range(start - _BEFORE_START, start + max(_AFTER_START, turns), frozenset({"start"}), start))
    around = max(_AROUND, turns)
    second = _within(taken, _Range(slowest - around, slowest + around, frozenset({"slowest"}), slowest))
    before, after = sorted((first, second), key=lambda one: one.first)
    if after.first > before.last + 1:
        return [before, after]
    return [_Range(before.first, max(before.last, after.last), before.shows | after.shows, slowest)]


def _start(taken: Sequence[Taken]) -> int:
    """Where an epoch begins after another, which shows how both end and start; else the first batch there is."""
    return next((i for i in range(1, len(taken)) if taken[i].batch.batch == 0 and _follows(taken[i - 1], taken[i])), 0)


def _slowest(lanes: Lanes, taken: Sequence[Taken]) -> int:
    """The batch that took longest to make; the one that was waited for longest where no maker is known."""
    made = lanes.slowest()
    found = [i for i, one in enumerate(taken) if made is not None and one.batch == made.batch]
    return found[0] if found else max(range(len(taken)), key=lambda i: (taken[i].batch.steady, taken[i].wait_s))


def _within(taken: Sequence[Taken], wanted: _Range) -> _Range:
    """The range as far as its batches follow one another: those between two stretches were not kept."""
    first = last = wanted.focus
    while first > max(0, wanted.first) and _follows(taken[first - 1], taken[first]):
        first -= 1
    while last < min(len(taken) - 1, wanted.last) and _follows(taken[last], taken[last + 1]):
        last += 1
    return _Range(first, last, wanted.shows, wanted.focus)


def _follows(before: Taken, after: Taken) -> bool:
    one, other = before.batch, after.batch
    same = other.epoch == one.epoch and other.batch == one.batch + 1
    return same or (other.epoch == one.epoch + 1 and other.batch == 0)


def _shortened(lanes: Lanes, taken: Sequence[Taken], found: _Range) -> Window | None:
    """The window of a range, with batches left out at its farther end until it is light enough to draw."""
    first, last = found.first, found.last
    window = _window(taken, first, last, found.shows)
    while window and last > first and sum(1 for _ in pieces_in(lanes, window)) > MOST_PIECES:
        if found.focus - first > last - found.focus:
            first += 1
        else:
            last -= 1
        window = _window(taken, first, last, found.shows)
    return window


def _window(
    taken: Sequence[Taken], first: int, last: int, shows: frozenset[Literal["whole", "start", "slowest"]]
) -> Window | None:
    began_s, end = taken[first].asked_s, taken[last]
    ended_s = max(end.got_s, end.ended_s or end.got_s)
    if ended_s <= began_s:
        return None
    epochs = [one.batch.epoch for one in taken[first : last + 1] if one.batch.batch == 0]
    return Window(shows, next(iter(epochs), taken[first].batch.epoch), began_s, ended_s)


def pieces_in(lanes: Lanes, window: Window) -> Iterator[object]:
    """Everything that is drawn of a window, one by one: stages and frames of batches, waits and steps."""
    for own in lanes.makers.values():
        for made in own:
            if made.ended_s > window.began_s and made.began_s < window.ended_s:
                yield made
                yield from made.stages()
    for piece in (*lanes.waits, *lanes.steps, *lanes.breaks):
        if piece.ended_s > window.began_s and piece.began_s < window.ended_s:
            yield piece
