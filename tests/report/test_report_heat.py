"""The heat map: every configuration in its place, with its state."""

from dataclasses import replace

import run_factory as runs
from blocks import chart, drawn, heat_map, ranking, the, within
from run_large import large

from loaderbench.records import Config, RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.model import Document, Paragraph
from loaderbench.report.sections.heat_map import HeatCell, HeatMap


def cells(document: Document) -> list[HeatCell]:
    return [cell for facet in the(document, HeatMap).facets for row in facet.rows for cell in row.cells]


def test_the_heat_map_has_workers_across_and_batch_sizes_down() -> None:
    sweep = the(runs.typical(), HeatMap)

    assert sweep.y_axis
    assert (sweep.x_axis.text, sweep.y_axis.text) == ("num_workers", "batch_size")
    assert [label.text for label in sweep.x_labels] == ["0", "1", "2", "3"]


def test_the_best_is_starred_and_its_ties_are_outlined() -> None:
    found = cells(build_document(runs.typical()))

    assert [cell.readings[0].text for cell in found if cell.best] == ["844"]
    assert [cell.readings[0].text for cell in found if cell.tied] == ["796"]


def test_only_metrics_with_data_can_be_chosen() -> None:
    without, with_gpu = (heat_map(build_document(run)) for run in (runs.typical(), runs.gpu_run()))

    assert without
    assert [metric.id for metric in without.metrics] == ["samples_per_s", "data_wait_share", "cpu_percent_of_allotted"]
    assert with_gpu
    assert len(with_gpu.metrics) == 5


def test_each_further_axis_gives_a_facet_for_each_of_its_values() -> None:
    sweep = the(runs.gpu_run(), HeatMap)

    assert [facet.title.text for facet in sweep.facets if facet.title] == ["pin_memory=false", "pin_memory=true"]


def test_a_failed_configuration_is_a_state_of_its_cell_and_has_no_color() -> None:
    found = cells(build_document(runs.partly_failed()))
    failed = [cell for cell in found if cell.state == "failed"]

    assert [(cell.readings[0].text, cell.readings[0].place) for cell in failed] == [("failed", None)]
    assert "worker killed in 3 of 3 trials" in failed[0].title
    assert [cell.remark for cell in found if cell.remark] == ["1 failed"]


def test_what_an_interrupted_run_did_not_reach_is_not_run() -> None:
    document = build_document(runs.interrupted())

    assert [cell.state for cell in cells(document)].count("not_run") == 3
    assert document.state.label == "partial: 5 of 24 trials measured"
    assert "not run" in (document.state.hint or "")


def test_a_sweep_of_one_axis_is_a_table_of_one_row() -> None:
    run = runs.typical()
    kept = tuple(c for c in run.configurations if c.config["num_workers"] == 2)
    plan = replace(run.plan, axes={"batch_size": [32, 128], "num_workers": [2], "pin_memory": [False]})
    document = build_document(replace(run, configurations=kept, plan=plan))

    assert (the(document, HeatMap).x_axis.text, the(document, HeatMap).y_axis) == ("batch_size", None)
    assert drawn(document, "scaling").layout["xaxis"]["title"]["text"] == "batch_size"


def test_axes_of_a_target_span_the_heat_map_where_workers_and_batch_sizes_do_not() -> None:
    run = runs.typical()

    def renamed(config: dict[str, object]) -> dict[str, object]:
        return {"codec": f"c{config['num_workers']}", "side": config["batch_size"]}

    configurations = tuple(replace(c, config=renamed(c.config)) for c in run.configurations)  # type: ignore[arg-type]
    plan = replace(run.plan, axes={"codec": ["c0", "c1", "c2", "c3"], "side": [32, 128]})
    document = build_document(replace(run, configurations=configurations, plan=plan, best=None))

    sweep = the(document, HeatMap)
    assert sweep.y_axis
    assert (sweep.x_axis.text, sweep.y_axis.text) == ("codec", "side")
    assert "ticktext" in drawn(document, "scaling").layout["xaxis"]


def test_true_and_one_are_two_values_of_an_axis() -> None:
    run = runs.typical()
    first, second = run.configurations[:2]
    configurations = (replace(first, config={"flag": True}), replace(second, config={"flag": 1}))
    plan = replace(run.plan, axes={"flag": [True, 1]})
    found = cells(build_document(replace(run, configurations=configurations, plan=plan, best=None)))

    assert [cell.readings[0].text for cell in found] == ["212", "411"]


def test_without_workers_a_refused_axis_does_not_leave_holes() -> None:
    run = runs.typical()
    zero, two = run.configurations[0], run.configurations[2]
    configurations = (
        replace(zero, config={"num_workers": 0, "prefetch_factor": None}),
        replace(two, config={"num_workers": 2, "prefetch_factor": 2}),
        replace(two, config={"num_workers": 2, "prefetch_factor": 4}),
    )
    plan = replace(
        run.plan, axes={"num_workers": [0, 2], "prefetch_factor": [2, 4]}, collapsed={"prefetch_factor": "no workers"}
    )
    document = build_document(replace(run, configurations=configurations, plan=plan, best=None))

    assert [row.cells[0].state for row in the(document, HeatMap).facets[0].rows if row.label.text != "\u2013"] == [
        "measured"
    ] * 2


