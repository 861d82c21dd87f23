"""How still the machine was, as charts: only what there is, and in the numbers of the run."""

from dataclasses import replace

import pytest
import run_factory as runs
from blocks import chart, drawn, facts, ids, the, within
from run_large import large

from loaderbench.records import RunRecord, TimelinePoint
from loaderbench.report.document import build_document
from loaderbench.report.model import Chart, Document, Table, walk
from loaderbench.report.sections.timeline import Timeline


def table_below(run: RunRecord | Document, name: str) -> Table:
    """The numbers of a chart, which follow it."""
    document = run if isinstance(run, Document) else build_document(run)
    blocks = [block for section in document.sections for block in walk(section.blocks)]
    place = next(i for i, block in enumerate(blocks) if isinstance(block, Chart) and block.name == name)
    return next(block for block in blocks[place:] if isinstance(block, Table))


def test_rounds_lie_about_the_mean_of_their_configuration() -> None:
    run = runs.typical()
    own = [t.id for t in run.trials if t.config == run.best.config]
    rates = dict(zip(own, (800.0, 1000.0, 1250.0), strict=True))
    trials = tuple(replace(t, samples_per_s=rates.get(t.id, t.samples_per_s)) for t in run.trials)
    changed = replace(run, trials=trials)
    rounds = drawn(changed, "rounds")

    dots = [(x, place) for x, place in zip(rounds.traces[0]["x"], rounds.traces[0]["y"], strict=True) if place == 0]
    assert rounds.layout["annotations"][0]["text"] == "batch_size=128 num_workers=2"
    assert [x for x, _ in dots] == [-20.0, 0.0, 25.0]
    assert [cell.text for cell in table_below(changed, "rounds").rows[0].cells[1:]] == [
        "800",
        "1,250",
        "3",
        "1.56\u00d7",
    ]


def test_one_round_has_nothing_to_lie_beside() -> None:
    assert chart(runs.one_round(), "rounds") is None


def test_the_boxes_hold_the_middle_half_of_all_rounds() -> None:
    run = runs.one_trial()
    points = [TimelinePoint(run.trials[0].id, float(i), "data_wait_s", i / 1000) for i in range(101)]
    points.append(TimelinePoint(run.trials[0].id, 200.0, "data_wait_s", 9.0))
    (box,) = drawn(run, "waits", points).traces

    assert [*box["q1"], *box["median"], *box["q3"]] == pytest.approx([25.25, 50.5, 75.75])
    assert (box["lowerfence"], box["upperfence"]) == ([0.0], [100.0]), "an outlier must not extend the whisker"


def test_a_few_batches_have_no_quartiles() -> None:
    run = runs.one_trial()
    points = [TimelinePoint(run.trials[0].id, float(i), "data_wait_s", 0.1) for i in range(5)]

    assert chart(run, "waits", points) is None


def test_the_longest_wait_of_each_group_is_no_typical_wait() -> None:
    run = runs.typical()
    thinned = run.trials[0]
    long = replace(thinned, batches=20_000)
    changed = replace(run, trials=(long, *run.trials[1:]))
    points = [replace(p, value=9.0) if p.trial == long.id else p for p in runs.timeline(run)]
    document = build_document(changed, points)
    rows = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table_below(document, "waits").rows}
    own = rows["batch_size=32 num_workers=0"]

    assert own[0] == "160", "two rounds of 80 batches"
    assert own[-1] == next(found[-1] for label, found in rows.items() if label != "batch_size=32 num_workers=0")
    assert [f.value.text for f in facts(document, "noise") if f.label == "Data wait quartiles"] == [
        "not available for 1 trial: only the longest wait of each group of batches was saved"
    ]


def test_a_timeline_that_lacks_waits_says_so() -> None:
    run = runs.one_trial()
    notes = []
    for batches in (80, 20_000):
        trial = replace(run.trials[0], batches=batches)
        notes.append(the(replace(run, trials=(trial,)), Timeline, runs.timeline(run)).trials[0].note)

    assert notes[0] == "All readings shown, up to 80 per series."
    assert notes[1] == f"{notes[0]} Data wait: maximum of each group of batches, 20,000 batches in all."


