"""A sample is made by other threads of the loading process: a pool, or an event loop with one. All values are drawn.

The work releases the GIL, so threads of one process run at the same time.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch.utils.data import DataLoader

from benchmarks.diagnosis.drawn_work import COMPUTED_BY
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.helpers_of_workers import loop_in_a_thread
from benchmarks.diagnosis.opaque_data import Endless
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device
from benchmarks.diagnosis.work import sample, zipping

_DRAW = Draws(20261202)
STEP_MS = 1.0


class InAPool(Endless):
    """A sample has one part per thread of a pool."""

    def __init__(self, ms: float, threads: int) -> None:
        super().__init__(ms)
        self.threads = threads
        self.pool: ThreadPoolExecutor | None = None

    def __getitem__(self, index: int) -> Any:
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.threads)
        made = [*self.pool.map(zipping, [self.ms] * self.threads)]
        return sample(index, made[0])


class InALoop(InAPool):
    """An event loop in another thread hands the parts to its pool, as zarr does it."""

    loop: asyncio.AbstractEventLoop | None = None

    def __getitem__(self, index: int) -> Any:
        self.loop = self.loop or loop_in_a_thread()
        made = asyncio.run_coroutine_threadsafe(self._all(), self.loop).result()
        return sample(index, made[0])

    async def _all(self) -> list[float]:
        return await asyncio.gather(*(asyncio.to_thread(zipping, self.ms) for _ in range(self.threads)))


def made_in_threads(kind: str, workers: int, *, batch: int, threads: int, ms: float) -> Loop:
    dataset = {"pool": InAPool, "loop": InALoop}[kind](ms, threads)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers), device(STEP_MS))


def _drawn(number: int) -> Scenario:
    arguments = {
        "kind": _DRAW.choice(["pool", "loop"]),
        "workers": _DRAW.randint(0, 3),
        "batch": _DRAW.choice([4, 8, 16]),
        "threads": _DRAW.choice([1, 1, 2]),
        "ms": _DRAW.ms(2, 8),
    }
    why = "{threads} parts a sample, {ms} ms each, by a {kind} of threads of {workers} workers.".format(**arguments)
    at_once = max(1, arguments["workers"]) * arguments["threads"]
    limits = COMPUTED_BY[min(4, at_once)] if arguments["workers"] else "workers cpu"
    words = because_of("sample", limits)
    return Scenario(
        f"working_threads_drawn_{number}", why, made_in_threads, arguments, words, {"cheaper_sample": {"ms": 0.05}}
    )


SCENARIOS = tuple(map(_drawn, range(10)))
