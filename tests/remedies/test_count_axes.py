"""More or fewer workers are asked for by the argument that the loader has for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planted_causes import CAUSES, diagnosis
from sweeps import findings

from loaderbench.loaders import LOADER_BACKENDS
from loaderbench.records import Recommendation
from loaderbench.remedies import Diagnosis, Findings, candidates_for, recommend
from loaderbench.remedies.wording import costs
from loaderbench.statistics.configurations import summarize

BUSY = CAUSES["more_workers"]


def advice(found: Findings, fix: str) -> Recommendation | None:
    return next((one for one in recommend(found) if one.id == fix and one.status == "open"), None)


def diagnosed(fixed: dict[str, Any], config: dict[str, Any]) -> Diagnosis:
    return replace(diagnosis(BUSY), loader=fixed, config={"batch_size": 8, **config}, profile=False)


@pytest.mark.parametrize(
    ("arguments", "change"),
    [
        ({"loader": "torch", "num_workers": 1}, {"num_workers": 6}),
        ({"loader": "threads", "threads": 1}, {"threads": 6}),
        ({"loader": "dali", "threads": 1}, {"threads": 6}),
        ({"loader": "grain", "threads": 1, "num_workers": 0}, {"threads": 6}),
        ({"loader": "grain", "threads": 2, "num_workers": 1}, {"num_workers": 3}),
        ({"loader": "webdataset", "num_workers": 1}, {"num_workers": 6}),
    ],
)
def test_each_loader_has_one_argument_for_six_that_load_at_once(arguments: dict[str, Any], change: object) -> None:
    backend = LOADER_BACKENDS[arguments["loader"]]
    assert backend.loading_in(6, arguments) == change
    assert backend.prefetch({**arguments, **backend.loading_in(6, arguments)}).workers == 6


@pytest.mark.parametrize(
    ("found", "axis"),
    [
        (diagnosed({}, {"num_workers": 1}), "num_workers"),
        (diagnosed({}, {"loader": "threads", "threads": 1, "num_workers": None}), "threads"),
        (diagnosed({"loader": "threads"}, {"threads": 1}), "threads"),
    ],
)
def test_more_workers_are_tried_by_the_axis_of_the_loader(found: Diagnosis, axis: str) -> None:
    (tried,) = (one for one in candidates_for(found) if one.id == "more_workers")
    assert [*tried.change] == [axis]


def test_no_fix_is_tried_whose_argument_the_loader_does_not_have() -> None:
    crowded = diagnosis(CAUSES["library_threads"])
    known = {"profile": False, "config": {"batch_size": 8, "loader": "threads", "threads": 8}}
    assert "library_threads" in {one.id for one in candidates_for(replace(crowded, profile=False))}
    assert "library_threads" not in {one.id for one in candidates_for(replace(crowded, **known))}  # type: ignore[arg-type]


def test_more_threads_cost_no_memory_of_processes() -> None:
    faster = {("threads", 4): 2.0}
    found = findings({"threads": [1, 4]}, {"threads": 1}, faster, loader={"loader": "threads"})
    tried = advice(found, "more_workers")
    assert tried is not None
    assert (tried.title, tried.change) == ("Set threads=4", {"threads": 4})
    assert tried.costs[0] == "3 more threads"
    assert "process" not in " ".join(tried.costs)
    assert advice(found, "best_combination") is None


def test_workers_are_counted_from_those_that_the_suite_fixes() -> None:
    before, after = summarize([{"ranks": 2}, {"ranks": 2, "num_workers": 4}], [])
    assert costs(before, after, {"num_workers": 1}) == ("3 more worker processes",)


def test_of_two_axes_the_one_that_was_swept_is_the_one_to_set() -> None:
    axes: dict[str, list[Any]] = {"loader": ["grain"], "num_workers": [0, 4], "threads": [1]}
    found = findings(axes, {"loader": "grain", "num_workers": 0, "threads": 1}, {("num_workers", 4): 2.0})
    tried = advice(found, "main_process_loading")
    assert tried is not None
    assert (tried.title, tried.change) == ("Set num_workers=4", {"num_workers": 4})
