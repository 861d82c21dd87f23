"""Makes a trial repeatable: seeds for this process and for each draw, and deterministic algorithms."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from loaderbench.loaders.seeded import SeededSamples, seed_all

_UNREPEATABLE = re.compile(r"(\S+) does not have a deterministic implementation")


def make_deterministic(seed: int) -> Callable[[], str]:
    """Seed this process and enable torch's deterministic algorithms; an operation that has none only warns.

    Returns a function that names the nondeterministic operations that have run, in a sentence; empty if none did. Call
    this before CUDA starts, because cuBLAS reads its workspace size then. Source: PyTorch, "Reproducibility".
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    seed_all(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    operations = _unrepeatable_operations()

    def note() -> str:
        named = ", ".join(operations)
        return f"measure.deterministic: torch cannot repeat {named} exactly, so training may differ" if named else ""

    return note


def _unrepeatable_operations() -> dict[str, None]:
    """Collect the operations that torch warns about from now on; the warnings are still shown."""
    operations, shown = dict[str, None](), warnings.showwarning

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        if found := _UNREPEATABLE.match(str(message)):
            operations[found[1]] = None
        shown(message, *args, **kwargs)

    warnings.showwarning = show
    return operations


def seeded(source: Any, seed: int) -> Any:
    """The map-style dataset with a seed for each draw; other sources draw from this process's seed."""
    if isinstance(source, DataLoader | IterableDataset | list | tuple | dict):
        return source
    map_style = hasattr(source, "__getitem__") and hasattr(source, "__len__")
    return SeededSamples(source, seed) if map_style else source
