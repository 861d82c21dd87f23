"""What speed costs: the Pareto line, its resources, and where there is nothing to draw."""

from dataclasses import replace

import run_factory as runs
from hypothesis import given, strategies as some

from loaderbench.report.cost import pareto
from loaderbench.report.document import build_document

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
    assert [chart.id for chart in build_document(runs.typical()).cost.charts] == ["host-memory", "cores"]


def test_a_resource_that_is_alike_everywhere_has_none() -> None:
    document = build_document(runs.gpu_run())

    assert "gpu-memory" not in [chart.id for chart in document.cost.charts]
    different = replace(
        (run := runs.gpu_run()),
        configurations=tuple(
            replace(c, gpu_memory_used_bytes=(i + 1) * runs.GIB) for i, c in enumerate(run.configurations)
        ),
    )
    assert build_document(different).cost.charts[0].x_axis == "GPU memory, GiB"


def test_the_best_is_marked_and_the_table_says_in_what_each_is_unbeaten() -> None:
    cost = build_document(runs.typical()).cost

    assert [sum(point.best for point in chart.points) for chart in cost.charts] == [1, 1]
    assert [row.cells[-1].text for row in cost.table.rows if row.mark == "best"] == [
        "Host memory (PSS), CPU cores in use"
    ]
    rates = [row.cells[2].sort for row in cost.table.rows]
    assert rates == sorted(rates, reverse=True)


def test_one_trial_and_none_have_no_costs_to_compare() -> None:
    assert build_document(runs.one_trial()).cost is None
    assert build_document(runs.all_failed()).cost is None


def test_what_takes_nothing_is_beaten_by_nothing() -> None:
    run = runs.gpu_run()
    used = tuple(replace(c, gpu_memory_used_bytes=i * runs.GIB) for i, c in enumerate(run.configurations))
    chart = build_document(replace(run, configurations=used)).cost.charts[0]

    assert chart.points[0].x == 0
    assert chart.points[0].on_line
