"""What makes a trial repeatable: seeds of this process, deterministic algorithms, and a seed for each draw."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset

from loaderbench.loaders.seeded import SeededSamples, seed_all


def make_deterministic(seed: int) -> None:
    """Seed this process, and let torch use deterministic algorithms; an operation that has none warns.

    Source: PyTorch, "Reproducibility".
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    seed_all(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)


def seeded(source: Any, seed: int) -> Any:
    """A map-style dataset whose draws are seeded; anything else draws as it likes, from this process's seed."""
    if isinstance(source, Dataset) and not isinstance(source, IterableDataset):
        return SeededSamples(source, seed)
    return source
