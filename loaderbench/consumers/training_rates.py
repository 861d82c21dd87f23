"""How many samples per second one GPU trains, as published: the table behind `consumer.accelerator`.

Every rate was read in its source and is for one GPU. No rate is scaled from another GPU, model or precision. A total
over several GPUs is divided by their number, and the row says so. `docs/reference/training-rates.md` is made from this
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from loaderbench.options import nearest

Precision = Literal["mixed", "tf32", "fp32"]

PRECISIONS: dict[Precision, str] = {"mixed": "mixed precision", "tf32": "TF32", "fp32": "FP32"}
"""How each is written, in the order in which a rate is chosen where a suite names none: people train in the first."""

DEFAULT_MODEL = "resnet50"
_ALSO: dict[str, Precision] = {"amp": "mixed", "mixedprecision": "mixed"}
_MAKERS = ("nvidia", "geforce", "tesla", "quadro")


@dataclass(frozen=True)
class Source:
    """Where rates were published, and with which software they were measured."""

    title: str
    address: str
    software: str


@dataclass(frozen=True)
class TrainingRate:
    """Samples per second that one GPU trains. `measured` is what the source says of the setting."""

    gpu: str
    model: str
    precision: Precision
    samples_per_s: float
    source: Source
    measured: str


class NoRateError(LookupError):
    """The table has no such rate. `option` is the option of `consumer` that asks for it."""

    def __init__(self, option: str, what: str) -> None:
        super().__init__(what)
        self.option = option


_NVIDIA = "NVIDIA DeepLearningExamples"
_EXAMPLES = "https://github.com/NVIDIA/DeepLearningExamples/blob/729963dd/PyTorch/Classification/ConvNets"
_RESNET = Source(_NVIDIA, f"{_EXAMPLES}/resnet50v1.5/README.md", "PyTorch, NGC container 21.03")
_EFFICIENTNET = Source(_NVIDIA, f"{_EXAMPLES}/efficientnet/README.md", "PyTorch, NGC container 21.03")
_RESNEXT = Source(_NVIDIA, f"{_EXAMPLES}/resnext101-32x4d/README.md", "PyTorch, NGC container 21.03")

_LAMBDA_REPOSITORY = "https://github.com/lambdal/deeplearning-benchmark"
_SYNTHETIC = "PyTorch, NVIDIA's ResNet-50 with AMP on synthetic images"
_LAMBDA = Source(
    "Lambda GPU benchmarks",
    f"{_LAMBDA_REPOSITORY}/blob/aa5addb6/pytorch/csv_v1_v2/pytorch-train-throughput-fp16.csv",
    _SYNTHETIC,
)
_LAMBDA_2021 = Source("Lambda GPU benchmarks", f"{_LAMBDA_REPOSITORY}/tree/aa5addb6/pytorch/results", _SYNTHETIC)
_LAMBDA_2024 = Source("Lambda GPU benchmarks", f"{_LAMBDA_REPOSITORY}/tree/aa5addb6/pytorch/results_v2", _SYNTHETIC)
_TIMM = Source(
    "timm benchmark results",
    "https://github.com/huggingface/pytorch-image-models/blob/aa4b5850/results/benchmark-train-amp-nhwc-pt112-cu113-rtx3090.csv",
    "PyTorch 1.12 with CUDA 11.3, timm's benchmark.py with AMP",
)
_MLPERF_DELL = Source(
    "MLPerf Training 4.0, Dell",
    "https://github.com/mlcommons/training_results_v4.0/blob/62f111b7/Dell/results/R760xax4L40S/resnet/result_0.txt",
    "MXNet, tuned for MLPerf",
)

_Row = tuple[str, str, Precision, float, str]


def _rates(source: Source, rows: Sequence[_Row]) -> list[TrainingRate]:
    return [TrainingRate(gpu, model, precision, float(rate), source, how) for gpu, model, precision, rate, how in rows]


RATES: tuple[TrainingRate, ...] = (
    *_rates(
        _RESNET,
        [
            ("A100", "ResNet-50", "mixed", 2470, "A100 80GB, batch 256, channels last"),
            ("A100", "ResNet-50", "tf32", 938, "A100 80GB, batch 256"),
            ("V100", "ResNet-50", "mixed", 1200, "V100 16GB, batch 256, channels last"),
            ("V100", "ResNet-50", "fp32", 367, "V100 16GB, batch 112"),
        ],
    ),
    *_rates(
        _LAMBDA,
        [
            ("A10", "ResNet-50", "mixed", 638, "batch 448, channels first"),
            ("B200", "ResNet-50", "mixed", 3076, "B200 192GB, batch 3328, channels first"),
            ("GH200", "ResNet-50", "mixed", 2844, "GH200 96GB, batch 1360, channels first"),
            ("H100", "ResNet-50", "mixed", 2791, "H100 80GB SXM5, batch 1280, channels first"),
            ("H100 PCIe", "ResNet-50", "mixed", 1976, "H100 80GB PCIe, batch 1280, channels first"),
            ("RTX 4090", "ResNet-50", "mixed", 1301, "batch 448, channels first"),
            ("RTX 6000 Ada", "ResNet-50", "mixed", 1146, "batch 928, channels first"),
            ("RTX 8000", "ResNet-50", "mixed", 651, "Quadro RTX 8000, batch 928, channels first"),
            ("RTX A6000", "ResNet-50", "mixed", 916, "batch 928, channels first"),
        ],
    ),
    *_rates(
        _LAMBDA_2024,
        [("H200", "ResNet-50", "mixed", 3078, "H200 SXM, batch 2560, channels first; log of 2024-08-02")],
    ),
    *_rates(
        _LAMBDA_2021,
        [
            ("RTX A5000", "ResNet-50", "mixed", 705, "batch 448, channels first; log of 2021-06-03"),
            ("RTX A4000", "ResNet-50", "mixed", 455, "batch 288, channels first; log of 2021-06-28"),
        ],
    ),
    *_rates(
        _MLPERF_DELL,
        [("L40S", "ResNet-50", "mixed", 2185, "8,740 on 4 GPUs, divided by 4; batch 400 each, channels last")],
    ),
    *_rates(
        _EFFICIENTNET,
        [
            ("A100", "EfficientNet-B0", "mixed", 2489, "A100 80GB, 224 px, batch 256, channels last"),
            ("A100", "EfficientNet-B0", "tf32", 1078, "A100 80GB, 224 px, batch 256"),
            ("A100", "EfficientNet-B4", "mixed", 331, "A100 80GB, 380 px, batch 128, channels last"),
            ("A100", "EfficientNet-B4", "tf32", 157, "A100 80GB, 380 px, batch 64"),
            ("V100", "EfficientNet-B0", "mixed", 1301, "V100 16GB, 224 px, batch 128, channels last"),
            ("V100", "EfficientNet-B0", "fp32", 655, "V100 16GB, 224 px, batch 64"),
            ("V100", "EfficientNet-B4", "mixed", 204, "V100 16GB, 380 px, batch 32, channels last"),
            ("V100", "EfficientNet-B4", "fp32", 83, "V100 16GB, 380 px, batch 16"),
        ],
    ),
    *_rates(
        _RESNEXT,
        [
            ("A100", "ResNeXt-101 32x4d", "mixed", 1211, "A100 80GB, batch 128, channels last"),
            ("A100", "ResNeXt-101 32x4d", "tf32", 456, "A100 80GB, batch 128"),
            ("V100", "ResNeXt-101 32x4d", "mixed", 587, "V100 16GB, batch 128, channels last"),
            ("V100", "ResNeXt-101 32x4d", "fp32", 147, "V100 16GB, batch 64"),
        ],
    ),
    *_rates(
        _TIMM,
        [
            ("RTX 3090", "ResNet-18", "mixed", 3482, "batch 512, channels last"),
            ("RTX 3090", "ResNet-50", "mixed", 1218, "batch 512, channels last"),
            ("RTX 3090", "ResNet-101", "mixed", 748, "batch 256, channels last"),
            ("RTX 3090", "EfficientNet-B0", "mixed", 1752, "224 px, batch 512, channels last"),
            ("RTX 3090", "EfficientNet-B4", "mixed", 355, "320 px, batch 96, channels last"),
            ("RTX 3090", "ConvNeXt-Tiny", "mixed", 819, "batch 256, channels last"),
            ("RTX 3090", "ConvNeXt-Base", "mixed", 339, "batch 128, channels last"),
            ("RTX 3090", "Swin-T", "mixed", 649, "batch 256, channels last"),
            ("RTX 3090", "ViT-S/16", "mixed", 1058, "batch 384, channels last"),
            ("RTX 3090", "ViT-B/16", "mixed", 393, "batch 192, channels last"),
        ],
    ),
)


def find_rate(gpu: str, model: str = DEFAULT_MODEL, precision: str | None = None) -> TrainingRate:
    """Return the rate of a GPU for a model, in mixed precision where it is known and no other precision is named.

    Names are compared without case, signs, and the words NVIDIA, GeForce, Tesla and Quadro.
    Raises `NoRateError`, which says what there is.
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


def gpus() -> list[str]:
    """The GPUs with a rate, as a suite may name them."""
    return sorted({rate.gpu.lower() for rate in RATES})


def _no_gpu(gpu: str) -> str:
    hint = nearest(gpu.lower(), gpus())
    known = f"{' K' if hint else '; k'}nown: {', '.join(gpus())}"
    return f"no training rate for {gpu!r}{hint}{known}; for another GPU, set demand to its samples/s"


def _models(rates: Iterable[TrainingRate]) -> list[str]:
    """Each model with its precisions: `ResNet-50 (mixed or tf32)`."""
    found: dict[str, list[str]] = {}
    for rate in rates:
        found.setdefault(rate.model, []).append(rate.precision)
    return [f"{model} ({' or '.join(precisions)})" for model, precisions in found.items()]


def _key(name: str) -> str:
    """A name without case and signs: `ViT-B/16` and `vit_b_16` are one model."""
    return "".join(sign for sign in name.lower() if sign.isalnum())


def _gpu_key(name: str) -> str:
    key = _key(name)
    for maker in _MAKERS:
        key = key.removeprefix(maker)
    return key