def test_the_reference_decode_is_told_over_the_minutes_of_the_run() -> None:
    drift = drawn(runs.typical(), "drift")

    assert len(drift.traces[0]["x"]) == 48
    assert drift.traces[0]["x"] == sorted(drift.traces[0]["x"])
    assert set(drift.traces[0]["y"]) == {2.1, 2.2}


def test_a_run_without_dates_or_decodes_has_no_drift() -> None:
    run = runs.typical()

    assert chart(replace(run, started_at="yesterday"), "drift") is None
    still = tuple(replace(t, reference_decode_before_s=None, reference_decode_after_s=None) for t in run.trials)
    assert chart(replace(run, trials=still), "drift") is None


def test_where_nothing_was_measured_there_is_no_chart() -> None:
    assert "noise" not in ids(build_document(runs.all_failed()))


def test_the_slowest_decode_is_never_thinned_away() -> None:
    run = large(1500)
    started = [
        f"2026-03-12T{15 + i // 600:02d}:{i // 10 % 60:02d}:{i % 10 * 6:02d}+00:00" for i in range(len(run.trials))
    ]
    trials = [replace(t, started_at=at) for t, at in zip(run.trials, started, strict=True)]
    for place in (500, 501):
        odd = [replace(t, reference_decode_after_s=0.05) if i == place else t for i, t in enumerate(trials)]
        changed = replace(run, trials=tuple(odd))
        drift = drawn(changed, "drift")
        assert max(drift.traces[0]["y"]) == 50.0
        assert table_below(changed, "drift").rows[0].cells[-1].text == "50.0"
        assert "of 2,9" in drift.caption or "of 3,0" in drift.caption


def test_where_more_configurations_were_measured_than_drawn_it_is_said() -> None:
    assert "Best 12 of 500 configs shown." in drawn(large(1500), "rounds").caption
    assert "drawn" not in drawn(runs.typical(), "rounds").caption


@pytest.mark.parametrize("rate", [-5.0, 0.0, float("inf"), float("nan"), 1e308])
def test_a_rate_that_is_none_draws_no_round(rate: float) -> None:
    run = runs.typical()
    trials = (replace(run.trials[0], samples_per_s=rate), *run.trials[1:])

    assert drawn(replace(run, trials=trials), "rounds")


def test_readings_beyond_all_units_are_left_out() -> None:
    run = runs.one_trial()
    run = replace(run, trials=(replace(run.trials[0], batches=30),))
    name = run.trials[0].id
    points = [TimelinePoint(name, float(i), "data_wait_s", 0.1 if i else 1e306) for i in range(30)]
    document = build_document(run, points)

    assert drawn(document, "waits").traces[0]["upperfence"] == [100]
    assert max(drawn(document, "timeline").traces[0]["y"]) == 100


def test_without_a_consumer_waits_are_time_in_next() -> None:
    run = replace(runs.typical(), consumer="none")
    run = replace(run, trials=(replace(run.trials[0], batches=20_000), *run.trials[1:]))
    document = build_document(run, runs.timeline(run))
    assert "Data wait" not in str(within(document, "noise", Chart)), "the boxes"
    assert chart(document, "waits").label == "Time in next() per batch"
    assert drawn(document, "waits").layout["xaxis"]["title"]["text"] == "time in next() per batch, ms"
    assert table_below(document, "waits").caption == "Time in next() per batch, all rounds"
    assert "Time in next() quartiles" in [fact.label for fact in facts(document, "noise")]

    timeline = the(document, Timeline)
    panels = [title["text"] for title in timeline.figures[0]["layout"]["light"]["annotations"]]
    assert "Time in next() per batch, ms" in panels
    assert "data wait" not in str(within(document, "timeline", Table)).lower()
    assert "data wait" not in str(timeline).lower()
