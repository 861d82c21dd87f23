"""A real training step on the CPU: its trials keep the type that it computed in, and no other consumer's do."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.store import read_run

SUITE = """\
name: kept
dataset: {generate: {images: 24}}
loader: {batch_size: 4}
consumer: CONSUMER
measure: {rounds: 1, seconds: 0.1, verify: false}
"""
STEP = "{kind: KIND, model: squeezenet1_1, device: cpu, image_size: 32, precision: bfloat16}"


@pytest.mark.parametrize("kind", ["model", pytest.param("auto", marks=pytest.mark.slow)])
def test_a_step_says_what_it_computed_in(cli: Cli, tmp_path: Path, kind: str) -> None:
    (tmp_path / "s.yaml").write_text(SUITE.replace("CONSUMER", STEP.replace("KIND", kind)))
    done = cli("run", "s.yaml", "--out", "r", "--progress", "none")
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path / "r")
    assert run.consumer == "model"
    assert {trial.computed_in for trial in run.sweep} == {"bfloat16"}
    assert cli("export", "r", "--to", "calibration", "--out", "cpu.json").returncode == 0
    assert '"precision": "bfloat16"' in (tmp_path / "cpu.json").read_text()


def test_other_consumers_say_why_there_is_none(small_run: tuple[Path, object]) -> None:
    for trial in read_run(small_run[0]).sweep:
        assert trial.computed_in is None
        assert trial.not_measured["computed_in"] == "no training step of consumer.kind: model took the batches"
