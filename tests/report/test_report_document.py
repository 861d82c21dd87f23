import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import run_factory as runs
from blocks import cards, downloads, drawn, facts, failures, figures, folded, heat_map, ids, ranking, the, trials
from run_hostile import hostile

from loaderbench.exporters import EXPORTERS
from loaderbench.records import Config, Configuration, Interval, RunRecord, Scalar, TimelinePoint
from loaderbench.report.document import build_document
from loaderbench.report.sections import timeline, timeline_panels
from loaderbench.report.sections.recommendations import Cards
from loaderbench.report.sections.timeline import Timeline
from loaderbench.report.sections.trials import Downloads
from loaderbench.report.sections.verdict import VerdictBlock
from loaderbench.result import Run


def test_key_figures_go_from_the_baseline_to_the_best() -> None:
    found = figures(build_document(runs.typical()))

    assert [figure.label for figure in found][:2] == ["Samples/s", "Data wait"]
    assert found[0].value.main == "844"
    assert found[0].before
    assert found[0].before.text.startswith("212 (")


def test_without_an_accelerator_gpu_figures_are_not_measured_and_never_zero() -> None:
    document = build_document(runs.typical())
    gpu = [figure for figure in figures(document) if figure.label.startswith("GPU")]

    assert [figure.value.text for figure in gpu] == [f"not measured: {runs.NO_ACCELERATOR}"] * 2
    assert document.facts[0].value.text == "none"


def test_gpu_utilization_says_that_a_kernel_was_resident_and_memory_says_of_how_much() -> None:
    document = build_document(runs.gpu_run())
    found = {figure.label: figure for figure in figures(document)}

    assert "kernel resident" in found["GPU utilization"].hint
    assert found["GPU memory"].value.text == "11.0 GiB of 141 GiB"
    assert document.facts[0].value.text == "2 \u00d7 NVIDIA H200, 141 GiB each"


def test_the_reason_why_an_axis_collapsed_is_a_note() -> None:
    notes = [note.text for note in the(runs.typical(), VerdictBlock).notes]

    assert notes == ["pin_memory: there is no accelerator, so that pinning memory does nothing"]


def test_a_note_that_was_given_already_is_not_repeated() -> None:
    run = runs.typical()
    said = replace(run, notes=(f"pin_memory lost values: {run.plan.collapsed['pin_memory']}",))

    assert len(the(said, VerdictBlock).notes) == 1


def test_recommendations_are_parted_by_what_came_of_them() -> None:
    document = build_document(runs.typical())

    assert [card.badge for card in cards(document)] == ["measured", "predicted", "heuristic"]
    assert [aside.value.text for aside in folded(document, "Passed")] == ["the first batch takes 2% of an epoch"]
    assert [aside.value.text for aside in folded(document, "Undecided or not checked")] == [runs.NO_ACCELERATOR]


def test_without_a_cause_there_is_no_advice_and_it_is_said_why() -> None:
    run = replace(runs.typical(), recommendations=())
    for bound, said in (("unknown", "the cause of the data wait is unknown"), ("compute", "the loader keeps up")):
        changed = replace(run, verdict=replace(run.verdict, bound=bound))  # type: ignore[arg-type]
        assert said in str(the(changed, Cards).empty)


def test_a_card_names_only_what_changes_and_links_its_trials_to_their_rows() -> None:
    document = build_document(runs.typical())
    card = cards(document)[0]

    assert [(fact.label, fact.value.text) for fact in card.change] == [
        ("batch_size", "32 \u2192 128"),
        ("num_workers", "0 \u2192 2"),
    ]
    assert {link.anchor for link in card.trials} <= {row.anchor for row in trials(document).rows}
    assert (card.badge, card.outcome) == ("measured", "3.9\u00d7 vs baseline (3.7\u20134.1\u00d7)")


def test_one_round_is_said_wherever_an_interval_would_stand() -> None:
    document = build_document(runs.one_round())

    scaling = drawn(document, "scaling")
    assert figures(document)[0].value.detail == "n = 1"
    assert "n = 1" in scaling.caption
    assert not [curve for curve in scaling.traces if "error_y" in curve]


