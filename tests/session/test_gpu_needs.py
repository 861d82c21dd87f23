"""Decoders that leave files to a GPU, where there is none: one line before files are made, and nothing is measured."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli

from loaderbench.datasets import dali
from loaderbench.environment import describe_machine
from loaderbench.errors import MissingError
from loaderbench.monitors import count_gpus
from loaderbench.records import Gpu
from loaderbench.session.conditions import _consumer, needs_gpu, why_not_decoded
from loaderbench.suite import Suite, load_suite

ON_CPU = {"kind": "model", "device": "cpu"}


def suite(**parts: Any) -> Suite:
    return Suite.model_validate(parts)


@pytest.mark.parametrize(
    ("parts", "needed"),
    [
        ({}, False),
        ({"sweep": {"decoder": ["pillow", "device"]}}, True),
        ({"dataset": {"decoder": "dali"}, "consumer": {"kind": "none"}}, True),
        ({"dataset": {"decoder": "dali"}, "sweep": {"decoder": ["pillow"]}}, False),
        ({"sweep": {"decoder": ["pillow", "device"]}, "consumer": ON_CPU}, False),
        ({"consumer": {"kind": "model"}}, True),
        ({"dataset": {"kind": "target", "target": "a:b"}}, False),
    ],
)
def test_a_suite_needs_a_gpu_for_its_step_or_its_decoder(parts: dict[str, Any], needed: bool) -> None:
    assert needs_gpu(suite(**parts)) is needed


def test_a_gpu_that_decodes_no_jpegs_is_named() -> None:
    found = suite(dataset={"decoder": "device"})
    assert why_not_decoded(found, [Gpu(0, "", "NVIDIA Z1", 1, platform="CUDA 13.0")]) == ""
    said = why_not_decoded(found, [Gpu(0, "", "Intel Z2", 1, platform="XPU")])
    assert said.startswith("decoder=device: the GPU decodes files from host memory, and no CUDA device can be used")
    assert "(this machine has xpu:0 (Intel Z2)); use another decoder" in said


@pytest.mark.parametrize(("gpus", "fails"), [(1, True), (2, False)])
def test_ranks_that_decode_on_gpus_need_one_each(gpus: int, fails: bool, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "dataset: {decoder: device, generate: {images: 24}}\nsweep: {ranks: [1, 2]}\nconsumer: {kind: none}\n"
    )
    known = [Gpu(number, f"{number}", "NVIDIA Z1", 1, platform="CUDA 13.0") for number in range(gpus)]
    environment = describe_machine("spawn", known, {})
    with pytest.raises(MissingError, match=r"sweep\.ranks: .*, and 2 ranks need 2 GPUs") if fails else nullcontext():
        _consumer(load_suite(tmp_path / "s.yaml"), environment)


@pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU")
@pytest.mark.parametrize("decoder", ["device", "dali"])
def test_without_a_gpu_it_is_one_line_and_nothing_is_made(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoder: str
) -> None:
    monkeypatch.setattr(dali, "is_installed", lambda: True)
    (tmp_path / "s.yaml").write_text(
        f"name: s\ndataset: {{generate: {{images: 24}}}}\nsweep: {{decoder: [pillow, {decoder}]}}\n"
    )
    result = cli("run", "s.yaml", "--out", "r", "--progress", "none")
    assert (result.returncode, result.stdout) == (5, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"loaderbench: decoder={decoder}: the GPU decodes files from host memory, and no CUDA")
    assert line.endswith("decode on the CPU in the training step with consumer: {kind: model, device: cpu}")
    assert not list(tmp_path.rglob("run.json"))
    assert "This suite needs a GPU" in cli("check", "s.yaml").stdout
