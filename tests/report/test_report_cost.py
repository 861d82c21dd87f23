"""Throughput vs resources: the Pareto line, its resources, and where there is nothing to draw."""

from dataclasses import replace

import run_factory as runs
from blocks import ids, within
from hypothesis import given, strategies as some

from loaderbench.records import RunRecord
from loaderbench.report import style
from loaderbench.report.document import build_document
from loaderbench.report.model import Chart, Json, Table
from loaderbench.report.sections.cost import pareto


def charts(run: RunRecord) -> list[Chart]:
    return within(build_document(run), "cost", Chart)


def trace(chart: Chart, name: str) -> Json:
    return next(found for found in chart.figures[0]["data"] if found["name"] == name)


LEVELS = some.floats(0, 100, allow_nan=False)


@given(some.lists(some.tuples(LEVELS, LEVELS), min_size=1, max_size=30))
def test_nothing_on_the_line_is_beaten_and_all_else_is(points: list[tuple[float, float]]) -> None:
    taken, given_ = [x for x, _ in points], [y for _, y in points]
    line = pareto(taken, given_)

    def beats(i: int, k: int) -> bool:
        """Whether `i` gives as much for less, or more for as little."""
        return taken[i] <= taken[k] and given_[i] >= given_[k] and (taken[i], given_[i]) != (taken[k], given_[k])

    everyone = range(len(points))
    assert all(not beats(i, k) for k in line for i in everyone)
    kept = {points[k] for k in line}
    assert all(points[k] in kept or any(beats(i, k) for i in line) for k in everyone)


def test_each_resource_that_was_measured_has_a_chart() -> None:
    assert [chart.name for chart in charts(runs.typical())] == ["cost-host-memory", "cost-cores"]


def test_a_resource_that_is_alike_everywhere_has_none() -> None:
    assert "cost-gpu-memory" not in [chart.name for chart in charts(runs.gpu_run())]
    different = replace(
        (run := runs.gpu_run()),
        configurations=tuple(
            replace(c, gpu_memory_used_bytes=(i + 1) * runs.GIB) for i, c in enumerate(run.configurations)
        ),
    )
    assert charts(different)[0].label == "Samples/s vs GPU memory, GiB"


def test_the_best_is_marked_and_the_table_says_in_what_each_is_unbeaten() -> None:
    (table,) = within(build_document(runs.typical()), "cost", Table)

    assert [len(trace(chart, "best")["x"]) for chart in charts(runs.typical())] == [1, 1]
    assert [row.cells[-1].text for row in table.rows if row.mark == "best"] == ["RAM (PSS), CPUs in use"]
    rates = [row.cells[2].sort for row in table.rows]
    assert rates == sorted(rates, reverse=True)


def test_one_trial_and_none_have_no_costs_to_compare() -> None:
    assert "cost" not in ids(build_document(runs.one_trial()))
    assert "cost" not in ids(build_document(runs.all_failed()))


def test_what_takes_nothing_is_beaten_by_nothing() -> None:
    run = runs.gpu_run()
    used = tuple(replace(c, gpu_memory_used_bytes=i * runs.GIB) for i, c in enumerate(run.configurations))
    chart = charts(replace(run, configurations=used))[0]

    assert trace(chart, "Pareto frontier")["x"][0] == 0


def test_each_trace_keeps_its_color_where_another_is_left_out() -> None:
    run = runs.typical()
    kept = tuple(c for c in run.configurations if c.rank in (1, 8))
    for drawn, colors in ((run, [style.MUTED["light"], *style.LINES["light"][:2]]), (kept, style.LINES["light"][:2])):
        shown = replace(run, configurations=drawn) if isinstance(drawn, tuple) else drawn
        figure = charts(shown)[0].figures[0]
        names = [found["name"] for found in figure["data"]]
        assert names == ["dominated", "Pareto frontier", "best"][-len(colors) :]
        assert figure["layout"]["light"]["colorway"] == colors
