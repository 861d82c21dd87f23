"""The swim lanes: what is drawn of a trial's batches, and which stretch of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import run_factory as runs
import run_lanes as own
import run_profiles as profiles
from blocks import section, within
from run_hostile import HOSTILE

from loaderbench.records import BatchTimes, Readings, RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.report.lanes import MOST_LANES, Lanes, Taken
from loaderbench.report.lanes_window import MOST_PIECES, Window, pieces_in, windows_of
from loaderbench.report.model import Paragraph, Table
from loaderbench.report.perfetto import chrome_trace
from loaderbench.report.sections.lanes_drawing import READY_HEIGHT, LaneDrawing, LoopNames, drawing_of


def lanes(**changes: Any) -> Lanes:
    return Lanes(list(own.batches(**changes)))


def said(run: RunRecord, readings: Readings) -> list[str]:
    return [block.text.text for block in within(build_document(run, readings), "lanes", Paragraph)]


def drawings(run: RunRecord, readings: Readings) -> list[LaneDrawing]:
    return within(build_document(run, readings), "lanes", LaneDrawing)


def bare(batch: BatchTimes) -> BatchTimes:
    """The same without tracing."""
    return replace(batch, worker=None, began_s=None, collate_began_s=None, made_s=None, stages_s={})


def test_waits_and_steps_take_turns_and_waits_add_up_to_the_data_wait() -> None:
    found = lanes(epochs=2)
    loop = sorted([*found.waits, *found.steps, *found.breaks], key=lambda piece: piece.began_s)
    assert all(before.ended_s <= after.began_s + 1e-9 for before, after in pairwise(loop))
    assert sum(wait.seconds for wait in found.waits) == pytest.approx(sum(b.wait_s or 0.0 for b in found.batches))
    assert [piece.batch.epoch for piece in found.breaks] == [1]
    assert sum(piece.seconds for piece in loop) == pytest.approx(loop[-1].ended_s - loop[0].began_s)


def test_a_step_that_a_device_still_computes_reaches_to_the_wait_for_the_next() -> None:
    """The host is done with an emulated GPU's batch at once; the device is not."""
    first = BatchTimes(epoch=0, batch=0, samples=1, asked_s=0.0, got_s=1.0, wait_s=1.0, ended_s=1.0)
    second = BatchTimes(epoch=0, batch=1, samples=1, asked_s=1.0, got_s=3.0, wait_s=0.5, ended_s=3.0)
    (step,) = Lanes([first, second]).steps
    assert (step.began_s, step.ended_s) == (1.0, 2.5)


def test_stages_fill_a_batch_one_after_the_other_by_their_sums() -> None:
    made = lanes().makers[0][0]
    pieces = list(made.stages())
    assert [piece.what for piece in pieces] == ["read", "decode", "sample", "collate"]
    assert pieces[0].began_s == made.began_s
    assert pieces[-1].ended_s == made.ended_s
    assert all(before.ended_s == pytest.approx(after.began_s) for before, after in pairwise(pieces))
    assert pieces[1].seconds == pytest.approx(2 * pieces[0].seconds)


def test_ready_batches_behind_a_straggler_are_held_up() -> None:
    found = lanes()
    straggler = next(made for made in found.makers[0] if made.batch.batch == own.STRAGGLER)
    while_made = [one for one in found.ready if straggler.began_s + 0.1 < one.at_s < straggler.ended_s]
    held_up = [one for one in found.ready if one.held_up]
    assert {one.held_up for one in while_made} <= {True}
    assert len(held_up) < len(found.ready) / 2
    assert found.ready[-1].count == 0
    assert min(one.count for one in found.ready) == 0


def test_a_straggler_is_named_with_its_worker_and_what_it_cost() -> None:
    first, second, *_ = said(*own.with_straggler())
    assert first == "Batch 30 is a straggler: worker 0 took 400 ms, 22\u00d7 the median of 18.0 ms, mostly in decode."
    assert second.startswith("The loop waited 3")


