"""A loading process waits for what it started itself, or for requests of random duration. All values are drawn.

Threads or an event loop fetch objects from a server, or each sample is compressed by another program. Latencies vary
from one request to the next, so a slope of time over bytes can appear by chance.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, Dataset

from benchmarks.diagnosis.data import uneven_files
from benchmarks.diagnosis.drawn_work import COMPUTED_BY
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device
from benchmarks.diagnosis.storage_data import Fetched, Files, server
from benchmarks.diagnosis.work import sample

_DRAW = Draws(20261129)
STEP_MS = 1.0


class Jittery(Files):
    """Each file takes a time that does not depend on its bytes: exponential, or ten times the usual for one in ten."""

    def __init__(self, paths: list[str], mean_s: float, *, is_exponential: bool) -> None:
        super().__init__(paths)
        self.mean_s, self.is_exponential = mean_s, is_exponential

    def __getitem__(self, index: int) -> Any:
        content = Path(self.path(index)).read_bytes()
        chance = random.Random(index)
        rare = self.mean_s / 1.9 * (10 if chance.random() < 0.1 else 1)
        time.sleep(chance.expovariate(1 / self.mean_s) if self.is_exponential and self.mean_s else rare)
        return sample(index, content[0])


class InParts(Fetched):
    """A sample has several parts, each from the server."""

    def __init__(self, port: int, parts: int) -> None:
        super().__init__(port, timeout_s=10.0)
        self.parts = parts


def loop_in_a_thread() -> asyncio.AbstractEventLoop:
    """An event loop that runs in a thread of its own, as that of fsspec."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


class InThreads(InParts):
    """The parts are fetched by a pool of threads of the loading process."""

    pool: ThreadPoolExecutor | None = None

    def __getitem__(self, index: int) -> Any:
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.parts)
        fetched = [*self.pool.map(super().__getitem__, [index] * self.parts)]
        return fetched[0]


class InALoop(InParts):
    """The parts are fetched by an event loop in a thread, as fsspec does it."""

    loop: asyncio.AbstractEventLoop | None = None

    def __getitem__(self, index: int) -> Any:
        self.loop = self.loop or loop_in_a_thread()
        found = asyncio.run_coroutine_threadsafe(self._all(), self.loop).result()
        return sample(index, found[0][0])

    async def _all(self) -> list[bytes]:
        return await asyncio.gather(*(self._one() for _ in range(self.parts)))

    async def _one(self) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET\n")
        content = await reader.read(-1)
        writer.close()
        return content


class Compressed(Dataset[Any]):
    """Each sample is compressed by gzip, in a process of its own."""

    def __init__(self, kilobytes: int) -> None:
        self.content = random.Random(0).randbytes(kilobytes * 1000)

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        found = subprocess.run(["gzip", "-c"], input=self.content, capture_output=True, check=True).stdout
        return sample(index, found[-1])


def jittery(workers: int, *, batch: int, mean_s: float, is_exponential: bool) -> Loop:
    dataset = Jittery(uneven_files(), mean_s, is_exponential=is_exponential)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers), device(STEP_MS))


def helped(kind: str, workers: int, *, batch: int, parts: int, latency_s: float) -> Loop:
    answers = server(latency_s)
    dataset = {"threads": InThreads, "loop": InALoop}[kind](answers.port, parts)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers), device(STEP_MS), within=answers)


def compressed(workers: int, *, batch: int, kilobytes: int) -> Loop:
    return Loop(lambda: DataLoader(Compressed(kilobytes), batch, num_workers=workers), device(STEP_MS))


def _jitter(number: int) -> Scenario:
    arguments = {
        "workers": _DRAW.randint(1, 6),
        "batch": _DRAW.choice([2, 4, 8]),
        "mean_s": _DRAW.ms(10, 40) / 1e3,
        "is_exponential": _DRAW.random() < 0.5,
    }
    why = "{mean_s:.4f} s a file on average, at random, {workers} workers, batches of {batch}.".format(**arguments)
    words = because_of("read sample stragglers", "storage_latency order")
    return Scenario(f"jitter_drawn_{number}", why, jittery, arguments, words, {"cold_cache": {"mean_s": 0.0}})


def _helped(number: int) -> Scenario:
    arguments = {
        "kind": _DRAW.choice(["threads", "loop"]),
        "workers": _DRAW.randint(0, 3),
        "batch": _DRAW.choice([2, 4, 8]),
        "parts": _DRAW.randint(2, 8),
        "latency_s": _DRAW.ms(15, 60) / 1e3,
    }
    why = "{parts} parts a sample, {latency_s:.4f} s each, by {kind} of {workers} workers.".format(**arguments)
    words = because_of("read sample", "storage_latency")
    return Scenario(f"helped_drawn_{number}", why, helped, arguments, words, {"cold_cache": {"latency_s": 0.0}})


def _compressed(number: int) -> Scenario:
    arguments = {
        "workers": _DRAW.randint(0, 4),
        "batch": _DRAW.choice([2, 4, 8]),
        "kilobytes": _DRAW.randint(300, 1500),
    }
    why = "gzip compresses {kilobytes} kB a sample, {workers} workers, batches of {batch}.".format(**arguments)
    words = because_of("sample read", COMPUTED_BY[arguments["workers"]])
    return Scenario(f"program_drawn_{number}", why, compressed, arguments, words, {"cheaper_sample": {"kilobytes": 1}})


SCENARIOS = (*map(_jitter, range(8)), *map(_helped, range(8)), *map(_compressed, range(6)))
