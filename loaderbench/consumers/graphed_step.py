"""A training step as a CUDA graph: recorded once for each shape of batch, then replayed with one launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

WARM_UP_STEPS = 3


class GraphedStep:
    """Replays the whole step, the update included, on its own copies of images and labels.

    Source: PyTorch, "CUDA semantics", "Whole-network capture". Batches of a shape that comes up later, such as the last
    of an epoch, get a graph of their own from the same memory pool.
    """

    def __init__(self, step: Callable[[torch.Tensor, torch.Tensor], None]) -> None:
        self._step = step
        self._recorded: dict[tuple[Any, ...], tuple[Any, torch.Tensor, torch.Tensor]] = {}
        self._pool: Any = None

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """Train on a batch. Raises what CUDA says where the step cannot be recorded."""
        key = (images.shape, images.dtype, labels.dtype)
        if key not in self._recorded:
            self._recorded[key] = self._record(images.clone(), labels.clone())
        graph, own_images, own_labels = self._recorded[key]
        own_images.copy_(images, non_blocking=True)
        own_labels.copy_(labels, non_blocking=True)
        graph.replay()

    def _record(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor]:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self._step(images, labels)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            self._step(images, labels)
        self._pool = self._pool or graph.pool()
        return graph, images, labels
