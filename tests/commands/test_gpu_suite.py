"""`suites/gpu.yaml` where there is no GPU: it can be planned, and a run of it ends before anything is read or made."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.monitors import count_gpus
from loaderbench.suite import load_suite

SUITE = Path(__file__).parents[2] / "suites" / "gpu.yaml"


def test_it_trains_on_batches_that_fill_a_large_gpu() -> None:
    suite = load_suite(SUITE).suite
    assert suite.consumer.kind == "model"
    assert suite.sweep["batch_size"] == [32, 128, 256]
    assert {"num_workers", "pin_memory"} <= set(suite.sweep)


def test_its_plan_is_that_of_a_machine_with_a_gpu(cli: Cli) -> None:
    result = cli("check", SUITE)
    assert result.returncode == 0, result.stderr
    assert "consumer: model" in result.stdout
    assert "Training step: resnet50 on cuda, mixed precision, sgd" in result.stdout
    assert "batch_size=256 num_workers=0 pin_memory=true" in result.stdout


@pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU")
def test_without_a_gpu_it_is_one_line_that_says_what_to_do(cli: Cli, tmp_path: Path, photos: Path) -> None:
    result = cli("run", SUITE, "--data", photos)
    assert result.returncode == 5
    (line,) = result.stderr.splitlines()
    assert "needs a CUDA device" in line
    assert line.endswith("use a machine with a GPU, or kind: auto to emulate one")
    assert result.stdout == ""
    assert list(tmp_path.rglob("*.json*")) == []


def test_runs_on_a_gpu_try_no_fixes_and_have_time_for_their_starts_of_cuda() -> None:
    """Of `tests/gpu`, which nobody can run here: fixes would take minutes, and each trial starts CUDA and a model."""
    runs = 0
    for file in sorted((Path(__file__).parents[1] / "gpu").glob("test_*.py")):
        tree = ast.parse(file.read_text())
        limits = {node.targets[0].id: node.value.value for node in tree.body if _is_number(node)}  # type: ignore[attr-defined]
        for test in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            for call in (node for node in ast.walk(test) if _is_run(node)):
                (limit,) = (keyword.value.id for keyword in call.keywords if keyword.arg == "timeout_s")  # type: ignore[attr-defined]
                assert limits[limit] >= 600, f"{file.name}::{test.name}"
                assert "'--no-verify'" in ast.unparse(test), f"{file.name}::{test.name}"
                runs += 1
    assert runs >= 3


def _is_number(node: ast.AST) -> bool:
    named = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    return named and isinstance(node.value, ast.Constant) and isinstance(node.value.value, float)  # type: ignore[attr-defined]


def _is_run(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node).startswith("command('run'")
