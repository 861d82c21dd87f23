"""A suite that names a GPU: what is checked, measured and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.consumers import demand_of, describe_demand
from loaderbench.store import read_run
from loaderbench.suite import load_suite

SUITE = "name: s\ndataset: {root: data}\nloader: {batch_size: 4}\nmeasure: {rounds: 1, seconds: 0.05, verify: false}\n"
A100 = "Target 2,470 samples/s (A100, ResNet-50, mixed precision; NVIDIA DeepLearningExamples)"


@pytest.fixture
def place(tmp_path: Path, photos: Path) -> Path:
    (tmp_path / "data").symlink_to(photos, target_is_directory=True)
    return tmp_path


@pytest.mark.parametrize(
    ("consumer", "lines"),
    [
        ("kind: emulated", ["Target 1,000 samples/s (default; set consumer.demand or consumer.accelerator)"]),
        ("kind: emulated, demand: 70", ["Target 70 samples/s (consumer.demand)"]),
        ("accelerator: NVIDIA A100", [A100, "  source: https://github.com/NVIDIA/DeepLearningExamples/"]),
        ("kind: none", []),
    ],
)
def test_check_prints_the_assumed_demand_and_its_source(cli: Cli, place: Path, consumer: str, lines: list[str]) -> None:
    (place / "s.yaml").write_text(f"{SUITE}consumer: {{{consumer}}}\n")
    result = cli("check", "s.yaml")
    assert result.returncode == 0, result.stderr
    shown = [line for line in result.stdout.splitlines() if line.startswith(("Target", "  source"))]
    assert len(shown) == len(lines)
    assert all(line.startswith(start) for line, start in zip(shown, lines, strict=True))


def test_a_gpu_without_a_rate_is_one_line_with_its_place(cli: Cli, place: Path) -> None:
    (place / "s.yaml").write_text(f"{SUITE}consumer:\n  accelerator: rtx 4900\n")
    result = cli("check", "s.yaml")
    assert result.returncode == 2
    place_and_what = "s.yaml:6:16: consumer.accelerator: no training rate for 'rtx 4900'; did you mean rtx 4090?"
    assert len(result.stderr.strip().splitlines()) == 1
    assert place_and_what in result.stderr


def test_a_run_emulates_the_gpu_and_keeps_the_rate_with_its_source(cli: Cli, place: Path) -> None:
    (place / "s.yaml").write_text(f"{SUITE}consumer: {{accelerator: a100, precision: tf32}}\n")
    result = cli("run", "s.yaml", "--out", "out", "-q")
    assert result.returncode == 0, result.stderr
    kept = json.loads((place / "out" / "run.json").read_text())
    assert kept["consumer"] == "emulated"
    assert (kept["suite"]["consumer"]["accelerator"], kept["suite"]["consumer"]["demand"]) == ("a100", None)
    (place / "again.yaml").write_text(json.dumps(kept["suite"]))
    assert load_suite(place / "again.yaml").suite.model_dump(mode="json") == kept["suite"]
    assert kept["ceiling"]["samples_per_s"] == 938.0
    assert kept["assumed_demand"]["address"].startswith("https://github.com/NVIDIA/DeepLearningExamples/")
    found = demand_of(read_run(place / "out"))
    assert found is not None
    assert str(describe_demand(found)) == "Target 938 samples/s (A100, ResNet-50, TF32; NVIDIA DeepLearningExamples)"
