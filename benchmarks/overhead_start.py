"""Cost of importing, and memory of a million steps, each in new interpreters: for `overhead.py`."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from statistics import median
from typing import Any

import psutil

EMPTY = "pass"
IMPORTS = ("import loaderbench", "from loaderbench import Profiler")


@dataclass(frozen=True)
class Import:
    """Seconds beyond an interpreter that does nothing: the median of pairs, and minimum minus minimum."""

    median_s: float
    least_s: float
    torch: bool


@dataclass(frozen=True)
class Memory:
    """Growth over a number of steps: resident, and the peak of what Python allocated."""

    resident_bytes: int
    python_bytes: int


def imports(rounds: int) -> dict[str, Import]:
    """Measure imports, interleaved with an interpreter that does nothing."""
    took: dict[str, list[float]] = {code: [] for code in (EMPTY, *IMPORTS)}
    for _ in range(rounds):
        for code, found in took.items():
            began_s = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            found.append(time.perf_counter() - began_s)
    return {code: import_of(took[code], took[EMPTY], loads_torch(code)) for code in IMPORTS}


def import_of(took_s: list[float], empty_s: list[float], torch: bool) -> Import:
    pairs = [one - other for one, other in zip(took_s, empty_s, strict=True)]
    return Import(median(pairs), min(took_s) - min(empty_s), torch)


def loads_torch(code: str) -> bool:
    asked = f"{code}; import sys; sys.exit('torch' in sys.modules)"
    return subprocess.run([sys.executable, "-c", asked], check=False).returncode != 0


def memory(steps: int) -> Memory:
    """Measure in a process that has done nothing else."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(grown, steps).result()


def grown(steps: int) -> Memory:
    import torch

    from loaderbench import Profiler

    batch, process = (torch.zeros(4, 2), torch.zeros(4)), psutil.Process()
    with Profiler() as profiler:
        walk(profiler, batch, 10_000)  # exclude memory of modules loaded on first use
        before = process.memory_info().rss
        walk(profiler, batch, steps)
        resident = process.memory_info().rss - before
    tracemalloc.start()
    with Profiler() as profiler:
        walk(profiler, batch, steps)
    return Memory(resident, tracemalloc.get_traced_memory()[1])


def walk(profiler: Any, batch: object, steps: int) -> None:
    for _ in profiler.iter(repeat(batch, steps)):
        pass