def test_when_all_trials_failed_causes_are_grouped_and_nothing_is_drawn() -> None:
    document = build_document(runs.all_failed())

    assert [(group.kind.text, group.count) for group in failures(document)] == [
        ("shared memory full", "7 trials"),
        ("worker killed", "1 trial"),
    ]
    assert not {"sweep", "scaling", "timeline", "key-figures"} & set(ids(document))
    assert ranking(document) is None
    assert (document.state.tone, document.state.label) == ("bad", "failed: none of 8 trials measured")
    assert failures(document)[0].last_words.text.startswith("RuntimeError: unable to allocate shared memory(shm)")
    assert failures(document)[0].log
    assert failures(document)[0].log.text == "logs/r1-c06.log"


def test_the_target_of_an_emulated_consumer_is_a_level_of_the_scaling_chart() -> None:
    layout = drawn(runs.typical(), "scaling").layout

    assert layout["annotations"][0]["text"] == "target 1,000"
    assert layout["shapes"][0]["y0"] == layout["shapes"][0]["y1"] == 1000.0


def test_the_timeline_begins_with_a_trial_of_the_best_configuration() -> None:
    run = runs.typical()
    part = the(run, Timeline, runs.timeline(run))

    assert part.trials[0].label.endswith("(best)")
    assert part.trials[1].label.endswith("(baseline)")
    assert len(part.trials) == 8


def test_a_long_timeline_is_thinned_without_losing_its_peaks_and_says_so() -> None:
    run = runs.one_trial()
    name = run.trials[0].id
    points = [TimelinePoint(name, i / 100, "data_wait_s", 0.5 if i == 7777 else 0.001) for i in range(20_000)]
    part = the(run, Timeline, points)

    values = part.figures[0]["data"][0]["y"]
    assert len(values) <= timeline.MOST_POINTS
    assert max(values) == 500
    assert "20,000 readings" in part.trials[0].note


def test_readings_that_are_no_numbers_or_no_known_metric_are_left_out() -> None:
    run = runs.one_trial()
    name = run.trials[0].id
    points = [TimelinePoint(name, 0, "data_wait_s", float("nan")), TimelinePoint(name, 0, "mood", 1.0)]

    assert build_document(run, points).find(Timeline) is None


def test_thinning_keeps_the_order_of_time() -> None:
    seconds, values = timeline_panels.min_max((np.arange(1000.0), np.arange(1000.0) % 17), 100)

    assert len(seconds) == len(values) <= 100
    assert seconds.tolist() == sorted(seconds)


def test_the_downloads_hold_the_whole_run() -> None:
    run = runs.typical()
    as_json, as_csv = downloads(build_document(run))

    assert json.loads(as_json.content)["best"]["config"] == run.best.config  # type: ignore[union-attr]
    rows = list(csv.DictReader(io.StringIO(as_csv.content)))
    assert len(rows) == 24
    assert float(rows[0]["samples_per_s"]) == run.trials[0].samples_per_s


def test_the_csv_has_the_axes_as_the_suite_and_the_export_have_them(tmp_path: Path) -> None:
    configs: list[Config] = [{"round": 1, "pin_memory": True, "offset": -1}, {"round": 2, "pin_memory": None}]
    run = runs.one_trial()
    trials = tuple(replace(run.trials[0], id=f"t{n}", round=9, config=config) for n, config in enumerate(configs))
    axes: dict[str, list[Scalar]] = {"round": [1, 2], "pin_memory": [True, None], "offset": [-1]}
    run = replace(run, trials=trials, plan=replace(run.plan, axes=axes), configurations=())
    [page] = [file.content for file in downloads(build_document(run)) if file.name == "trials.csv"]
    EXPORTERS["csv"].write(Run(run), str(tmp_path / "trials.csv"))
    for rows in (csv.DictReader(io.StringIO(page)), csv.DictReader((tmp_path / "trials.csv").open())):
        shown = [[row[name] for name in ("round", "axis_round", "pin_memory", "offset")] for row in rows]
        assert shown == [["9", "1", "true", "-1"], ["9", "2", "null", ""]]


