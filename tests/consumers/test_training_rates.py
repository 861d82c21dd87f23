"""The table of training rates: whole, cited, found by the names people write, and the same as its page."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from loaderbench.consumers.training_rates import PRECISIONS, RATES, SOURCES, NoRateError, find_rate, gpus

DOCS = Path(__file__).parents[2] / "docs"


def test_every_rate_is_cited_and_says_how_it_was_measured() -> None:
    for rate in RATES:
        assert rate.source.address.startswith("https://"), rate
        assert rate.source.title, rate
        assert rate.source.software, rate
        assert rate.precision in PRECISIONS, rate
        assert "batch" in rate.measured, rate
        assert rate.samples_per_s > 0


def test_every_source_has_a_rate_and_no_two_are_one_page() -> None:
    addresses = [source.address for source in SOURCES.values()]
    assert sorted(addresses) == sorted({rate.source.address for rate in RATES})


def test_no_gpu_has_two_rates_for_one_model_in_one_precision() -> None:
    assert len({(rate.gpu, rate.model, rate.precision) for rate in RATES}) == len(RATES)


def test_every_gpu_has_a_rate_for_the_default_model() -> None:
    assert {find_rate(gpu).model for gpu in gpus()} == {"ResNet-50"}


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("a100", "A100"),
        ("NVIDIA A100", "A100"),
        ("rtx 4090", "RTX 4090"),
        ("RTX-4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("nvidia_geforce_rtx_4090", "RTX 4090"),
        ("Tesla V100", "V100"),
        ("h100 pcie", "H100 PCIe"),
        ("H100", "H100"),
    ],
)
def test_a_gpu_is_found_however_its_name_is_written(name: str, gpu: str) -> None:
    assert find_rate(name).gpu == gpu


@pytest.mark.parametrize(
    ("gpu", "model", "precision", "rate"),
    [
        ("a100", "resnet50", None, 2470),
        ("a100", "ResNet-50", "TF32", 938),
        ("v100", "resnet50", "fp32", 367),
        ("v100", "resnet50", "AMP", 1200),
        ("v100", "efficientnet_b4", "mixed precision", 204),
        ("rtx 3090", "vit_b_16", None, 393),
        ("rtx 3090", "ViT-B/16", None, 393),
        ("a100", "resnext101_32x4d", None, 1211),
        ("h100", "resnet50", None, 2791),
    ],
)
def test_a_rate_is_that_of_its_source(gpu: str, model: str, precision: str | None, rate: float) -> None:
    assert find_rate(gpu, model, precision).samples_per_s == rate


@pytest.mark.parametrize(
    ("asked", "option", "what"),
    [
        (("a1000",), "accelerator", "no training rate for 'a1000'; did you mean a100? Known: a10, a100,"),
        (("t4",), "accelerator", "no training rate for 't4'; known: a10, a100,"),
        (("h100", "vit"), "model", "no training rate for 'vit' on H100; available: ResNet-50 (mixed)"),
        (
            ("v100", "resnet50", "tf32"),
            "precision",
            "no training rate in 'tf32' for ResNet-50 on V100; available: ResNet-50 (mixed or fp32), EfficientNet-B0",
        ),
    ],
)
def test_a_rate_that_is_not_published_says_what_there_is(asked: tuple[str, ...], option: str, what: str) -> None:
    with pytest.raises(NoRateError) as caught:
        find_rate(*asked)
    assert caught.value.option == option
    assert str(caught.value).startswith(what)


def test_the_table_is_read_without_torch() -> None:
    code = "import loaderbench.consumers.training_rates, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_page_of_the_rates_is_made_from_the_table() -> None:
    page = runpy.run_path(str(DOCS / "training_rates_page.py"))["page"]
    assert (DOCS / "reference" / "training-rates.md").read_text() == page(), "uv run python docs/training_rates_page.py"
