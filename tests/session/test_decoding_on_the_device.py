"""`decoder: device` and `dali` in a run: the same path as on a GPU, with the CPU as the device of the training step."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.datasets import dali
from loaderbench.datasets.image_folder import ON_DEVICE
from loaderbench.store import read_run

SUITE = """\
name: decoded where it trains
dataset: {generate: {images: 24}, transform: imagenet_eval}
loader: {batch_size: 4, num_workers: 1}
sweep: {decoder: [DECODERS]}
consumer: {kind: model, model: squeezenet1_1, device: cpu, image_size: 32, precision: fp32}
measure: {rounds: 1, seconds: 0.4, verify: false}
"""


@pytest.mark.slow
def test_workers_read_and_the_step_decodes(command: Cli, tmp_path: Path) -> None:
    on_device = [name for name in ON_DEVICE if name != "dali" or dali.is_installed()]
    (tmp_path / "s.yaml").write_text(SUITE.replace("DECODERS", ", ".join(["pillow", *on_device])))
    found = command("run", "s.yaml", "--out", "r", "--progress", "none")
    assert found.returncode == 0, found.stderr
    trials = {trial.config["decoder"]: trial for trial in read_run(tmp_path / "r").sweep}
    assert {trial.status for trial in trials.values()} == {"completed"}, [t.failure for t in trials.values()]
    assert "decode" in (trials["pillow"].stages or {})
    for name in on_device:
        assert {"read"} <= set(trials[name].stages or {})
        assert not {"decode", "transform"} & set(trials[name].stages or {}), "none of it in workers"
        assert trials[name].computed_in == "float32"