def test_the_run_json_of_a_page_does_not_hold_the_folder_of_the_images() -> None:
    run = runs.typical()
    run = replace(run, dataset=replace(run.dataset, root="/home/me/secret"))
    [as_json, _] = downloads(build_document(run))
    assert "/home/me" not in as_json.content
    assert json.loads(as_json.content)["dataset"]["not_measured"]["root"] == "left out of the report"


def test_a_page_too_long_for_run_json_counts_every_trial_of_it() -> None:
    run = runs.typical()
    sweep = tuple(replace(run.trials[i % 24], id=f"t{i}") for i in range(300))
    twins = tuple(replace(trial, id=f"{trial.id}-twin", role="twin") for trial in sweep[:3])
    found = the(replace(run, trials=(*sweep, *twins)), Downloads)

    assert found.note == "run.json, with all 303 trials, is in the folder of this report."


def test_a_text_does_not_become_a_formula_in_a_spreadsheet() -> None:
    run = runs.one_trial()
    trial = replace(run.trials[0], id="=HYPERLINK()", shm_peak_bytes=None)
    rows = list(csv.DictReader(io.StringIO(downloads(build_document(replace(run, trials=(trial,))))[1].content)))

    assert rows[0]["trial"] == "'=HYPERLINK()"
    assert rows[0]["shm_peak_bytes"] == ""


def test_numbers_that_json_does_not_know_become_null() -> None:
    run = runs.typical()
    odd = replace(run, suite={"x": [float("nan")], "y": float("inf")})

    assert json.loads(downloads(build_document(odd))[0].content)["suite"] == {"x": [None], "y": None}


@pytest.mark.parametrize("make", [runs.typical, runs.gpu_run, runs.all_failed, runs.one_trial, hostile])
def test_a_document_of_any_run_can_be_built_without_readings(make: object) -> None:
    assert callable(make)
    run = make()
    assert isinstance(run, RunRecord)
    assert build_document(run).find(Timeline) is None


def test_an_interval_of_no_width_is_written_once_per_bound() -> None:
    run = runs.one_trial()
    only = replace(run.configurations[0], samples_per_s=Interval(100, 100, 100))

    assert figures(build_document(replace(run, configurations=(only,))))[0].value.text == "100 (100\u2013100)"


def test_an_interrupted_run_says_what_to_type_to_go_on() -> None:
    hint = build_document(replace(runs.interrupted(), suite_file="suites/images.yaml")).state.hint

    assert hint
    assert hint.endswith("Resume: loaderbench run suites/images.yaml --resume FOLDER_OF_THIS_REPORT")


def test_an_interrupted_run_without_a_measurement_failed_and_says_how_far_it_came() -> None:
    run = runs.all_failed()
    state = build_document(replace(run, complete=False, trials=run.trials[:6])).state

    assert (state.label, state.hint) == ("failed: none of 6 trials measured", "6 of 24 trials ran.")


@pytest.mark.parametrize("complete", [True, False])
def test_a_run_without_any_trial_is_partial(complete: bool) -> None:
    run = replace(runs.all_failed(), trials=(), configurations=(), complete=complete)

    assert build_document(run).state.label == "partial: no trial was run"


def widened(*highs: float) -> RunRecord:
    run = runs.typical()

    def wide(found: Configuration, high: float) -> Configuration:
        assert found.samples_per_s
        return replace(found, samples_per_s=Interval(found.samples_per_s.est, 10, high))

    first = tuple(wide(c, high) for c, high in zip(run.configurations, highs, strict=False))
    return replace(run, configurations=(*first, *run.configurations[len(highs) :]))


@pytest.mark.parametrize(
    ("highs", "top", "said"),
    [
        ((), 1080, ""),
        ((1200,), 1296, ""),
        ((4600,), 1600, "1 interval exceeds the chart; see the table."),
        ((4600, 1700, 1500), 1600, "2 intervals exceed the chart; see the table."),
    ],
)
def test_a_very_wide_interval_does_not_flatten_the_scaling_chart(
    highs: tuple[float, ...], top: float, said: str
) -> None:
    scaling = drawn(widened(*highs), "scaling")

    assert scaling.layout["yaxis"]["range"] == [0, pytest.approx(top)]
    assert ("the chart; see the table" in scaling.caption) == bool(said)
    assert scaling.caption.endswith(said)