def test_an_axis_of_another_loader_has_a_dash_and_no_null() -> None:
    run = runs.typical()
    configs: list[Config] = [
        {"loader": "torch", "num_workers": 2, "threads": None},
        {"loader": "dali", "num_workers": None, "threads": 4},
    ]
    found = tuple(replace(c, config=own) for c, own in zip(run.configurations[1:], configs, strict=False))
    plan = replace(run.plan, axes={"loader": ["torch", "dali"], "num_workers": [2], "threads": [4]})
    document = build_document(replace(run, configurations=found, plan=plan, best=None))

    rows = [[cell.text for cell in row.cells[:3]] for row in ranking(document).rows]
    assert sorted(rows) == [["dali", "\u2013", "4"], ["torch", "2", "\u2013"]]
    said = [row.label.text for row in the(document, HeatMap).facets[0].rows]
    assert "null" not in (*said, *(label.text for label in the(document, HeatMap).x_labels))


def test_one_configuration_has_no_sweep_but_a_way_to_one() -> None:
    document = build_document(runs.one_trial())

    assert heat_map(document) is None
    assert chart(document, "scaling") is None
    assert "-P num_workers=0,2,4" in within(document, "sweep", Paragraph)[0].text.text
    assert "sweep" not in [link.anchor for link in document.links]


def test_a_missing_estimate_is_not_drawn_as_zero() -> None:
    run = runs.typical()
    configurations = tuple(replace(c, data_wait_share=None) for c in run.configurations[:1]) + run.configurations[1:]
    found = cells(build_document(replace(run, configurations=configurations)))

    assert found[0].readings[1].text == "not measured"
    assert found[0].readings[1].place is None


def test_without_a_best_neither_ranking_nor_heat_map_shows_a_tie() -> None:
    document = build_document(runs.without_best())

    found = ranking(document)
    assert found
    assert {row.mark for row in found.rows} <= {"", "baseline"}
    assert not [cell for cell in cells(document) if cell.tied or cell.best]
    assert "tied" not in the(document, HeatMap).legend


def test_what_was_measured_without_workers_alone_has_a_panel_too() -> None:
    run = runs.gpu_run()
    kept = [c for c in run.configurations if not c.config["pin_memory"] or c.config["num_workers"] == 0]
    document = build_document(replace(run, configurations=tuple(kept), complete=False))

    assert len([cell for cell in cells(document) if cell.state == "measured"]) == len(kept) == 10


def test_null_is_a_place_of_the_scaling_chart_like_any_other() -> None:
    run = runs.typical()
    configurations = tuple(
        replace(c, config={"presize": presize, "num_workers": 2})
        for c, presize in zip(run.configurations, (None, 256), strict=False)
    )
    plan = replace(run.plan, axes={"presize": [None, 256], "num_workers": [2]})
    scaling = drawn(build_document(replace(run, configurations=configurations, plan=plan, best=None)), "scaling")

    axis = scaling.layout["xaxis"]
    assert sorted(axis["ticktext"]) == ["256", "null"]
    assert sorted(scaling.traces[0]["x"]) == axis["tickvals"] == [0.0, 1.0]


def test_labels_that_begin_alike_keep_places_of_their_own() -> None:
    run = runs.typical()
    names = [f"my_package.transforms_of_mine:make_{i}" for i in range(3)]
    configurations = tuple(
        replace(c, config={"transform": name}) for c, name in zip(run.configurations, names, strict=False)
    )
    plan = replace(run.plan, axes={"transform": names})
    scaling = drawn(build_document(replace(run, configurations=configurations, plan=plan, best=None)), "scaling")

    assert sorted(scaling.traces[0]["x"]) == [0.0, 1.0, 2.0]


def test_a_map_of_more_than_can_be_chosen_says_so() -> None:
    def caption(run: RunRecord) -> str:
        return within(build_document(run), "sweep", Paragraph)[0].text.text

    assert "The 150 best of 666 can be selected; the others link to their trials." in caption(large())
    assert "chosen" not in caption(runs.typical())


def test_a_cell_without_workers_shows_no_other_loader_and_no_threads() -> None:
    run = runs.typical()
    configs: list[Config] = [
        {"loader": "torch", "num_workers": 0, "threads": None},
        {"loader": "torch", "num_workers": 2, "threads": None},
        {"loader": "dali", "num_workers": None, "threads": 1},
        {"loader": "dali", "num_workers": None, "threads": 4},
    ]
    found = tuple(replace(c, config=own) for c, own in zip(run.configurations, configs, strict=False))
    plan = replace(
        run.plan,
        axes={"loader": ["torch", "dali"], "num_workers": [0, 2], "threads": [1, 4]},
        collapsed=dict.fromkeys(("num_workers", "threads"), "no effect with another loader: measured once"),
    )
    assert run.best
    best = replace(run.best, config=configs[2])
    shown = [
        cell
        for cell in cells(build_document(replace(run, configurations=found, plan=plan, best=best)))
        if cell.state == "measured"
    ]
    assert len({cell.title for cell in shown}) == len(shown) == 4
    assert len([cell for cell in shown if cell.best]) == 1
