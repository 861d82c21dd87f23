"""A run is one list of trials; what is asked of it goes by their roles and its suite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from machine import TWO_CPUS

from loaderbench.records import (
    Baseline,
    Conclusions,
    DatasetSummary,
    Measured,
    Noise,
    PlanSummary,
    Role,
    RunRecord,
    Side,
    Trial,
    Verdict,
)

MEASURED = Measured(
    name="test",
    suite={},
    environment=TWO_CPUS,
    dataset=DatasetSummary("some images"),
    plan=PlanSummary({}, 1, 3, 3, (), {}, ""),
    started_at="then",
    finished_at="now",
    complete=True,
    consumer="model",
    trials=tuple(
        Trial(id=role, role=role, config={}, round=1, status="completed") for role in get_args(Role) for _ in range(2)
    ),
    notes=("a note",),
)
CONCLUDED = Conclusions(
    configurations=(),
    best=None,
    baseline=Baseline(config={"a": 1}, samples_per_s=None, data_wait_share=None, why_this_one=""),
    ceiling=None,
    verdict=Verdict(bound="unknown", stage=None, limit=None, headline="", evidence=(), confidence="low"),
    recommendations=(),
    overhead=None,
    noise=Noise(None, None),
    warnings=("a doubt",),
)
RUN = RunRecord.of(MEASURED, CONCLUDED)


def ids(trials: tuple[Trial, ...]) -> list[str]:
    return [trial.id for trial in trials]


def test_trials_are_found_by_their_role_in_their_order() -> None:
    assert ids(RUN.sweep) == ["sweep", "sweep", "profile", "profile"]
    assert ids(RUN.twins) == ["twin", "twin"]
    assert ids(RUN.isolation_trials) == ["isolation", "isolation"]
    assert ids(RUN.remedy_trials) == ["remedy", "remedy"]
    assert ids(RUN.ab_trials) == ["ab", "ab"]


def test_configurations_of_two_versions_are_those_of_the_later() -> None:
    sides: tuple[Side, ...] = ("before", "after")
    trials = tuple(Trial(id=side, role="ab", config={}, round=1, status="completed", side=side) for side in sides)
    assert ids(replace(RUN, trials=trials).sweep) == ["after"]
    assert ids(replace(RUN, trials=trials).ab_trials) == ["before", "after"]


@pytest.mark.parametrize(
    ("suite", "loader"),
    [({}, {}), ({"loader": None}, {}), ({"loader": {"drop_last": True}}, {"drop_last": True})],
)
def test_a_suite_that_fixes_no_argument_of_the_loader_fixes_none(suite: dict[str, Any], loader: dict[str, Any]) -> None:
    assert replace(RUN, suite=suite).loader == loader


def test_what_was_measured_and_what_was_concluded_make_up_the_run() -> None:
    assert (RUN.name, RUN.notes, RUN.consumer, RUN.complete) == ("test", ("a note",), "model", True)
    assert (RUN.warnings, RUN.baseline.config) == (("a doubt",), {"a": 1})
    assert RUN.trials == MEASURED.trials