def test_a_straggler_that_a_long_step_hides_is_not_explained_by_batches_that_were_not_there() -> None:
    """One worker makes one batch ahead: no other is ready while one is made."""
    period_s, made = 0.1, {4: 0.09}
    batches = [
        BatchTimes(
            epoch=0,
            batch=n,
            samples=8,
            steady=True,
            asked_s=n * period_s,
            got_s=n * period_s,
            wait_s=0.0,
            ended_s=(n + 1) * period_s,
            worker=0,
            began_s=(n - 1) * period_s,
            collate_began_s=(n - 1) * period_s + made.get(n, 0.02),
            made_s=(n - 1) * period_s + made.get(n, 0.02),
        )
        for n in range(10)
    ]
    run = profiles.traced()
    assert max(one.count for one in Lanes(batches).ready) == 1, "the batch itself"
    assert said(run, own.readings(run, *batches))[1] == "The loop did not wait for it."


def test_a_straggler_that_was_made_while_others_lay_ready_says_so() -> None:
    run = profiles.traced()
    ahead = own.batches(count=300, workers=64, straggler=150)
    assert said(run, own.readings(run, *ahead))[1] == "The loop did not wait for it: other batches were ready."


def test_without_a_straggler_none_is_named() -> None:
    run = profiles.traced()
    first, second = said(run, own.readings(run, *own.batches(straggler=None)))
    assert first == "No straggler: batches took 18.0 ms to make (median), the slowest 18.0 ms."
    assert "not in time order" in second


def test_a_run_without_batches_has_no_section_and_nothing_breaks() -> None:
    for run in (profiles.traced(), runs.typical(), runs.all_failed(), profiles.nothing_measured()):
        assert section(build_document(run, runs.timeline(run)), "lanes") is None


def test_an_untraced_loader_shows_its_loop_and_says_why_there_are_no_workers() -> None:
    run = profiles.untraced()
    readings = own.readings(run, *map(bare, own.batches()))
    assert any(profiles.NO_TRACE in text for text in said(run, readings))
    assert [lane.label for drawing in drawings(run, readings) for lane in drawing.lanes] == ["Training step"] * 2


def test_without_workers_what_the_main_process_makes_is_never_handed_over() -> None:
    run = profiles.main_process()
    readings = own.readings(run, *(replace(batch, worker=None) for batch in own.batches(straggler=None)))
    assert {lane.label for drawing in drawings(run, readings) for lane in drawing.lanes} == {
        "Main process",
        "Training step",
    }


def test_a_sweep_shows_the_typical_trial_of_the_verdict_s_configuration() -> None:
    run = runs.typical()
    assert run.best is not None
    readings = Readings()
    for trial in run.sweep:
        readings.keep_batches(trial.id, own.batches())
    of_best = [trial.id for trial in run.sweep if trial.config == run.best.config]
    text = " ".join(said(run, readings))
    assert any(f"Trial {name} (config of the verdict)" in text for name in of_best)


@pytest.mark.parametrize(
    ("consumer", "lane"),
    [
        ("emulated", "Emulated GPU"),
        ("model", "GPU"),
        ("target", "Consumer"),
        ("none", "Loop"),
        ("loop", "Training step"),
        ("of_another_version", "Consumer"),
    ],
)
def test_the_lane_of_the_loop_is_named_after_what_consumes(consumer: str, lane: str) -> None:
    run = replace(runs.typical(), consumer=consumer)
    readings = Readings()
    for trial in run.sweep:
        readings.keep_batches(trial.id, own.batches())
    found = {one.label for drawing in drawings(run, readings) for one in drawing.lanes}
    assert {name for name in found if not name.startswith(("Worker ", "Ready "))} == {lane}


def inside(found: Lanes, window: Window) -> list[Taken]:
    """The batches that were taken within it."""
    return [one for one in found.taken if window.began_s <= one.asked_s < window.ended_s]


def long_epoch() -> Lanes:
    """What is kept of 3,000 batches that 24 workers make: the first, those around the slowest one, and the last."""
    kept = [*range(64), *range(936, 1064), *range(2872, 3000)]
    found = list(own.batches(count=3_000, straggler=1_000, workers=24))
    return Lanes([found[number] for number in kept])


