"""A training step as a CUDA graph: captured once for each shape of batch, then replayed with one launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

WARM_UP_STEPS = 3
MOST_GRAPHS = 4
"""Of different shapes: each holds the memory of a step."""


class GraphedStep:
    """Replays the whole step, the update included, on its own copies of images and labels.

    Each new shape, such as that of an epoch's last batch, is captured as a separate graph in the same memory pool.
    Beyond `MOST_GRAPHS`, batches are trained on without a graph.

    Source: PyTorch, "CUDA semantics", "Whole-network capture".
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
        # "thread_local": torch's pinning thread may call CUDA meanwhile
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            self._step(images, labels)
        self._pool = self._pool or graph.pool()
        return graph, images, labels
