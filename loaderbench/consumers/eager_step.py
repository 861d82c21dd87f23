"""Forward, backward and optimizer step of a torchvision classifier, launched kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from loaderbench.consumers.step_options import FP32, MIXED, TF32, StepOptions
from loaderbench.imagenet import MEAN, STD
from loaderbench.ranks import has_ranks

_NAMED = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def native_precision(kind: str = "cuda") -> torch.dtype | None:
    """The 16-bit type that a kind of GPU computes in. GPUs older than NVIDIA's Ampere only emulate bfloat16, slowly.

    `None` for a kind without mixed precision in torch.
    """
    if kind == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    if not torch.amp.is_autocast_available(kind):
        return None
    return torch.float16 if kind == "mps" else torch.bfloat16


class EagerStep:
    """One optimizer step, in the requested precision.

    float16 scales its loss, which training in float16 requires. A CUDA graph omits scaling, because scaling waits for
    the device. MPS omits it as well, as torch may lack what scaling needs.
    """

    def __init__(self, options: StepOptions, device: torch.device) -> None:
        self._options, self._device = options, device
        self._layout = torch.channels_last if options.channels_last else torch.contiguous_format
        self._autocast = _autocast_type(options.precision, device)
        self.model = self._model()
        self.optimizer = _optimizer(options, self.model)
        self._loss = torch.nn.CrossEntropyLoss()
        self._mean, self._std = (torch.tensor(values, device=device).view(3, 1, 1) * 255 for values in (MEAN, STD))
        scales = self._autocast == torch.float16 and not options.cuda_graphs and device.type != "mps"
        self._scaler = torch.amp.GradScaler(device.type, enabled=scales)
        if options.precision in (TF32, FP32) and options.on_cuda:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == TF32

    @property
    def computes_in(self) -> str:
        """The type that most of the step computes in, by torch's name, or `tf32` on GPUs since Ampere."""
        if self._autocast is not None:
            return str(self._autocast).removeprefix("torch.")
        has_tf32 = self._options.precision == TF32 and torch.cuda.get_device_capability(self._device) >= (8, 0)
        return TF32 if has_tf32 else "float32"

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """Train on a batch."""
        images = self._prepared(images)
        with self._precision():
            loss = self._loss_of(self._scores(images), labels.long())
        self.optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()
        self._scaler.step(self.optimizer)
        self._scaler.update()

    def _scores(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Scores of the model, and of its auxiliary classifiers if it has any.

        Raises `TypeError` if the model fails. The original error is in its text, since it may come from the device.
        """
        try:
            found = self.model(images)
        except torch.cuda.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError, AssertionError) as error:
            shape = tuple(images.shape)
            raise TypeError(
                f"consumer.model: {self._options.model} failed on images of shape {shape}: {error}"
            ) from error
        return (found,) if isinstance(found, torch.Tensor) else tuple(scores for scores in found if scores is not None)

    def _loss_of(self, scores: tuple[torch.Tensor, ...], labels: torch.Tensor) -> Any:
        losses = [self._loss(each, labels % each.shape[1]) for each in scores]
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum()

    def _precision(self) -> AbstractContextManager[Any]:
        """The autocast context, if any. Autocast's cache of cast weights is off under CUDA graphs."""
        if self._autocast is None:  # some devices have no autocast, not even one that is off
            return nullcontext()
        return torch.autocast(self._device.type, dtype=self._autocast, cache_enabled=not self._options.cuda_graphs)

    def _model(self) -> torch.nn.Module:
        import torchvision

        options = self._options
        net: torch.nn.Module = torchvision.models.get_model(options.model, weights=None)
        net = net.to(self._device, memory_format=self._layout).train()  # type: ignore[call-overload]
        if options.data_parallel:
            index = options.gpu_index
            others = [other for other in range(torch.cuda.device_count()) if other != index]
            return torch.nn.DataParallel(_InPrecision(net, self._precision), device_ids=[index, *others])
        if has_ranks():
            net = DistributedDataParallel(net, device_ids=[self._device.index] if options.on_cuda else None)
        return torch.compile(net) if options.compile else net  # type: ignore[return-value]

    def _prepared(self, images: torch.Tensor) -> torch.Tensor:
        """Convert images to float32, normalized, in the model's size and layout."""
        if images.dtype == torch.uint8:  # the workers left the images unnormalized
            images = (images.float() - self._mean) / self._std
        images = images.float()
        side = self._options.image_size
        if side is not None and images.shape[-2:] != (side, side):
            images = torch.nn.functional.interpolate(images, size=(side, side), mode="bilinear", antialias=True)
        return images.contiguous(memory_format=self._layout)


class _InPrecision(torch.nn.Module):
    """A model that enters autocast itself, as the threads in which `DataParallel` calls it do not inherit autocast."""

    def __init__(self, model: torch.nn.Module, precision: Callable[[], AbstractContextManager[Any]]) -> None:
        super().__init__()
        self._model, self._precision = model, precision

    def forward(self, images: torch.Tensor) -> Any:
        """Compute the scores."""
        with self._precision():
            return self._model(images)


def _optimizer(options: StepOptions, model: torch.nn.Module) -> torch.optim.Optimizer:
    parameters = model.parameters()
    if options.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    kind = torch.optim.AdamW if options.optimizer == "adamw" else torch.optim.Adam
    return kind(parameters, lr=1e-3, capturable=options.cuda_graphs)


def _autocast_type(precision: str, device: torch.device) -> torch.dtype | None:
    """The type of mixed precision; `None` if everything is computed in float32, as `mixed` is on a CPU."""
    if precision == MIXED:
        return native_precision(device.type) if device.type != "cpu" else None
    return _NAMED.get(precision)
