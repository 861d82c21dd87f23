"""What editors are told of a suite is what `load_suite` accepts."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from loaderbench.store import run_json
from loaderbench.store.reading import read_run
from loaderbench.suite import load_suite
from loaderbench.suite.model import suite_schema
from loaderbench.suite.yaml_text import parse_text

ROOT = Path(__file__).parents[2]
FITS = [
    "measure: {budget: 10m}",
    "measure: {budget: 1h30m}",
    "measure: {budget: 90}",
    "baseline:\nloader:\nmeasure:",
    "dataset: {transform: 'mine:make'}",
    "dataset: {kind: target, target: 'mine:make', args: {a: [1]}}",
    "sweep: {num_workers: auto, decoder: [pillow]}",
    "consumer: {accelerator: RTX-4090, model: resnet50, precision: mixed}",
    "consumer: {demand: 1000, accelerator: null}",
]
DOES_NOT = [
    "measure: {budget: soon}",
    "measure: {budget: ''}",
    "loader: {suffle: true}",
    "dataset: {decoder: pilow}",
    "dataset: {transform: nope}",
    "datset: {}",
    "consumer: {demand: 1000, accelerator: a100}",
]


def fits(text: str) -> bool:
    return jsonschema.Draft202012Validator(suite_schema()).is_valid(parse_text(text).value)


@pytest.mark.parametrize("suite", sorted((ROOT / "suites").glob("*.yaml")), ids=lambda path: path.name)
def test_every_suite_of_ours_fits(suite: Path) -> None:
    assert fits(suite.read_text())


@pytest.mark.parametrize("text", FITS)
def test_what_is_accepted_fits(text: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(text)
    load_suite(tmp_path / "s.yaml")
    assert fits(text)


@pytest.mark.parametrize("text", DOES_NOT)
def test_what_is_refused_does_not(text: str) -> None:
    assert not fits(text)


def test_a_run_fits_the_schema_of_runs() -> None:
    from pydantic import TypeAdapter

    from loaderbench.records import RunRecord

    run = read_run(ROOT / "reports" / "examples" / "two-cores")
    validator = jsonschema.Draft202012Validator(TypeAdapter(RunRecord).json_schema())
    assert validator.is_valid(json.loads(run_json(run)))
