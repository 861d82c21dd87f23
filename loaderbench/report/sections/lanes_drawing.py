"""A window of the swim lanes as rectangles, positioned and sized as shares of the width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from loaderbench.records.words import STAGE_NAMES
from loaderbench.report import numbers, words
from loaderbench.report.lanes import Kind, Lanes, Made, Piece, Ready, kind_of
from loaderbench.report.lanes_window import Window
from loaderbench.report.model import Block

_THINNEST = 4e-4  # of the width: less than half a pixel
_NUMBERED = 0.012  # of the width: space for one digit of a batch's number
_TICKS = 6
READY_WIDTH, READY_HEIGHT = 1000, 100  # size of the drawing of ready batches
_NAMES: dict[Kind, str] = {
    "read": "read",
    "decode": "decode",
    "transform": "transform",
    "other": STAGE_NAMES["sample"],
    "collate": "collate",
    "wait": "waiting for data",
    "step": "computing",
    "between": "between epochs",
}
_OF_LOOP = ("wait", "step", "between")
_HELD_UP = "ready, blocked by an earlier batch"
_READY = "ready to be taken"


@dataclass(frozen=True)
class LoopNames:
    """The label of the loop's lane, and the names of what it does: `wait` in the key, and `waiting` after the label.

    `one_wait` is the noun for the time of one batch.
    """

    lane: str
    wait: str = _NAMES["wait"]
    waiting: str = "waiting"
    one_wait: str = "wait"
    step: str = _NAMES["step"]

    def of(self, kind: Kind) -> str:
        """The name of a color."""
        return {**_NAMES, "wait": self.wait, "step": self.step}[kind]


@dataclass(frozen=True)
class Bar:
    """A rectangle in a lane. `kind` selects its color."""

    kind: Kind
    start: float
    share: float
    said: str = ""


@dataclass(frozen=True)
class Frame:
    """The outline of a batch, with its number if there is space, and a description."""

    start: float
    share: float
    said: str
    number: str
    slowest: bool


@dataclass(frozen=True)
class Lane:
    """One row: bars with frames, or areas with their CSS classes (`paths`).

    If `idles`, the rest of the row is idle time.
    """

    label: str
    bars: tuple[Bar, ...] = ()
    frames: tuple[Frame, ...] = ()
    paths: tuple[tuple[str, str], ...] = ()
    idles: bool = False


@dataclass(frozen=True)
class Mark:
    """A tick of the time axis, or the start of an epoch. `anchor` aligns its text."""

    place: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, kw_only=True)
class LaneDrawing(Block):
    """One window. `said` is its description for screen readers."""

    template = "lanes.html"
    title: str
    said: str
    lanes: tuple[Lane, ...]
    ticks: tuple[Mark, ...]
    epochs: tuple[Mark, ...]
    key: tuple[tuple[str, str], ...]


def drawing_of(lanes: Lanes, window: Window, names: LoopNames, title: str) -> LaneDrawing:
    """Draw a window."""
    rows = [*_makers(lanes, window, names), *_ready(lanes.ready, window)]
    rows.append(Lane(names.lane, tuple(_bars(lanes.loop, window, names))))
    return LaneDrawing(
        title=title,
        said=f"{title}. {_shares(lanes, window, names)}",
        lanes=tuple(rows),
        ticks=tuple(_ticks(window)),
        epochs=tuple(_epochs(lanes, window)),
        key=tuple(_key(rows, names)),
    )


def _makers(lanes: Lanes, window: Window, names: LoopNames) -> Iterator[Lane]:
    slowest = lanes.slowest()
    for worker, own in lanes.shown.items():
        inside = [made for made in own if window.overlaps(made)]
        yield Lane(
            lane_name(worker),
            tuple(bar for made in inside for bar in _bars(made.stages(), window, names)),
            tuple(_frame(made, window, slowest=made == slowest) for made in inside),
            idles=worker is not None,
        )


def lane_name(worker: int | None) -> str:
    """The label of a lane with the batches of this worker."""
    return "Main process" if worker is None else f"Worker {worker}"


def _frame(made: Made, window: Window, *, slowest: bool) -> Frame:
    start = window.place(made.began_s)
    share, number = window.place(made.ended_s) - start, str(made.batch.batch)
    stages = ", ".join(f"{words.stage(s).text} {in_time(took_s)}" for s, took_s in made.batch.stages_s.items())
    text = f"Batch {number}: {in_time(made.seconds)} to make{f' ({stages})' if stages else ''}{_handed_over(made)}"
    return Frame(start, share, text, number if share > _NUMBERED * (len(number) + 1) else "", slowest)


def _handed_over(made: Made) -> str:
    got_s = made.batch.got_s
    return "; never taken" if got_s is None else f"; taken {in_time(max(0.0, got_s - made.ended_s))} later"


def _bars(pieces: Iterable[Piece], window: Window, names: LoopNames) -> Iterator[Bar]:
    """The visible parts of the pieces."""
    for piece in pieces:
        start = window.place(piece.began_s)
        share = window.place(piece.ended_s) - start
        if share >= _THINNEST:
            kind = kind_of(piece.what)
            text = f"{words.capitalised(names.of(kind))}, batch {piece.batch.batch}: {in_time(piece.seconds)}"
            yield Bar(kind, start, share, text if piece.what in _OF_LOOP else "")


def _ready(ready: Sequence[Ready], window: Window) -> Iterator[Lane]:
    """The number of ready batches as an area, and on top of it those held up by an earlier batch.

    All windows of a trial share one scale, from 0 to the maximum of the trial.
    """
    top = max((one.count for one in ready), default=0)
    if not top:
        return
    steps = [(window.place(one.at_s), window.place(after.at_s), one) for one, after in pairwise(ready)]
    shown = [step for step in steps if step[1] > step[0]]
    paths = [(name, _area([s for s in shown if s[2].held_up == held_up], top)) for name, held_up in _AREAS]
    yield Lane(f"Ready (0\u2013{top})", paths=tuple((name, path) for name, path in paths if path))


_AREAS = (("ready", False), ("held-up", True))


def _area(steps: Sequence[tuple[float, float, Ready]], top: int) -> str:
    """The steps as one path of rectangles from the baseline up."""
    parts = []
    for start, end, one in steps:
        if one.count:
            left, wide = round(READY_WIDTH * start, 1), round(READY_WIDTH * (end - start), 1)
            high = round(READY_HEIGHT * one.count / top)
            parts.append(f"M{left:g} {READY_HEIGHT}v-{high}h{wide:g}v{high}z")
    return "".join(parts)


def _ticks(window: Window) -> Iterator[Mark]:
    """Round times since the start of the window, in one unit."""
    step_s = _round_step(window.seconds / _TICKS)
    unit, factor = next((found for found in _UNITS if step_s * found[1] >= 1), _UNITS[-1])
    for number in range(1 + math.floor(window.seconds / step_s + 1e-9)):
        place = number * step_s / window.seconds
        text = f"{number * step_s * factor:g} {unit}" if number else "0"
        yield Mark(place, text, "start" if number == 0 else "end" if place > 0.97 else "middle")


_UNITS = (("s", 1.0), ("ms", 1e3), ("\u00b5s", 1e6))


def _round_step(least_s: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below `least_s`."""
    power = 10.0 ** math.floor(math.log10(least_s))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least_s * (1 - 1e-9))


