"""A training step of a torchvision classifier."""

from __future__ import annotations

from typing import Any

import torch

from loaderbench.consumers.batch_parts import why_no_classifier
from loaderbench.consumers.cuda import CudaWaitClock, RunAhead
from loaderbench.consumers.prefetch import Copies, InLine, OnSideStream


def native_precision(device: torch.device) -> torch.dtype:
    """The 16-bit type that the device computes in; older ones than NVIDIA's Ampere only emulate bfloat16, slowly."""
    native = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if native else torch.float16


class TrainingStep:
    """Forward, backward and update of a torchvision classifier, in mixed precision.

    Labels beyond the classes of the model are wrapped: what they say does not matter here. With `prefetch_stream`, the
    copy of a batch overlaps with the step of the one before.
    """

    def __init__(self, model: str, device: str = "cuda", *, prefetch_stream: bool = False) -> None:
        import torchvision

        self._device = torch.device(device)
        net = torchvision.models.get_model(model, weights=None).to(self._device, memory_format=torch.channels_last)
        self._model: torch.nn.Module = net.train()
        self._optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        self._loss = torch.nn.CrossEntropyLoss()
        self._mean, self._std = (
            torch.tensor(values, device=self._device).view(3, 1, 1) * 255
            for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # torchvision's, as the recipes have them
        )
        on_side_stream = prefetch_stream and self._device.type == "cuda"
        self._copies: Copies = OnSideStream(self._device) if on_side_stream else InLine(self._device)
        self._precision = native_precision(self._device)
        self._run_ahead = RunAhead(self._device.index) if self._device.type == "cuda" else None
        self.wait_clock = CudaWaitClock(self._device.index)

    def consume(self, batch: Any, samples: int) -> None:
        """Queue the copy and the step on the device. Raises `TypeError` for batches that no classifier takes."""
        if why := why_no_classifier(batch):
            raise TypeError(f"consumer.kind: model trains an image classifier, and {why}")
        copied = self._copies.to_device(batch[:2])
        if copied is not None:
            self._train(*copied)
        if self._run_ahead is not None:
            self._run_ahead.queued()

    def _train(self, images: Any, labels: Any) -> None:
        if images.dtype == torch.uint8:  # left so by the workers
            images = (images.float() - self._mean) / self._std
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self._device.type, dtype=self._precision):
            scores = self._model(images)
            loss = self._loss(scores, labels % scores.shape[1])
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
