"""A target that returns an iterable of its own: a fix prints the call of the target, or says what to change."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from planted_causes import CAUSES, diagnosis, told

from loaderbench.records import Recommendation
from loaderbench.remedies import candidates_for
from loaderbench.remedies.findings import Findings
from loaderbench.remedies.target_call import TargetCall, target_call
from loaderbench.store import read_run

TARGETS = """\
import torch

class Batches:
    def __init__(self, root, size):
        self.root, self.size = root, size

    def __iter__(self):
        return iter([torch.zeros(8, self.size)] * 9)

class Recipes:
    @staticmethod
    def train(root, *, num_workers=0, size=2):
        return Batches(root, size)

def any_keyword(**options):
    return Batches(options["root"], options["size"])

class Loader(torch.utils.data.DataLoader):
    pass

def loader(root, size):
    return Loader(dataset(root, size), batch_size=3)

def dataset(root, size):
    return torch.utils.data.TensorDataset(torch.zeros(9, size))
"""
SUITE = """\
name: own
dataset: {{kind: target, target: "lb_own_iterables:{target}", args: {{root: photos}}}}
sweep: {{size: [2, 4]}}
consumer: {{kind: none}}
measure: {{rounds: 1, seconds: 0.02, verify: false}}
"""
CALL = TargetCall("mine:make", {"root": "photos"}, "Batches", frozenset(("root", "size", "num_workers")))


@pytest.mark.parametrize(
    ("target", "keywords"),
    [("Recipes.train", {"root", "num_workers", "size"}), ("any_keyword", None), ("dataset", set())],
)
def test_a_run_records_what_a_program_needs_to_call_the_target(
    target: str, keywords: set[str] | None, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lb_own_iterables.py").write_text(TARGETS)
    (tmp_path / "s.yaml").write_text(SUITE.format(target=target))
    done = cli("run", "s.yaml", "--out", "run", "-q")
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path / "run")
    call = target_call(run, run.trials[0].config)
    if target == "dataset":
        assert call is None, "it gets a DataLoader"
        return
    assert call is not None
    assert (call.returned, call.keywords) == ("Batches", keywords)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lb_own_iterables", raising=False)
    names: dict[str, Any] = {}
    exec(call.program({**run.loader, "size": 4}), names)
    assert {tuple(batch.shape) for batch in names["loader"]} == {(8, 4)}
    assert names["loader"].root == "photos"


def test_the_program_of_an_accepted_fix_calls_the_target() -> None:
    findings = Findings([], [], None, {}, {}, False, loader={"shuffle": True}, call_of=lambda _: CALL)
    program = findings.program({"size": 64, "num_workers": 2, "loader": "torch", "ranks": 2})
    assert program.splitlines() == [
        "import mine",
        "",
        "# in each of 2 ranks, after init_process_group",
        "loader = mine.make(",
        "    root='photos',",
        "    size=64,",
        "    num_workers=2,",
        ")",
    ]


def test_the_program_for_a_loader_of_another_class_names_the_class(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lb_own_iterables.py").write_text(TARGETS)
    (tmp_path / "s.yaml").write_text(SUITE.format(target="loader"))
    done = cli("run", "s.yaml", "--out", "run", "-q")
    assert done.returncode == 0, done.stderr
    traits = read_run(tmp_path / "run").trials[0].dataset_traits
    found = replace(diagnosis(CAUSES["more_workers"]), options=None, traits=traits)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lb_own_iterables", raising=False)
    names: dict[str, Any] = {"dataset": [*range(8)]}
    exec(found.program({"num_workers": 0}), names)
    assert type(names["loader"]).__name__ == "Loader"
    assert next(iter(names["loader"])).tolist() == [0, 1, 2]


def advised(id_: str, **changes: Any) -> Recommendation:
    """The advice of a fix for a target that returns an iterable of its own."""
    found = replace(diagnosis(CAUSES[id_]), **{"call": CALL, "options": None, **changes})
    return next(advice for advice in told(found) if advice.id == id_)


def test_an_argument_of_the_target_is_set_in_its_call() -> None:
    advice = advised("more_workers")
    assert advice.change.keys() == {"num_workers"}
    assert (advice.snippet or "").startswith("import mine\n")
    assert "DataLoader" not in (advice.snippet or "")


def test_an_argument_that_the_target_does_not_take_is_advised_in_words_and_not_tried() -> None:
    advice = advised("out_of_order")
    assert (advice.title, advice.change, advice.snippet) == ("Set in_order=False", {}, None)
    assert advice.reason == "Not measured: make takes no in_order; set it in your Batches"
    assert candidates_for(replace(diagnosis(CAUSES["out_of_order"]), call=CALL, options=None)) == ()
    assert advised("out_of_order", call=replace(CALL, keywords=None)).change == {"in_order": False}


@pytest.mark.parametrize("id_", CAUSES)
def test_no_fix_prints_a_data_loader_for_an_iterable(id_: str) -> None:
    found = replace(diagnosis(CAUSES[id_]), call=CALL, options=None)
    for advice in told(found):
        assert "loader = DataLoader(" not in (advice.snippet or ""), advice.id
        assert advice.reason or advice.snippet or advice.status != "open"
