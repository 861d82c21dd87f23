"""The scaling chart: which configurations its lines hold, and the target that they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
import run_factory as runs
from blocks import drawn, within

from loaderbench.records import AssumedDemand, Config, RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.model import Table

NO_WORKERS = "no effect with num_workers=0: measured once"


def swept(configs: Sequence[Config], *, best: int, collapsed: Sequence[str] = ()) -> RunRecord:
    """A sweep of these configurations, of which the later ones are faster."""
    run = runs.typical()
    assert run.best
    found = tuple(
        replace(run.configurations[0], config=config, samples_per_s=runs.spread(100.0 + i), rank=len(configs) - i)
        for i, config in enumerate(configs)
    )
    axes = {axis: list(dict.fromkeys(config[axis] for config in configs)) for axis in configs[0]}
    plan = replace(run.plan, axes=axes, configs=tuple(configs), collapsed=dict.fromkeys(collapsed, NO_WORKERS))
    return replace(run, configurations=found, plan=plan, best=replace(run.best, config=configs[best], ties=()))


def with_prefetch(*sizes: int) -> list[Config]:
    """Two prefetch factors of two numbers of workers, and no workers, for each batch size."""
    return [
        config
        for size in sizes
        for config in (
            {"batch_size": size, "num_workers": 0, "prefetch_factor": None},
            *(
                {"batch_size": size, "num_workers": workers, "prefetch_factor": factor}
                for workers, factor in product((2, 4), (2, 8))
            ),
        )
    ]


def test_no_workers_are_a_place_of_every_line_of_a_chart_with_a_fixed_argument_of_workers() -> None:
    run = swept(with_prefetch(32, 64), best=-1, collapsed=["prefetch_factor"])
    scaling = drawn(run, "scaling")
    assert [(trace["name"], trace["x"]) for trace in scaling.traces] == [
        ("batch_size 32", [0.0, 2.0, 4.0]),
        ("batch_size 64", [0.0, 2.0, 4.0]),
    ]
    assert "Fixed as in the best config: prefetch_factor=8." in scaling.caption


def test_a_line_for_each_value_of_an_argument_of_workers_begins_without_workers() -> None:
    run = swept(with_prefetch(32), best=-1, collapsed=["prefetch_factor"])
    assert [(trace["name"], trace["x"]) for trace in drawn(run, "scaling").traces] == [
        ("prefetch_factor 2", [0.0, 2.0, 4.0]),
        ("prefetch_factor 8", [0.0, 2.0, 4.0]),
    ]
    (table,) = within(build_document(run), "scaling", Table)
    assert len(table.rows) == 5, "each configuration once"


@pytest.mark.parametrize("best", [0, 5])
def test_where_no_workers_are_best_their_arguments_are_those_of_the_fastest_others(best: int) -> None:
    run = swept(with_prefetch(32, 64), best=best, collapsed=["prefetch_factor"])
    scaling = drawn(run, "scaling")
    assert [trace["x"] for trace in scaling.traces] == [[0.0, 2.0, 4.0]] * 2
    assert "Fixed: prefetch_factor=8." in scaling.caption


def test_an_argument_that_has_a_value_without_workers_too_drops_none() -> None:
    configs: list[Config] = [
        {"batch_size": size, "num_workers": workers, "persistent_workers": kept}
        for size, (workers, kept) in product((32, 64), ((0, False), (2, False), (2, True)))
    ]
    run = swept(configs, best=-1, collapsed=["persistent_workers"])
    assert [trace["x"] for trace in drawn(run, "scaling").traces] == [[0.0, 2.0]] * 2


def test_the_target_is_drawn_by_number_of_ranks() -> None:
    run = swept([{"ranks": ranks, "num_workers": 1} for ranks in (1, 2, 4)], best=-1)
    scaling = drawn(run, "scaling")
    level = scaling.traces[-1]
    assert (level["name"], level["x"], level["y"]) == ("target", [1.0, 2.0, 4.0], [1000.0, 2000.0, 4000.0])
    assert "shapes" not in scaling.layout
    assert scaling.layout["yaxis"]["range"][1] > 4000
    (table,) = within(build_document(run), "scaling", Table)
    assert [row.cells[-1].text for row in table.rows] == ["1,000", "2,000", "4,000"]


def test_targets_that_differ_between_lines_are_in_the_table_and_not_drawn() -> None:
    demand = AssumedDemand(samples_per_s=1_000.0, origin="calibration", fixed_s=0.016, s_per_sample=0.0005)
    run = replace(runs.typical(), assumed_demand=demand)
    scaling = drawn(run, "scaling")
    assert not {"shapes", "annotations"} & scaling.layout.keys()
    assert {trace["name"] for trace in scaling.traces} == {"batch_size 32", "batch_size 128"}
    assert "Targets differ between lines; see the table." in scaling.caption
    (table,) = within(build_document(run), "scaling", Table)
    assert {(row.cells[0].text, row.cells[-1].text) for row in table.rows} == {("32", "1,000"), ("128", "1,600")}


def test_a_measured_ceiling_is_that_of_one_number_of_ranks() -> None:
    run = replace(swept([{"ranks": ranks, "num_workers": 1} for ranks in (1, 2)], best=-1), consumer="model")
    scaling = drawn(run, "scaling")
    assert "shapes" not in scaling.layout
    assert "Dashed" not in scaling.caption
    assert "Dashed: ceiling (" in drawn(replace(runs.typical(), consumer="model"), "scaling").caption
