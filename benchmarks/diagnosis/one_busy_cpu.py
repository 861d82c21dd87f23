"""A main process that loads without workers and is blocked while its other threads keep one CPU busy.

The threads spin, or they hold the GIL: CPU use is the same. Times and sizes are drawn at random from one seed.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.utils.data import DataLoader

from benchmarks.diagnosis import lock_data
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.opaque_data import Endless
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

_DRAWS = Draws(20261122)


class Tensors(Endless):
    """Sleeps, then fills a tensor with OpenMP, whose threads spin until the next sample."""

    def __init__(self, ms: float, side: int) -> None:
        super().__init__(ms)
        self.side = side

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.ms / 1e3)
        return torch.full((3, self.side, self.side), float(index % 7)), index


def while_threads_spin(*, ms: float, side: int, batch: int, workers: int = 0) -> Loop:
    torch.set_num_threads(2)  # as torch does by itself on two CPUs; the other scenarios have one thread
    dataset = Tensors(ms, side)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers), device(2))


def in_threads(*, ms: float, batch: int, workers: int = 0) -> Loop:
    dataset = lock_data.Threaded(ms)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers), device(2))


MORE = {"main_process_loading": {"workers": 4}, "more_workers": {"workers": 4}, "workers_beyond_cores": {"workers": 8}}


def _waits(number: int) -> Scenario:
    arguments = {
        "ms": round(_DRAWS.uniform(2, 10), 1),
        "side": _DRAWS.randrange(160, 320),
        "batch": _DRAWS.choice([4, 8, 16, 32]),
    }
    why = "{ms} ms of waiting a sample, tensors of {side} pixels, batches of {batch}.".format(**arguments)
    words = because_of("read sample", "storage_latency")
    return Scenario(f"latency_spinning_{number}_w0", why, while_threads_spin, arguments, words, MORE)


def _in_threads(number: int) -> Scenario:
    arguments = {"ms": round(_DRAWS.uniform(2, 10), 1), "batch": _DRAWS.choice([4, 8, 16, 32])}
    why = "Four threads in pure Python, {ms} ms a sample, batches of {batch}; workers are right, too.".format(
        **arguments
    )
    words = because_of("sample", "lock workers")
    return Scenario(f"lock_interpreter_{number}_w0", why, in_threads, arguments, words, MORE)


SCENARIOS = (*(_waits(number) for number in range(5)), *(_in_threads(number) for number in range(3)))
