"""A training step of a torchvision classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from loaderbench.consumers.accelerator import device_here, synchronize
from loaderbench.consumers.batch_parts import parts_of, why_no_classifier
from loaderbench.consumers.cuda import CudaWaitClock, RunAhead
from loaderbench.consumers.eager_step import EagerStep
from loaderbench.consumers.graphed_step import GraphedStep
from loaderbench.consumers.kind import HostWaitClock, WaitClock
from loaderbench.consumers.prefetch import Copies, InLine, OnSideStream
from loaderbench.consumers.step_options import StepOptions
from loaderbench.ranks import has_ranks, local_rank


class TrainingStep:
    """Forward, backward and update of a torchvision classifier.

    On CUDA, it returns once the step is queued; on another GPU, once it is done. Labels are taken modulo the number of
    classes. With `prefetch_stream`, the copy of a batch overlaps with the step of the one before. In a process group,
    ranks train together (`DistributedDataParallel`), each on the GPU of its local rank.
    """

    def __init__(self, options: StepOptions) -> None:
        options = _on_this_machine(options)
        index = local_rank() if has_ranks() else options.gpu_index
        self._device = torch.device("cuda", index) if options.on_cuda else torch.device(options.device)
        if options.on_cuda:
            torch.cuda.set_device(self._device)  # streams and graphs are those of the current one; needs an index
        step = EagerStep(options, self._device)
        self.computes_in = step.computes_in
        self._train: Callable[[torch.Tensor, torch.Tensor], None] = GraphedStep(step) if options.cuda_graphs else step
        side_stream = options.prefetch_stream and options.on_cuda
        self._copies: Copies = OnSideStream(self._device) if side_stream else InLine(self._device)
        self._run_ahead = RunAhead(self._device.index) if options.on_cuda else None
        self._waits_for_device = options.on_gpu and not options.on_cuda
        self.wait_clock: WaitClock = CudaWaitClock(self._device.index) if options.on_cuda else HostWaitClock()

    def consume(self, batch: Any, samples: int) -> None:
        """Queue the copy and the step on the device. Raises `TypeError` for batches that no classifier takes."""
        if why := why_no_classifier(batch):
            raise TypeError(f"consumer.kind: model trains an image classifier, and {why}")
        images, labels, *_ = parts_of(batch) or ()
        copied = self._copies.to_device([images, labels])
        if copied is not None:
            self._train(*copied)
        if self._run_ahead is not None:
            self._run_ahead.queued()
        if self._waits_for_device:
            synchronize(self._device)


def _on_this_machine(options: StepOptions) -> StepOptions:
    """The options with the device that is meant here. Raises `TypeError` for what such a device cannot do."""
    found = replace(options, device=device_here(options.device))
    for option, what in found.problems():
        raise TypeError(f"consumer.{option} on {found.device}: {what}")
    return found
