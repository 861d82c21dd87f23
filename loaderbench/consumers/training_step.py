"""A training step of a torchvision classifier, optionally as a CUDA graph, with the copy of the batch to the GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch

from loaderbench.consumers.accelerator import device_here, synchronize
from loaderbench.consumers.batch_parts import parts_of, why_no_classifier
from loaderbench.consumers.cuda import CudaWaitClock, RunAhead
from loaderbench.consumers.eager_step import EagerStep
from loaderbench.consumers.kind import HostWaitClock, WaitClock
from loaderbench.consumers.step_options import StepOptions
from loaderbench.ranks import has_ranks, local_rank

WARM_UP_STEPS = 3
MOST_GRAPHS = 4
"""Maximum number of graphs, one per shape; each holds the memory of a step."""


class TrainingStep:
    """Forward, backward and optimizer step of a torchvision classifier.

    On CUDA, it returns once the step is queued; on another GPU, once the step is done. Labels are taken modulo the
    number of classes. With `prefetch_stream`, the copy of a batch overlaps with the step of the previous one. In a
    process group, ranks train together (`DistributedDataParallel`), each on the GPU of its local rank.
    """

    def __init__(self, options: StepOptions) -> None:
        options = _on_this_machine(options)
        index = local_rank() if has_ranks() else options.gpu_index
        self._device = torch.device("cuda", index) if options.on_cuda else torch.device(options.device)
        if options.on_cuda:
            torch.cuda.set_device(self._device)  # streams and graphs use the current device; needs an index
        step = EagerStep(options, self._device)
        self.computes_in = step.computes_in
        self._train: Callable[[torch.Tensor, torch.Tensor], None] = GraphedStep(step) if options.cuda_graphs else step
        side_stream = options.prefetch_stream and options.on_cuda
        self._copies: Copies = OnSideStream(self._device) if side_stream else InLine(self._device)
        self._run_ahead = RunAhead(self._device.index) if options.on_cuda else None
        self._waits_for_device = options.on_gpu and not options.on_cuda
        self.wait_clock: WaitClock = CudaWaitClock(self._device.index) if options.on_cuda else HostWaitClock()

    def consume(self, batch: Any, samples: int) -> None:
        """Queue the copy and the step on the device. Raises `TypeError` for batches that a classifier cannot take."""
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
    """The options with this machine's device. Raises `TypeError` for options that the device does not support."""
    found = replace(options, device=device_here(options.device))
    for option, what in found.problems():
        raise TypeError(f"consumer.{option} on {found.device}: {what}")
    return found


class Copies(Protocol):
    """Copies the parts of a batch from the host, and returns the parts of the batch to train on."""

    def to_device(self, parts: Sequence[Any]) -> Sequence[Any] | None:
        """Queue the copy; `None` if no batch is ready yet."""
        ...


class InLine:
    """Copy on the computing stream, without overlap with the step."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def to_device(self, parts: Sequence[Any]) -> Sequence[Any] | None:
        """Queue the copy, and return the same batch."""
        is_ordered = self._device.type != "cpu"  # a copy to the host is complete only if the host waits for it
        return [part.to(self._device, non_blocking=is_ordered) for part in parts]


class OnSideStream:
    """Copy a batch on a separate stream, and return the previous batch, whose step computes during the copy.

    Only copies from pinned memory return immediately. Source: the prefetcher of NVIDIA's Deep Learning Examples.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._ready: tuple[list[Any], Any] | None = None

    def to_device(self, parts: Sequence[Any]) -> Sequence[Any] | None:
        """Queue the copy, and return the batch queued before; `None` at first."""
        with torch.cuda.stream(self._stream):
            copied = [part.to(self._device, non_blocking=True) for part in parts]
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record(self._stream)
        before, self._ready = self._ready, (copied, done)
        return None if before is None else self._wait_for_copy(*before)

    def _wait_for_copy(self, copied: list[Any], done: Any) -> list[Any]:
        """Make the computing stream wait for the copy, and keep the memory until that stream is done with it."""
        computes = torch.cuda.current_stream(self._device)
        computes.wait_event(done)
        for part in copied:
            part.record_stream(computes)
        return copied


class GraphedStep:
    """Replay the complete step, including the optimizer, on its own copies of images and labels.

    Each new shape, such as that of an epoch's last batch, is captured as a separate graph in the same memory pool.
    Beyond `MOST_GRAPHS`, batches are trained on without a graph. Source: PyTorch, "CUDA semantics", "Whole-network
    capture".
    """

    def __init__(self, step: Callable[[torch.Tensor, torch.Tensor], None]) -> None:
        self._step = step
        self._captured: dict[tuple[Any, ...], tuple[Any, torch.Tensor, torch.Tensor]] = {}
        self._pool: Any = None

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """Train on a batch. Raises CUDA's error if capture fails."""
        key = (images.shape, images.dtype, labels.dtype)
        if key not in self._captured:
            if len(self._captured) >= MOST_GRAPHS:
                self._step(images, labels)
                return
            self._captured[key] = self._capture(images.clone(), labels.clone())
        graph, own_images, own_labels = self._captured[key]
        own_images.copy_(images, non_blocking=True)
        own_labels.copy_(labels, non_blocking=True)
        graph.replay()

    def _capture(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor]:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self._step(images, labels)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # "thread_local": torch's pinning thread may call CUDA during the capture
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            self._step(images, labels)
        self._pool = self._pool or graph.pool()
        return graph, images, labels
