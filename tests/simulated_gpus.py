"""A user's module on a machine with two GPUs, of which its step uses the second; torch has to find none.

The parts of `torch.cuda` that a run calls are played here, by the host's clock; the NVML below is that of `nvml_stub`.
"""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import Any

import torch

USED = 1
_begun: list[bool] = []


class Event:
    """Reached when it is recorded: nothing is ever queued."""

    def __init__(self, **_: Any) -> None:
        self.at_s = 0.0

    def record(self, *_: Any) -> None:
        self.at_s = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, later: Event) -> float:
        return 1000 * (later.at_s - self.at_s)


def step(batch: Any) -> None:
    _begun.append(True)
    time.sleep(0.005)


def _properties(index: int) -> Any:
    return SimpleNamespace(
        uuid=os.environ.get("SIMULATED_UUID") or str(index), name="Simulated", total_memory=80_000_000_000
    )


for name, replaced in {
    "is_available": lambda: True,
    "is_initialized": lambda: bool(_begun),
    "device_count": lambda: 2,
    "get_device_properties": _properties,
    "current_device": lambda: USED,
    "current_stream": lambda _device=None: None,
    "max_memory_reserved": lambda index: 1 << 20 if index == USED else 0,
    "max_memory_allocated": lambda index: 1 << 19 if index == USED else 0,
    "synchronize": lambda *_: None,
    "Event": Event,
}.items():
    setattr(torch.cuda, name, replaced)
torch._C._cuda_getCurrentRawStream = lambda _device: 0  # type: ignore[assignment]
