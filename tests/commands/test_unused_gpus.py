"""A GPU that NVML finds and torch does not: said loudly, and never taken for one that works."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from command_line import Cli
from nvml_stub import DRIVER_NOT_LOADED, StubNvml

from loaderbench.store import read_run

pytestmark = [pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU here"), pytest.mark.slow]

SUITE = """\
name: small
dataset: {root: photos}
sweep: {batch_size: [4], num_workers: [0]}
measure: {rounds: 1, seconds: 0.1, verify: false}
"""


def test_doctor_warns_with_a_fix(stub_nvml: StubNvml, command: Cli) -> None:
    stub_nvml.set(gpus=8)
    lines = command("doctor", **stub_nvml.environment).stdout.splitlines()
    (place,) = (place for place, line in enumerate(lines) if "GPU: " in line)
    assert lines[place].startswith("warn  GPU: torch finds none of the 8 that the driver has: ")
    assert "install a torch" in lines[place + 1]


def test_a_driver_that_is_not_loaded_has_no_gpu(stub_nvml: StubNvml, command: Cli) -> None:
    stub_nvml.set(nvmlInitWithFlags=DRIVER_NOT_LOADED)
    assert "ok    GPU: none" in command("doctor", **stub_nvml.environment).stdout


def test_a_run_says_so_before_its_trials_and_with_its_verdict(
    stub_nvml: StubNvml, command: Cli, photos: Path, tmp_path: Path
) -> None:
    stub_nvml.set(gpus=8)
    (tmp_path / "photos").symlink_to(photos, target_is_directory=True)
    (tmp_path / "s.yaml").write_text(SUITE)
    found = command("run", "s.yaml", "--out", "r", **stub_nvml.environment)
    assert found.returncode == 0, found.stderr
    said = "Warning: The driver has 8 GPUs, but torch can use none: "
    before, _, after = found.stderr.partition(said)
    assert after, found.stderr
    assert "samples/s" not in before
    assert said in found.stdout
    run = read_run(tmp_path / "r")
    assert (run.environment.gpus, run.environment.gpus_of_driver) == ((), 8)
    assert run.environment.not_measured["gpus"]


def test_where_a_gpu_was_asked_for_nothing_is_measured(
    stub_nvml: StubNvml, command: Cli, photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "photos").symlink_to(photos, target_is_directory=True)
    (tmp_path / "s.yaml").write_text(f"{SUITE}consumer: {{kind: model}}\n")
    found = command("run", "s.yaml", "--progress", "none", **stub_nvml.environment)
    assert found.returncode == 5
    assert "The driver has 1 GPU, but torch can use none" in found.stderr
    assert "loaderbench doctor" in found.stderr
    assert not list(tmp_path.rglob("report.html"))