def test_without_a_level_the_axis_of_the_scaling_chart_is_limited_too() -> None:
    scaling = drawn(replace(widened(4600), ceiling=None), "scaling")

    highest = max(y for curve in scaling.traces for y in curve["y"])
    assert scaling.layout["yaxis"]["range"] == [0, pytest.approx(1.6 * highest)]


def test_what_stands_in_the_first_panel_already_says_so() -> None:
    run = runs.typical()
    zero, two = run.configurations[0], run.configurations[2]
    configurations = (
        replace(zero, config={"batch_size": 32, "num_workers": 0, "prefetch_factor": None}),
        *(replace(two, config={"batch_size": 32, "num_workers": 2, "prefetch_factor": p}) for p in (2, 4)),
        replace(zero, config={"batch_size": 64, "num_workers": 0, "prefetch_factor": None}),
    )
    plan = replace(
        run.plan,
        axes={"batch_size": [32, 64], "num_workers": [0, 2], "prefetch_factor": [2, 4]},
        collapsed={"prefetch_factor": "no workers"},
    )
    sweep = heat_map(build_document(replace(run, configurations=configurations, plan=plan, best=None)))

    assert sweep
    repeated = [
        [["same measurement" in cell.title for cell in row.cells] for row in facet.rows] for facet in sweep.facets
    ]
    assert repeated == [[[False, False]] * 2, [[True, False]] * 2]
    assert sweep.facets[1].rows[0].cells[0].title.endswith("; same measurement as in the first panel")


def test_the_environment_names_loaderbench_once() -> None:
    run = runs.typical()
    versions = {**run.environment.versions, "loaderbench": "0.0.9"}
    found = facts(build_document(replace(run, environment=replace(run.environment, versions=versions))), "about")

    assert [fact.value.text for fact in found if fact.label == "loaderbench"] == ["0.1.0"]


def test_the_ceiling_is_explained_for_a_real_and_for_an_emulated_consumer() -> None:
    meaning = next(
        fact.value.text for fact in facts(build_document(runs.typical()), "about") if fact.label == "ceiling"
    )

    assert "batches replayed" in meaning
    assert "target" in meaning


def test_a_loader_without_axes_has_a_name_in_every_table() -> None:
    run = runs.one_trial()
    assert run.best
    bare = replace(
        run,
        plan=replace(run.plan, axes={}),
        trials=tuple(replace(t, config={}) for t in run.trials),
        configurations=tuple(replace(c, config={}) for c in run.configurations),
        best=replace(run.best, config={}),
    )
    document = build_document(bare)

    unnamed = ranking(document)
    assert unnamed
    assert unnamed.rows[0].cells[0].text == "unmodified config"
    assert trials(document).rows[0].cells[1].text == "unmodified config"
    named = ranking(build_document(run))
    assert named
    assert named.rows[0].cells[0].text.startswith("batch_size=32 ")


def test_epoch_ends_have_a_column_only_where_there_were_any() -> None:
    run = runs.typical()
    none = replace(run, trials=tuple(replace(t, epoch_ends=0) for t in run.trials))
    some = replace(none, trials=(replace(none.trials[0], epoch_ends=3), *none.trials[1:]))
    columns = [column.label for column in trials(build_document(some)).columns]

    assert "Epoch ends" not in [column.label for column in trials(build_document(run)).columns]
    assert "Epoch ends" not in [column.label for column in trials(build_document(none)).columns]
    place = columns.index("Epoch ends")
    assert [row.cells[place].text for row in trials(build_document(some)).rows[:2]] == ["3", "0"]


def test_a_trial_whose_loader_ran_dry_says_so_and_the_downloads_do_too() -> None:
    run = runs.one_trial()
    document = build_document(
        replace(run, trials=(replace(run.trials[0], ended_early=True, epoch_ends=1, samples_per_epoch=512),))
    )
    place = [column.label for column in trials(document).columns].index("Status")
    row = next(csv.DictReader(io.StringIO(downloads(document)[1].content)))

    assert trials(document).rows[0].cells[place].text == "completed, stopped early"
    assert (row["epoch_ends"], row["ended_early"], row["samples_per_epoch"]) == ("1", "True", "512")