FEW_WORKERS = [
    lanes(),
    lanes(epochs=3),
    lanes(count=20),
    lanes(count=300),
    lanes(straggler=2),
    lanes(count=40, stages_s=own.EIGHT_STAGES),
    lanes(count=300, workers=8, stages_s=own.EIGHT_STAGES),
]
MANY_WORKERS = [
    lanes(count=300, workers=24),
    lanes(count=300, workers=64),
    lanes(count=300, workers=64, straggler=150),
    lanes(count=300, workers=64, straggler=150, epochs=2),
    lanes(count=300, workers=64, stages_s=own.EIGHT_STAGES),
    long_epoch(),
]


@pytest.mark.parametrize("found", [*FEW_WORKERS, *MANY_WORKERS])
def test_windows_show_the_slowest_batch_and_a_start_and_never_too_much(found: Lanes) -> None:
    windows, slowest = windows_of(found), found.slowest()
    assert 1 <= len(windows) <= 2
    assert all(sum(1 for _ in pieces_in(found, window)) <= MOST_PIECES for window in windows)
    assert slowest is not None
    assert any(window.began_s < slowest.ended_s <= window.ended_s for window in windows)
    starts = [one.asked_s for one in found.taken if one.batch.batch == 0]
    assert any(window.began_s <= start < window.ended_s for window in windows for start in starts)
    assert all(before.ended_s <= after.began_s for before, after in pairwise(windows))


@pytest.mark.parametrize("found", FEW_WORKERS)
def test_a_window_holds_all_the_time_that_the_slowest_batch_took(found: Lanes) -> None:
    slowest = found.slowest()
    assert slowest is not None
    assert any(window.began_s <= slowest.began_s and slowest.ended_s <= window.ended_s for window in windows_of(found))


@pytest.mark.parametrize("found", [*FEW_WORKERS, *MANY_WORKERS])
def test_a_window_shows_what_its_title_says(found: Lanes) -> None:
    slowest = found.slowest()
    assert slowest is not None
    for window in windows_of(found):
        held = inside(found, window)
        assert "whole" not in window.shows or held == found.taken
        assert "start" not in window.shows or any(one.batch.batch == 0 for one in held)
        assert "slowest" not in window.shows or window.began_s < slowest.ended_s <= window.ended_s
        assert all(other.batch.batch in (0, one.batch.batch + 1) for one, other in pairwise(held))


def test_the_whole_of_a_short_trial_is_one_window_unless_batches_between_were_not_kept() -> None:
    (window,) = windows_of(lanes(count=20))
    assert window.shows == {"whole"}
    kept = [batch for batch in own.batches(count=100, straggler=90) if not 10 <= batch.batch < 80]
    assert [window.shows for window in windows_of(Lanes(kept))] == [{"start"}, {"slowest"}]


def test_without_the_first_batch_of_an_epoch_no_title_names_a_start() -> None:
    run = profiles.traced()
    late = [batch for batch in own.batches(count=200, straggler=150) if batch.batch >= 50]
    titles = [drawing.title for drawing in drawings(run, own.readings(run, *late))]
    assert [title.partition(" (")[0] for title in titles] == [
        "First recorded batches",
        "Around the slowest batch",
    ]


def test_a_window_ends_where_batches_were_not_kept() -> None:
    kept = [batch for batch in own.batches(count=200) if not 40 <= batch.batch < 100]
    found = Lanes([replace(batch, steady=batch.batch == 100) for batch in kept])
    _, around = windows_of(found)
    assert around.began_s == next(one.asked_s for one in found.taken if one.batch.batch == 100)


def test_the_scale_of_ready_batches_is_that_of_the_whole_trial_in_every_window() -> None:
    found = lanes()
    most = max(one.count for one in found.ready)
    first, second = next((one, other) for one, other in pairwise(found.ready) if one.count == 1)
    (lane,) = [
        lane
        for lane in drawing_of(found, Window(frozenset(), 0, first.at_s, second.at_s), LoopNames("GPU"), "").lanes
        if lane.paths
    ]
    assert lane.label == f"Ready (0\u2013{most})"
    assert re.findall(r"v-(\d+)", lane.paths[0][1]) == [f"{READY_HEIGHT / most:.0f}"]


