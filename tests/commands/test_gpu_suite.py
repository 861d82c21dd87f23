"""`suites/gpu.yaml` where there is no GPU: it can be planned, and a run of it ends before anything is read or made."""

from __future__ import annotations

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
