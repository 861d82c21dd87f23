"""A training step of a torchvision classifier, on a GPU or on the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from loaderbench.consumers.kind import Clock, Consumer, ConsumerKind, OptionProblem
from loaderbench.consumers.step_options import CPU, MIXED, PRECISIONS, Optimizer, StepOptions
from loaderbench.consumers.training_rates import DEFAULT_MODEL, has_rate
from loaderbench.options import Count, nearest
from loaderbench.records.words import count

_DEVICE = "Where the step runs: cuda (any kind of GPU that torch finds), cuda:N, xpu, xpu:N, mps, or cpu."
_PRECISION = "Precision of the training step, or of the published rate."
_SIZE = "Resize images on the device to this width and height, in pixels."
_LAYOUT = "Keep images and weights in channels_last memory format."
_COMPILE = "Compile the model with torch.compile; each trial then takes longer to start."
_GRAPHS = "Record the step as a CUDA graph, and replay it."
_PARALLEL = "Divide each batch among all GPUs with DataParallel."
_PREFETCH = "Copy the next batch during the step, on a separate stream; with pinned memory, that hides the copy."

_REGISTERED = re.compile(r"""^@register_model\((?:name=)?["']?(\w*)["']?\).*?^def (\w+)\(""", re.MULTILINE | re.DOTALL)

COMPILE_S = 30.0
"""Seconds of `torch.compile` for forward and backward, in each trial.

A guess: a cache can make compilation faster, and a large model slower.
"""


class Model(ConsumerKind):
    """Train `model` on the batches."""

    who: ClassVar[str] = "GPU"
    auto: ClassVar[Literal["accelerator", "host"] | None] = "accelerator"
    modules_of_ranks: ClassVar[tuple[str, ...]] = ("torch._dynamo", "loaderbench.consumers.training_step")
    texts: ClassVar[tuple[str, ...]] = ("model", "device", "precision", "optimizer")

    model: str = DEFAULT_MODEL
    device: Annotated[str, Field(description=_DEVICE)] = "cuda"
    precision: Annotated[str | None, Field(description=_PRECISION, examples=[*PRECISIONS])] = None
    optimizer: Optimizer = "sgd"
    image_size: Annotated[Count | None, Field(description=_SIZE)] = None
    channels_last: Annotated[bool, Field(description=_LAYOUT)] = True
    compile: Annotated[bool, Field(description=_COMPILE)] = False
    cuda_graphs: Annotated[bool, Field(description=_GRAPHS)] = False
    data_parallel: Annotated[bool, Field(description=_PARALLEL)] = False
    prefetch_stream: Annotated[bool, Field(description=_PREFETCH)] = False

    @property
    def step(self) -> StepOptions:
        """The options of the step."""
        own = {name: getattr(self, name) for name in type(self).model_fields}
        return StepOptions(**{**own, "precision": self.precision or MIXED})

    def describe(self) -> str:
        """Name the step."""
        return f"Training step: {self.step.describe()}"

    @property
    def asked_for(self) -> bool:
        """Whether the suite asks for training on the CPU."""
        return self.device == CPU

    @property
    def needs_accelerator(self) -> bool:
        """Whether it needs a GPU: always, except with `device: cpu`."""
        return self.device != CPU

    @property
    def may_use_device(self) -> bool:
        """Whether it uses a GPU: only if it needs one."""
        return self.needs_accelerator

    @property
    def uses_all_gpus(self) -> bool:
        """True with `data_parallel`."""
        return self.data_parallel

    @property
    def start_s(self) -> float:
        """Compilation time, which dominates the start."""
        return COMPILE_S if self.compile else 0.0

    @property
    def queues_steps(self) -> bool:
        """True on a GPU."""
        return self.needs_accelerator

    @property
    def device_name(self) -> str:
        """The device that the suite names."""
        return self.device

    def problems(self, *, chosen: bool) -> Iterator[OptionProblem]:
        """Yield problems of the step; `precision` only if this kind was chosen, since published rates share it."""
        for option, what in self.step.problems():
            if chosen or self.asked_for or option != "precision":
                yield OptionProblem(option, what)

    def unknown_names(self, *, chosen: bool) -> Iterator[OptionProblem]:
        """Yield a model that torchvision lacks. With `auto`, a model that has a published rate is accepted."""
        known = [] if self.model == DEFAULT_MODEL else classifiers()
        if known and self.model.lower() not in known and (chosen or self.asked_for or not has_rate(self.model)):
            yield OptionProblem("model", f"torchvision has no classifier {self.model!r}{nearest(self.model, known)}")

    def why_not_made(self) -> str:
        """Say if torchvision has no such classifier."""
        from torchvision import models

        known = models.list_models(module=models)
        if self.model.lower() in known:
            return ""
        return f"consumer.model: torchvision has no classifier {self.model!r}{nearest(self.model, known)}"

    def why_not_on(self, gpus: int) -> str:
        """Say which GPU does not exist, or that a single GPU cannot share batches; empty if the model can run."""
        if not self.needs_accelerator:
            return ""
        if self.step.gpu_index >= gpus:
            has = "1 GPU; use cuda:0" if gpus == 1 else f"{gpus} GPUs, up to cuda:{gpus - 1}"
            return f"consumer.device: {self.device} does not exist; this machine has {has}"
        return "consumer.data_parallel needs 2 GPUs or more; drop it" if self.data_parallel and gpus < 2 else ""

    @property
    def in_step(self) -> bool:
        """True: `DistributedDataParallel` averages gradients in each step."""
        return True

    def why_not_in_ranks(self, ranks: int, gpus: int) -> str:
        """Why ranks cannot train: each rank needs its own GPU and process."""
        if self.data_parallel or self.cuda_graphs:
            name = "data_parallel" if self.data_parallel else "cuda_graphs"
            return f"consumer.{name} cannot be combined with ranks; drop one of them"
        if not self.needs_accelerator:
            return ""
        if self.device != "cuda":
            return f"consumer.device: {self.device} is one GPU, and each rank has its own; use cuda"
        if ranks > gpus:
            return f"{ranks} ranks need {ranks} GPUs, and this machine has {count(gpus, 'GPU')}; sweep fewer ranks"
        return ""

    def make(self, config: Mapping[str, Any], folder: Path, clock: Clock) -> Consumer:
        """Create the step."""
        from loaderbench.consumers.training_step import TrainingStep

        return TrainingStep(self.step)

    def make_for_any_batch(self, config: Mapping[str, Any], folder: Path, clock: Clock, rate: float) -> Consumer:
        """Create the step, and an emulated GPU for batches that it cannot train on; the first batch decides."""
        from loaderbench.consumers.by_first_batch import ByFirstBatch
        from loaderbench.consumers.emulated import EmulatedAccelerator, last_of_ranks

        emulated = EmulatedAccelerator(rate, clock, last_of_ranks=last_of_ranks())
        return ByFirstBatch(self.make(config, folder, clock), emulated, self.device, rate)


@cache
def classifiers() -> tuple[str, ...]:
    """The names of torchvision's classifiers, by its source, because an import takes seconds.

    Empty if torchvision is not installed or registers them differently.
    """
    found = find_spec("torchvision")
    files = [file for place in (found and found.submodule_search_locations) or () for file in _sources(Path(place))]
    names = {given or function for file in files for given, function in _REGISTERED.findall(file.read_text("utf-8"))}
    return tuple(sorted(names))


def _sources(place: Path) -> list[Path]:
    return sorted((place / "models").glob("[!_]*.py"))