def test_bars_of_a_lane_do_not_overlap_and_stay_inside() -> None:
    for drawing in drawings(*own.with_straggler()):
        for lane in drawing.lanes:
            bars = sorted(lane.bars, key=lambda bar: bar.start)
            assert all(before.start + before.share <= after.start + 1e-9 for before, after in pairwise(bars))
            assert all(bar.start >= 0 and bar.start + bar.share <= 1 + 1e-9 for bar in (*bars, *lane.frames))


def test_the_slowest_batch_is_framed_with_its_number() -> None:
    frames = [frame for d in drawings(*own.with_straggler()) for lane in d.lanes for frame in lane.frames]
    (marked,) = [frame for frame in frames if frame.slowest]
    assert marked.number == "30"
    assert marked.said.startswith("Batch 30: 400 ms to make (decode 8.00 ms, read 4.00 ms")


def test_the_table_says_the_same() -> None:
    (table,) = within(build_document(*own.with_straggler()), "lanes", Table)
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    assert [row[0] for row in rows[:4]] == [
        "Worker 0",
        "Worker 1",
        "Training step: waiting",
        "Training step: computing",
    ]
    assert max(float(row[3]) for row in rows if row[0] == "Worker 0") == 400
    assert {row[4] for row in rows if row[0] == "Worker 1"} == {"decode"}


def test_with_many_workers_and_stages_the_drawing_stays_light() -> None:
    many = [replace(batch, worker=batch.batch % 64, stages_s=own.EIGHT_STAGES) for batch in own.batches(count=300)]
    run = profiles.traced()
    html = render_html(build_document(run, own.readings(run, *many)))
    drawn = html[html.index('<section id="lanes"') : html.index("</section>", html.index('<section id="lanes"'))]
    assert drawn.count("<rect") <= 700
    assert len(html.encode()) <= 2_500_000


def test_many_workers_have_some_lanes_and_that_of_the_slowest_batch() -> None:
    many = [replace(batch, worker=(batch.batch + 50) % 64) for batch in own.batches(count=128)]
    run = profiles.traced()
    readings = own.readings(run, *many)
    labels = [lane.label for lane in drawings(run, readings)[0].lanes]
    assert len([label for label in labels if label.startswith("Worker")]) == MOST_LANES
    assert f"Worker {(own.STRAGGLER + 50) % 64}" in labels
    assert said(run, readings)[-1].endswith(f"{64 - MOST_LANES} more workers in the trace of --perfetto.")


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -1e300, 1e300])
def test_moments_that_are_none_cost_their_batch_alone(moment: float) -> None:
    fields = ("asked_s", "got_s", "wait_s", "ended_s", "began_s", "collate_began_s", "made_s")
    batches = list(own.batches())
    batches = [replace(b, **{fields[i % 7]: moment}) if i % 5 == 0 else b for i, b in enumerate(batches)]
    run = profiles.traced()
    html = render_html(build_document(run, own.readings(run, *batches)))
    drawn = html[html.index('<section id="lanes"') :]
    assert "nan%" not in drawn
    assert drawn.count("b-decode") > 5
    json.dumps(chrome_trace(run, own.readings(run, *batches)), allow_nan=False)


def test_names_of_stages_from_outside_do_nothing() -> None:
    run = profiles.traced()
    evil = [replace(batch, stages_s={HOSTILE: 0.01}) for batch in own.batches()]
    html = render_html(build_document(run, own.readings(run, *evil)))
    assert HOSTILE not in html


def test_without_a_consumer_the_loop_does_not_wait_for_data() -> None:
    run = replace(runs.typical(), consumer="none")
    readings = Readings()
    for trial in run.sweep:
        readings.keep_batches(trial.id, map(bare, own.batches()))
    document = build_document(run, readings)
    (table,) = within(document, "lanes", Table)
    assert {row.cells[0].text for row in table.rows} == {"Loop: in next()", "Loop: between calls"}
    (shown, *_) = within(document, "lanes", LaneDrawing)
    assert dict(shown.key)["wait"] == "time in next()"
    assert any(bar.said.startswith("Time in next(), batch ") for lane in shown.lanes for bar in lane.bars)
    sentences = [block.text.text for block in within(document, "lanes", Paragraph)]
    assert sentences[0].startswith("Longest time in next(): ")
    assert "wait" not in " ".join([*sentences, table.caption, shown.title, shown.said]).lower()
