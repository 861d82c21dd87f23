"""Published training rates of GPUs, in samples per second: the table behind `consumer.accelerator`.

The rates are the rows of `training_rates.csv`. Every rate was read from its source and is for one GPU. No rate is
scaled from another GPU, model or precision. A total over several GPUs is divided by their number, and the row says so.
`docs/reference/training-rates.md` is generated from this table.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from loaderbench.options import nearest

Precision = Literal["mixed", "tf32", "fp32"]

PRECISIONS: dict[Precision, str] = {"mixed": "mixed precision", "tf32": "TF32", "fp32": "FP32"}
"""How each precision is written, in order of preference if a suite names none: people train in the first."""

DEFAULT_MODEL = "resnet50"
_ALSO: dict[str, Precision] = {"amp": "mixed", "mixedprecision": "mixed"}
_MAKERS = ("nvidia", "geforce", "tesla", "quadro")


@dataclass(frozen=True)
class Source:
    """The publication of rates, and the software they were measured with."""

    title: str
    address: str
    software: str


@dataclass(frozen=True)
class TrainingRate:
    """Samples per second that one GPU trains. `measured` is the source's description of the setup."""

    gpu: str
    model: str
    precision: Precision
    samples_per_s: float
    source: Source
    measured: str


class NoRateError(LookupError):
    """The table has no such rate. `option` is the option of `consumer` that requests it."""

    def __init__(self, option: str, what: str) -> None:
        super().__init__(what)
        self.option = option


_EXAMPLES = "https://github.com/NVIDIA/DeepLearningExamples/blob/729963dd/PyTorch/Classification/ConvNets"
_LAMBDA = "https://github.com/lambdal/deeplearning-benchmark"
_TIMM = "https://github.com/huggingface/pytorch-image-models/blob/aa4b5850/results"
_DELL = "https://github.com/mlcommons/training_results_v4.0/blob/62f111b7/Dell/results"


def _nvidia(model: str) -> Source:
    return Source("NVIDIA DeepLearningExamples", f"{_EXAMPLES}/{model}/README.md", "PyTorch, NGC container 21.03")


def _lambda(path: str) -> Source:
    software = "PyTorch, NVIDIA's ResNet-50 with AMP on synthetic images"
    return Source("Lambda GPU benchmarks", f"{_LAMBDA}/{path}", software)


SOURCES = {
    "nvidia-resnet50": _nvidia("resnet50v1.5"),
    "nvidia-efficientnet": _nvidia("efficientnet"),
    "nvidia-resnext101": _nvidia("resnext101-32x4d"),
    "lambda": _lambda("blob/aa5addb6/pytorch/csv_v1_v2/pytorch-train-throughput-fp16.csv"),
    "lambda-2021": _lambda("tree/aa5addb6/pytorch/results"),
    "lambda-2024": _lambda("tree/aa5addb6/pytorch/results_v2"),
    "timm": Source(
        "timm benchmark results",
        f"{_TIMM}/benchmark-train-amp-nhwc-pt112-cu113-rtx3090.csv",
        "PyTorch 1.12 with CUDA 11.3, timm's benchmark.py with AMP",
    ),
    "mlperf-dell": Source(
        "MLPerf Training 4.0, Dell", f"{_DELL}/R760xax4L40S/resnet/result_0.txt", "MXNet, tuned for MLPerf"
    ),
}
"""Where the rates of `training_rates.csv` were published."""


def _read_rates() -> Iterator[TrainingRate]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield TrainingRate(
                gpu=row["gpu"],
                model=row["model"],
                precision=cast("Precision", row["precision"]),  # a test checks the file against PRECISIONS
                samples_per_s=float(row["samples_per_s"]),
                source=SOURCES[row["source"]],
                measured=row["measured"],
            )


RATES = tuple(_read_rates())


def find_rate(gpu: str, model: str = DEFAULT_MODEL, precision: str | None = None) -> TrainingRate:
    """Return the rate of a GPU for a model, in mixed precision if known and no other precision is named.

    Names are compared ignoring case, punctuation, and the words NVIDIA, GeForce, Tesla and Quadro. Raises
    `NoRateError`, which lists the available rates.
    """
    of_gpu = [rate for rate in RATES if _gpu_key(rate.gpu) == _gpu_key(gpu)]
    if not of_gpu:
        raise NoRateError("accelerator", _no_gpu(gpu))
    known = f"available: {', '.join(_models(of_gpu))}"
    of_model = [rate for rate in of_gpu if _key(rate.model) == _key(model)]
    if not of_model:
        raise NoRateError("model", f"no training rate for {model!r} on {of_gpu[0].gpu}; {known}")
    if precision is None:
        return min(of_model, key=lambda rate: [*PRECISIONS].index(rate.precision))
    wanted = _ALSO.get(_key(precision), _key(precision))
    found = next((rate for rate in of_model if rate.precision == wanted), None)
    if found is None:
        what = f"no training rate in {precision!r} for {of_model[0].model} on {of_gpu[0].gpu}; {known}"
        raise NoRateError("precision", what)
    return found


def has_rate(model: str) -> bool:
    """Whether some GPU has a rate for a model."""
    return any(_key(rate.model) == _key(model) for rate in RATES)


def gpus() -> list[str]:
    """GPUs that have a rate, as a suite can name them."""
    return sorted({rate.gpu.lower() for rate in RATES})


def _no_gpu(gpu: str) -> str:
    hint = nearest(gpu.lower(), gpus())
    known = f"{' K' if hint else '; k'}nown: {', '.join(gpus())}"
    return f"no training rate for {gpu!r}{hint}{known}; for another GPU, set demand to its samples/s"


def _models(rates: Iterable[TrainingRate]) -> list[str]:
    """List each model with its precisions: `ResNet-50 (mixed or tf32)`."""
    found: dict[str, list[str]] = {}
    for rate in rates:
        found.setdefault(rate.model, []).append(rate.precision)
    return [f"{model} ({' or '.join(precisions)})" for model, precisions in found.items()]


def _key(name: str) -> str:
    """Reduce a name to lowercase letters and digits: `ViT-B/16` and `vit_b_16` are one model."""
    return "".join(sign for sign in name.lower() if sign.isalnum())


def _gpu_key(name: str) -> str:
    key = _key(name)
    for maker in _MAKERS:
        key = key.removeprefix(maker)
    return key
