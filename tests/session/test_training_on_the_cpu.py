"""`kind: model` with `device: cpu`: a real training step, whose samples a seed draws whatever the number of workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.store import read_run

SUITE = """\
name: trained on the cpu
dataset: {generate: {images: 24}}
loader: {batch_size: 4}
sweep: {num_workers: [0, 1]}
consumer: {kind: model, model: squeezenet1_1, device: cpu, image_size: 32, optimizer: adam, precision: fp32}
measure: {rounds: 1, seconds: 0.5, verify: false, deterministic: true}
"""


@pytest.mark.slow
def test_a_run_measures_it_like_any_other_consumer(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    found = cli("run", "s.yaml", "--out", "r", "--progress", "none")
    assert found.returncode == 0, found.stderr
    run = read_run(tmp_path / "r")
    assert [trial.status for trial in run.sweep] == ["completed"] * 2
    assert run.consumer == "model"
    assert run.suite["consumer"]["device"] == "cpu"
    assert all("decode" in (trial.stages or {}) for trial in run.sweep), "seeded draws do not hide the stages"
    assert all((trial.data_wait_share or 0) > 0 for trial in run.sweep)
    assert run.ceiling is not None, "the step's own pace, from cached batches"
    assert run.isolation is not None
    on_device = next(one for one in run.isolation.runs if one.name == "replay_device")
    assert on_device.not_measured["time_s"] == "no GPU"
