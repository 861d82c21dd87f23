"""Loaders of a sweep, and of fixes, are compared with torch's once each; one that gives other batches is left out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.plan import make_plan
from loaderbench.records import Candidate, Config, Parity
from loaderbench.session.sweep import compare_batches
from loaderbench.session.verifying import RemedyStep
from loaderbench.suite import load_suite


class TrialMeasurer:
    """Compares nothing, and remembers what it was asked."""

    def __init__(self, refused: str = "") -> None:
        self.asked: list[tuple[Config, Config]] = []
        self._refused = refused

    def parity(self, one: Config, other: Config) -> Parity:
        self.asked.append((one, other))
        return Parity(loader=str(one["loader"]), against=str(other.get("loader", "torch")), refused=self._refused)


def plan_of(folder: Path, sweep: str) -> Any:
    (folder / "s.yaml").write_text(f"loader: {{batch_size: 8}}\nsweep: {sweep}\n")
    return make_plan(load_suite(folder / "s.yaml").suite, cpus_allotted=2, accelerator=False)


def test_each_loader_of_a_sweep_is_compared_with_torch_s(tmp_path: Path) -> None:
    measuring: Any = TrialMeasurer()
    sweep = "{loader: [threads, torch, spdl], threads: [1, 2], num_workers: [0, 1]}"
    found = compare_batches(plan_of(tmp_path, sweep), measuring)
    assert [(one.loader, one.against) for one in found] == [("threads", "torch"), ("spdl", "torch")]
    first, _ = measuring.asked[0]
    assert first == {"loader": "threads", "threads": 1, "num_workers": None}


@pytest.mark.parametrize("sweep", ["{num_workers: [0, 1]}", "{loader: [threads], threads: [1, 2]}"])
def test_one_loader_is_compared_with_nothing(sweep: str, tmp_path: Path) -> None:
    measuring: Any = TrialMeasurer()
    assert compare_batches(plan_of(tmp_path, sweep), measuring) == ()
    assert measuring.asked == []


@pytest.mark.parametrize("refused", ["", "labels: 3 of 64 differ"])
def test_a_fix_that_is_another_loader_is_tried_only_where_its_batches_are_the_same(refused: str) -> None:
    measuring = TrialMeasurer(refused)
    step = object.__new__(RemedyStep)
    step._session = SimpleNamespace(measuring=measuring)  # type: ignore[assignment]
    step._found = SimpleNamespace(parity=())  # type: ignore[assignment]
    config: Config = {"num_workers": 2}
    assert step._gives_the_same(Candidate("other", {"num_workers": 4}), config)
    assert measuring.asked == []
    for _ in range(2):  # once for all rounds
        assert step._gives_the_same(Candidate("dali_loader", {"loader": "dali", "threads": 2}), config) is (not refused)
    assert [one["loader"] for one, _ in measuring.asked] == ["dali"]
    assert [found.refused for found in step._found.parity] == [refused]


def test_the_loader_of_the_baseline_is_compared_too(tmp_path: Path) -> None:
    measuring: Any = TrialMeasurer()
    plan = plan_of(tmp_path, "{loader: [threads], threads: [1, 2]}\nbaseline: {loader: torch}")
    assert [(one.loader, one.against) for one in compare_batches(plan, measuring)] == [("threads", "torch")]
