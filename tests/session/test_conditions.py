"""The conditions of a run: part of what was measured, and the same to its end."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import suite

from loaderbench.datasets import Inputs
from loaderbench.records import DatasetSummary, Measured
from loaderbench.session import conditions
from loaderbench.session.conditions import Conditions
from loaderbench.session.first_suite import Folder
from loaderbench.session.inputs import RunInputs
from loaderbench.session.isolation import IsolationPlan
from loaderbench.session.listener import Progress
from loaderbench.session.resuming import Earlier
from loaderbench.session.running import SessionResult


@pytest.mark.parametrize("record", [Conditions, IsolationPlan, Progress, Earlier, SessionResult, Folder])
def test_what_a_session_passes_on_never_changes(record: Any) -> None:
    made = object.__new__(record)
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(record)[0].name, None)


def made(gpus: tuple[Any, ...] = (), left_out: int = 0) -> Conditions:
    environment: Any = SimpleNamespace(gpus=gpus)
    summary = DatasetSummary("x", bad_files=left_out, bad_images=("a.jpg: cut",) * left_out)
    known: Any = SimpleNamespace(
        suite=suite(name="mine"),
        file=Path("s.yaml"),
        folder=Path(),
        overrides=[SimpleNamespace(path=("measure", "seed"), value=7), SimpleNamespace(path=("sweep", "x"), value=[1])],
    )
    inputs = RunInputs({(): Inputs((), summary)})
    plan: Any = SimpleNamespace(summary=lambda: "plan")
    return Conditions(known, environment, inputs, plan, "model", 3.5, "then")


def test_the_conditions_of_a_run_are_part_of_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "utc_now", lambda: "now")
    found: Measured = made().measured({"isolation": "why"}, None)
    assert (found.name, found.consumer, found.started_at, found.finished_at) == ("mine", "model", "then", "now")
    assert (found.complete, found.notes, found.trials) == (True, (), ())
    assert (found.left_out, found.cpu_percent_before, found.suite_file) == ({"isolation": "why"}, 3.5, "s.yaml")
    assert found.overrides == {"measure.seed": 7, "sweep.x": [1]}


def test_a_run_that_is_not_complete_says_why_first() -> None:
    found = made(left_out=1).measured({}, "a budget")
    assert (found.complete, found.notes[0]) == (False, "a budget")
    assert "skipped 1 file" in found.notes[1]


def test_trials_have_an_accelerator_where_the_machine_has_one() -> None:
    assert made(gpus=("GPU",)).accelerator is True
    assert made().accelerator is False


@pytest.mark.parametrize(("of_script", "origin"), [(False, "suite"), (True, "script")])
def test_the_target_is_that_of_the_suite_or_of_the_script_that_is_tuned(
    monkeypatch: pytest.MonkeyPatch, of_script: bool, origin: str
) -> None:
    known = suite(consumer={"kind": "emulated", "demand": 300.0})
    monkeypatch.setattr(type(known.dataset), "is_of_script", of_script)
    loaded: Any = SimpleNamespace(suite=known, folder=Path())
    nothing: Any = None
    found = Conditions(loaded, nothing, nothing, nothing, "emulated", None, "then").assumed_demand
    assert found is not None
    assert (found.samples_per_s, found.origin) == (300.0, origin)
