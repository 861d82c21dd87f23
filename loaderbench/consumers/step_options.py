"""Options of a training step: device, precision, optimizer and optimizations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from loaderbench.options import not_one_of

CPU = "cpu"
MIXED, TF32, FP32 = "mixed", "tf32", "fp32"
PRECISIONS = (MIXED, "bfloat16", "float16", TF32, FP32)
"""`mixed`: the GPU's native 16-bit type, or float32 on a CPU. `bfloat16` and `float16` apply on any device."""

Optimizer = Literal["sgd", "adam", "adamw"]
_DEVICE = re.compile(r"cpu|mps|(?:cuda|xpu)(?::(\d+))?")


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Options of `kind: model`. Images are resized on the device to squares of `image_size` pixels a side."""

    model: str
    device: str = "cuda"
    precision: str = MIXED
    optimizer: Optimizer = "sgd"
    image_size: int | None = None
    channels_last: bool = True
    compile: bool = False
    cuda_graphs: bool = False
    data_parallel: bool = False
    prefetch_stream: bool = False

    @property
    def on_gpu(self) -> bool:
        """Whether the step computes on a GPU."""
        return self.device != CPU

    @property
    def on_cuda(self) -> bool:
        """Whether torch calls the GPU a CUDA device, which includes ROCm devices."""
        return self.device.partition(":")[0] == "cuda"

    @property
    def gpu_index(self) -> int:
        """The index of the GPU, as torch counts; plain `cuda` is the first."""
        found = _DEVICE.fullmatch(self.device)
        return int(found[1]) if found and found[1] else 0

    def describe(self) -> str:
        """Describe the step in one line, such as `resnet50 on cuda, mixed precision, sgd, channels_last`."""
        parts = {
            f"images of {self.image_size} px": self.image_size is not None,
            "channels_last": self.channels_last,
            "torch.compile": self.compile,
            "CUDA graph": self.cuda_graphs,
            "DataParallel": self.data_parallel,
            "prefetch stream": self.prefetch_stream,
        }
        precision = f"{self.precision} precision" if self.precision == MIXED else self.precision
        return ", ".join([f"{self.model} on {self.device}", precision, self.optimizer, *(p for p in parts if parts[p])])

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each option that is wrong or conflicts with others, with what to do."""
        if _DEVICE.fullmatch(self.device) is None:
            yield "device", f"expected cuda, cuda:N, xpu, xpu:N, mps or cpu, got {self.device!r}"
            return
        if self.precision not in PRECISIONS:
            yield "precision", not_one_of(self.precision, PRECISIONS)
        if not self.on_cuda:
            yield from self._needs_cuda()
            return
        for name, other in (
            ("data_parallel", "cuda_graphs"),
            ("data_parallel", "compile"),
            ("data_parallel", "prefetch_stream"),
            ("compile", "cuda_graphs"),
        ):
            if getattr(self, name) and getattr(self, other):
                yield other, f"cannot be combined with `{name}`; drop one of them"

    def _needs_cuda(self) -> Iterator[tuple[str, str]]:
        what = "CUDA" if self.on_gpu else "a GPU"
        for name in ("cuda_graphs", "data_parallel", "prefetch_stream"):
            if getattr(self, name):
                yield name, f"needs {what}; drop it, or set `device: cuda`"
        if self.precision == TF32:
            yield "precision", f"tf32 needs {what}; use `fp32`"