def _epochs(lanes: Lanes, window: Window) -> Iterator[Mark]:
    for one in lanes.taken:
        if one.batch.batch == 0 and window.began_s <= one.asked_s < window.ended_s:
            place = window.place(one.asked_s)
            yield Mark(place, f"epoch {one.batch.epoch + 1} starts", "end" if place > 0.8 else "start")


def _key(rows: Sequence[Lane], names: LoopNames) -> Iterator[tuple[str, str]]:
    """The colors in use, in the order in which a batch passes them."""
    seen = {bar.kind for row in rows for bar in row.bars}
    areas = {name for row in rows for name, _ in row.paths}
    yield from ((kind, names.of(kind)) for kind in _NAMES if kind in seen and kind not in _OF_LOOP)
    yield from [("idle", "idle")] if any(row.idles for row in rows) else []
    yield from ((name, said) for name, said in (("ready", _READY), ("held-up", _HELD_UP)) if name in areas)
    yield from ((kind, names.of(kind)) for kind in _NAMES if kind in seen and kind in _OF_LOOP)


def _shares(lanes: Lanes, window: Window, names: LoopNames) -> str:
    """The busy share of each lane."""
    parts = []
    for worker, own in lanes.shown.items():
        parts.append(f"{'Main process' if worker is None else f'worker {worker}'} {_share(own, window)} busy")
    parts.append(f"{names.lane} {_share(lanes.waits, window)} {names.waiting}")
    return words.plain(", ".join(parts), words.SENTENCE_LIMIT) + "."


def _share(pieces: Sequence[Piece | Made], window: Window) -> str:
    return numbers.share(sum(window.place(one.ended_s) - window.place(one.began_s) for one in pieces)).text


def in_time(seconds: float) -> str:
    """A length of time in a suitable unit."""
    return numbers.duration(seconds).text
