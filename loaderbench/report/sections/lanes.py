"""The swim lanes: each worker with its batches, the ready batches, and the loop while it waits or computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loaderbench.consumers import who_takes
from loaderbench.diagnosis.stragglers import SlowBatch, slow_batch
from loaderbench.records import Trial
from loaderbench.records.words import count
from loaderbench.report import numbers, tables, words
from loaderbench.report.lanes import MOST_LANES, UNDIVIDED, Lanes, Made, Piece, lanes_of
from loaderbench.report.lanes_window import Window, windows_of
from loaderbench.report.model import Block, Column, Paragraph, Row, Section, Table, Text, data_table
from loaderbench.report.sections.lanes_drawing import LaneDrawing, LoopNames, drawing_of, in_time, lane_name
from loaderbench.report.view import IN_NEXT, View, why

_WITHOUT_CONSUMER = LoopNames("Loop", IN_NEXT, waiting="in next()", one_wait=IN_NEXT, step="between calls")
_NOT_LINKED = "which worker made which batch is not known"
_COLUMNS = (
    Column("Lane"),
    Column("Batches", numeric=True),
    Column("Share of time", numeric=True),
    Column("Longest, ms", numeric=True, title="the longest batch, wait or step"),
    Column("Mostly in", title="the largest stage of the longest batch"),
)


def section(view: View) -> Section | None:
    """The median trial of the verdict's configuration; `None` if none of its batches were recorded."""
    drawn = lanes_of(view)
    if drawn is None:
        return None
    trial, lanes = drawn
    windows = windows_of(lanes)
    if not windows:
        return None
    names = LoopNames(words.capitalised(who_takes(view.run))) if view.has_data_wait else _WITHOUT_CONSUMER
    drawings = [drawing_of(lanes, window, names, _title(window, lanes, names)) for window in windows]
    blocks: list[Block] = [Paragraph(Text(sentence)) for sentence in sentences(lanes, names)]
    blocks += [_without_workers(trial)] if not lanes.makers else []
    blocks += drawings
    blocks += [Paragraph(Text(_method(view, trial, lanes)), "small")]
    blocks += [data_table(_table(lanes, windows, names, drawings))]
    return Section(id="lanes", title="Batches over time", label="Batches over time", blocks=tuple(blocks))


def sentences(lanes: Lanes, names: LoopNames) -> Iterator[str]:
    """A summary: whether a batch took much longer than the others, and what that cost."""
    made = lanes.slowest()
    slow = slow_batch(made.batch, [one.batch for own in lanes.makers.values() for one in own]) if made else None
    if made is None or slow is None:
        longest = max((wait for wait in lanes.waits if wait.batch.steady), key=lambda w: w.seconds, default=None)
        if longest is not None:
            yield f"Longest {names.one_wait}: {in_time(longest.seconds)}, for batch {longest.batch.batch}."
        return
    took, typical = in_time(slow.took_s), in_time(slow.typical_s)
    if not slow.is_straggler:
        yield f"No straggler: batches took {typical} to make (median), the slowest {took}."
        return
    maker = f"{_whose(made)} took {took}, {slow.ratio:.0f}\u00d7 the median of {typical}"
    yield f"Batch {made.batch.batch} is a straggler: {maker}{_mostly(made)}."
    yield from _cost(slow)


def _cost(slow: SlowBatch) -> Iterator[str]:
    """The cost of a straggler for the loop, if known."""
    if slow.waited_s:
        yield f"The loop waited {in_time(slow.waited_s)} for it."
    elif slow.waited_s is not None:
        yield f"The loop did not wait for it{': other batches were ready' if slow.ready else ''}."


def _whose(made: Made) -> str:
    return "the main process" if made.batch.worker is None else f"worker {made.batch.worker}"


def _mostly(made: Made) -> str:
    stage = largest_stage(made)
    return f", mostly in {words.stage(stage).text}" if stage and stage != UNDIVIDED else ""


def largest_stage(made: Made) -> str | None:
    """The stage with most of a batch's time; `None` if its stages were not timed."""
    if not made.batch.stages_s:
        return None
    pieces = list(made.stages())
    return max(pieces, key=lambda piece: piece.seconds).what


def _without_workers(trial: Trial) -> Paragraph:
    reason = why(trial, "stages") or _NOT_LINKED
    return Paragraph(words.sentence(f"Workers: not measured ({reason})."), "missing")


def _title(window: Window, lanes: Lanes, names: LoopNames) -> str:
    """What the window shows, and its length."""
    start = "Start of the first epoch" if window.epoch == 0 else f"Start of epoch {window.epoch + 1}"
    slowest = "the slowest batch" if lanes.slowest() else f"the longest {names.one_wait}"
    titles = {
        frozenset({"whole"}): "All recorded batches",
        frozenset({"start", "slowest"}): f"{start}, and {slowest}",
        frozenset({"start"}): start,
        frozenset({"slowest"}): f"Around {slowest}",
    }
    return f"{titles.get(window.shows, 'First recorded batches')} ({numbers.duration(window.seconds).text})"


def _method(view: View, trial: Trial, lanes: Lanes) -> str:
    which = f"Trial {words.plain(trial.id, words.NAME_LIMIT)} (config of the verdict). "
    text = f"{'' if view.profile else which}Bars are numbered by batch, from 0 in each epoch."
    if any(made.batch.stages_s for own in lanes.makers.values() for made in own):
        text += " Colors show time per stage, summed over a batch, not in time order."
    left = len(lanes.makers) - MOST_LANES
    return f"{text} {count(left, 'more worker')} in the trace of --perfetto." if left > 0 else text


def _table(lanes: Lanes, windows: Sequence[Window], names: LoopNames, drawings: Sequence[LaneDrawing]) -> Table:
    """A row for each lane of each window."""
    named: list[tuple[str, Sequence[Piece | Made]]] = list(_made_by_lane(lanes))
    named += [(f"{names.lane}: {names.waiting}", lanes.waits), (f"{names.lane}: {names.step}", lanes.steps)]
    rows = [_row(label, own, window) for window in windows for label, own in named]
    titles = "; ".join(drawing.title for drawing in drawings)
    return Table(f"Lanes, in this order: {titles}" if len(windows) > 1 else titles, _COLUMNS, tuple(rows))


def _made_by_lane(lanes: Lanes) -> Iterator[tuple[str, Sequence[Piece | Made]]]:
    for worker, made in lanes.shown.items():
        yield lane_name(worker), made


def _row(label: str, pieces: Sequence[Piece | Made], window: Window) -> Row:
    inside = [one for one in pieces if window.overlaps(one)]
    busy = sum(window.place(one.ended_s) - window.place(one.began_s) for one in inside)
    longest = max(inside, key=lambda one: one.seconds, default=None)
    stage = largest_stage(longest) if isinstance(longest, Made) else None
    return Row(
        (
            Text(label),
            numbers.whole(len(inside)),
            numbers.share(min(1.0, busy)),
            *tables.milliseconds([longest.seconds if longest else None], "not in this window"),
            words.stage(stage) if stage else Text("\u2013"),
        )
    )
