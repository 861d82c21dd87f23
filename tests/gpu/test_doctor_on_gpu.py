"""On a real device: `doctor --gpu` passes, its file is whole, and the suite for owners of a GPU trains on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.datasets.photos import generate_photos
from loaderbench.store import read_run

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timed,  # one after another: they share the device
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

RUN_TIMEOUT_S = 900.0
WAITS = ("event_timer", "wait_of_idle_device", "wait_of_busy_device", "wait_mixed")


def test_known_waits_are_read_right_and_the_file_says_so(command: Cli, tmp_path: Path) -> None:
    result = command("doctor", "--gpu", "--out", "gpu.json", timeout_s=180.0)
    found = json.loads((tmp_path / "gpu.json").read_text())
    states = {check["id"]: (check["state"], check["said"]) for check in found["checks"]}
    assert states["kernel"][0] == "passed", states
    for name in WAITS:
        assert states[name][0] == "passed", states[name]
    assert states["clock_overhead_device"][0] == "passed", states
    assert {"clock_overhead_host", "nvml", "copy_pinned", "copy_pageable", "decode"} <= set(states)
    assert "failed" not in {state for state, _ in states.values()}, states
    assert result.returncode == 0, result.stderr
    assert torch.cuda.get_device_name(0) == found["environment"]["gpus"][0]["name"]


def test_a_gpu_that_is_not_there_is_one_line(command: Cli) -> None:
    result = command("doctor", "--gpu", "--device", "cuda:99", timeout_s=180.0)
    assert result.returncode == 5
    assert result.stderr.startswith("loaderbench: no cuda:99 to check: CUDA shows ")


def test_the_suite_for_gpus_trains_on_large_batches(command: Cli, tmp_path: Path) -> None:
    generate_photos(tmp_path / "photos", images=1024, classes=4)
    suite = Path(__file__).parents[2] / "suites" / "gpu.yaml"
    axes = ("-P", "batch_size=32,256", "-P", "num_workers=4", "-P", "pin_memory=true")
    flags = ("--rounds", "1", "--seconds", "1", "--no-verify", "--out", "r")
    result = command("run", suite, "--data", tmp_path / "photos", *axes, *flags, timeout_s=RUN_TIMEOUT_S)
    assert result.returncode == 0, result.stderr
    run = read_run(tmp_path / "r")
    assert run.consumer == "model"
    assert {trial.config["batch_size"]: trial.status for trial in run.sweep} == {32: "completed", 256: "completed"}
    assert all(trial.data_wait_share is not None for trial in run.sweep)
