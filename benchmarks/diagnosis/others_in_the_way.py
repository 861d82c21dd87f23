"""Loaders that wait for something next to them: a process that makes their data, or a thread that holds the GIL.

Times, sizes and worker counts are drawn at random from one seed.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from benchmarks.diagnosis import work
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.opaque_data import Hashing
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

_DRAWS = Draws(20261128)
WAYS = ("queue", "simple_queue", "pipe")


class Received(IterableDataset[Any]):
    """Yields what another process sends."""

    def __init__(self, receive: Any, lock: Any) -> None:
        self.receive, self.lock = receive, lock

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield self.receive() if self.lock is None else self._locked()

    def _locked(self) -> Any:
        with self.lock:
            return self.receive()


def fed(workers: int, *, way: str, ms: float, batch: int) -> Loop:
    """One process makes all samples, and the workers receive them."""
    send, receive, lock = _ends(way)
    producer = multiprocessing.Process(target=_make, args=(send, ms), daemon=True)

    @contextmanager
    def producing() -> Iterator[None]:
        producer.start()
        try:
            yield
        finally:
            producer.kill()
            producer.join()

    dataset = Received(receive, lock)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers), device(1), within=producing)


def _ends(way: str) -> tuple[Any, Any, Any]:
    if way == "queue":
        queue: Any = multiprocessing.Queue(64)
        return queue.put, queue.get, None
    if way == "simple_queue":
        simple: Any = multiprocessing.SimpleQueue()
        return simple.put, simple.get, None
    reader, writer = multiprocessing.Pipe(duplex=False)
    return writer.send, reader.recv, multiprocessing.Lock()


def _make(send: Any, ms: float) -> None:
    torch.set_num_threads(1)
    index = 0
    while True:
        work.hashing(ms)
        send((index % 100, float(index)))
        index += 1


def next_to_a_thread(
    workers: int, *, ms: float, batch: int, pause_ms: float, step_ms: float, busy: bool = True
) -> Loop:
    """A thread of the training process runs Python code all the time, but for short pauses."""

    @contextmanager
    def working() -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=_work, args=(over, pause_ms if busy else 1e3), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    return Loop(
        lambda: DataLoader(Hashing(ms), batch, num_workers=workers), device(step_ms), seconds=6.0, within=working
    )


def _work(over: threading.Event, pause_ms: float) -> None:
    while not over.is_set():
        work.python(20)
        time.sleep(pause_ms / 1e3)


def _fed(number: int) -> Scenario:
    arguments = {
        "workers": _DRAWS.randint(0, 3),
        "way": _DRAWS.choice(WAYS),
        "ms": _DRAWS.ms(1, 8),
        "batch": _DRAWS.choice([4, 8, 16]),
    }
    why = "One process makes a sample in {ms} ms, and {workers} workers receive it ({way}).".format(**arguments)
    fixes = {"feeding_process": {"ms": 0.0}}
    return Scenario(f"fed_drawn_{number}", why, fed, arguments, because_of("sample", "lock"), fixes)


def _next_to_a_thread(number: int) -> Scenario:
    """Where the samples cost little, so the workers are idle."""
    arguments = {
        "workers": _DRAWS.randint(1, 3),
        "ms": _DRAWS.ms(0.1, 0.5),
        "batch": _DRAWS.choice([4, 8, 16]),
        "pause_ms": _DRAWS.ms(0.1, 4),
        "step_ms": _DRAWS.ms(1, 4),
    }
    why = "A thread runs Python code with pauses of {pause_ms} ms, next to {workers} workers.".format(**arguments)
    words = because_of("transport", "lock")
    return Scenario(
        f"gil_thread_drawn_{number}", why, next_to_a_thread, arguments, words, {"background_thread": {"busy": False}}
    )


SCENARIOS = (*map(_fed, range(6)), *map(_next_to_a_thread, range(6)))
