"""Each remedy fires on its own symptom and is silent otherwise; what is printed as measured was measured."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sweeps import AXES, TODAY, answers, findings

import loaderbench.remedies as catalog
from loaderbench.records import Config, Recommendation
from loaderbench.remedies import REMEDIES, recommend


def test_the_registry_holds_each_remedy_under_its_file_s_name() -> None:
    folder = Path(catalog.__file__).parent
    shared = {
        "__init__",
        "base",
        "by_cause",
        "estimate",
        "pixels",
        "program",
        "verified",
        "workers",
        "pinning",
        "own_line",
        "target_call",
        "sizes",
        "findings",
        "room",
        "streams",
    }
    shared |= {"wording", "short_epochs"}
    assert {path.stem for path in folder.glob("*.py")} - shared == {remedy.id for remedy in REMEDIES}
    for remedy in REMEDIES:
        module = importlib.import_module(f"loaderbench.remedies.{remedy.id}")
        assert module.REMEDY is remedy
        assert module.__doc__


FIRING: list[tuple[str, Config, dict[tuple[str, Any], float], Config]] = [
    ("main_process_loading", TODAY, {("num_workers", 2): 1.5, ("num_workers", 8): 1.2}, {"num_workers": 2}),
    ("more_workers", {**TODAY, "num_workers": 2}, {("num_workers", 8): 1.5}, {"num_workers": 8}),
    ("fewer_workers", {**TODAY, "num_workers": 8}, {("num_workers", 8): 0.5}, {"num_workers": 0}),
    ("larger_batch", TODAY, {("batch_size", 32): 1.3}, {"batch_size": 32}),
    ("pin_memory", TODAY, {("pin_memory", True): 1.2}, {"pin_memory": True}),
    ("unpin_memory", {**TODAY, "pin_memory": True}, {("pin_memory", True): 0.8}, {"pin_memory": False}),
    (
        "best_combination",
        TODAY,
        {("num_workers", 2): 1.5, ("batch_size", 32): 1.2},
        {"batch_size": 32, "num_workers": 2},
    ),
]


@pytest.mark.parametrize(("remedy", "baseline", "factors", "change"), FIRING, ids=[row[0] for row in FIRING])
def test_a_remedy_fires_on_its_symptom_with_a_measured_gain(
    remedy: str, baseline: Config, factors: dict[tuple[str, Any], float], change: Config
) -> None:
    found = answers(findings(AXES, baseline, factors))[remedy]
    assert (found.status, found.basis, found.change) == ("open", "measured", change)
    assert found.gain is not None
    assert found.gain.lo is not None
    assert found.gain.lo > 1
    assert found.evidence
    assert found.trials
    assert found.snippet is not None
    assert all(f"{axis}={value!r}," in found.snippet for axis, value in change.items())


@pytest.mark.parametrize(("remedy", "baseline"), [(row[0], row[1]) for row in FIRING], ids=[row[0] for row in FIRING])
def test_a_remedy_is_silent_when_nothing_makes_a_difference(remedy: str, baseline: Config) -> None:
    cheapest = {**baseline, "num_workers": 0}
    found = answers(findings(AXES, cheapest, {})).get(remedy)
    assert found is None or found.status != "open"


def test_what_is_open_never_contradicts_itself() -> None:
    for workers, batch, pinned in product([0.5, 1.0, 2.0], repeat=3):
        factors = {("num_workers", 8): workers, ("batch_size", 32): batch, ("pin_memory", True): pinned}
        for now in (0, 2, 8):
            found = recommend(findings(AXES, {**TODAY, "num_workers": now}, factors))
            for axis in AXES:
                values = {rec.change[axis] for rec in found if rec.status == "open" and axis in rec.change}
                assert len(values) <= 1, (axis, values)


def test_fewer_than_three_rounds_recommend_nothing() -> None:
    found = recommend(findings(AXES, TODAY, {("num_workers", 2): 9.0}, rounds=2))
    assert all(rec.status != "open" for rec in found)
    assert any("only 2 rounds" in (rec.reason or "") for rec in found)


def test_cards_stand_before_what_is_fine_and_what_was_not_checked() -> None:
    found: Sequence[Recommendation] = recommend(findings(AXES, TODAY, {("num_workers", 2): 1.5}))
    order = [rec.status for rec in found]
    assert order == sorted(order, key=["open", "already_ok", "not_checked"].index)


def test_a_snippet_runs_and_makes_the_loader_it_shows() -> None:
    torch = pytest.importorskip("torch")
    given = findings(
        {"batch_size": [8, 32], "num_workers": [0, 2], "prefetch_factor": [None, 4]},
        {"batch_size": 8, "num_workers": 0, "prefetch_factor": None},
        {("num_workers", 2): 1.5, ("batch_size", 32): 1.5, ("prefetch_factor", 4): 1.5},
        loader={"shuffle": True, "drop_last": True},
    )
    snippet = answers(given)["best_combination"].snippet
    scope: dict[str, Any] = {"dataset": torch.utils.data.TensorDataset(torch.zeros(64, 2))}
    exec(snippet or "", scope)
    loader = scope["loader"]
    assert (loader.batch_size, loader.num_workers, loader.prefetch_factor, loader.drop_last) == (32, 2, 4, True)
    assert next(iter(loader))[0].shape == (32, 2)
