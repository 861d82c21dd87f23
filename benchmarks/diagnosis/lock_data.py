"""Datasets and loaders that serialize themselves: by a lock between processes, a locked file, the interpreter lock."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import queue
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import default_collate

from benchmarks.diagnosis import work
from benchmarks.diagnosis.opaque_data import Endless


class Locked(Endless):
    """All workers hash under one lock; without `held` they take it for a moment only."""

    def __init__(self, ms: float, held: bool = True) -> None:
        super().__init__(ms)
        self.held, self.lock = held, multiprocessing.Lock()

    def __getitem__(self, index: int) -> Any:
        with self.lock:
            value = work.hashing(self.ms) if self.held else 0
        return work.sample(index, value if self.held else work.hashing(self.ms))


class FileLocked(Endless):
    """The same by `flock`, as around a cache that processes share."""

    def __init__(self, ms: float, held: bool = True) -> None:
        super().__init__(ms)
        self.held, self.name = held, str(Path(tempfile.gettempdir(), f"loaderbench-diagnosis-{os.getpid()}.lock"))

    def __getitem__(self, index: int) -> Any:
        if not self.held:
            return work.sample(index, work.zipping(self.ms))
        with open(self.name, "a") as file:  # noqa: PTH123 - as users write it
            fcntl.flock(file, fcntl.LOCK_EX)
            return work.sample(index, work.zipping(self.ms))


class Threaded(Endless):
    """Fetches a batch in four threads, of which the interpreter lock lets one run."""

    pool: Any = None

    def __getitems__(self, indices: list[int]) -> list[Any]:
        self.pool = self.pool or ThreadPoolExecutor(4)
        return list(self.pool.map(self.one, indices))

    def one(self, index: int) -> Any:
        return work.sample(index, work.python(self.ms))


class ThreadedLoader:
    """No `DataLoader`: four threads in pure Python fill a queue of batches. `free`: with work outside of the lock."""

    def __init__(self, ms: float, free: bool = False) -> None:
        self.ms, self.work = ms, work.hashing if free else work.python

    def __iter__(self) -> Iterator[Any]:
        ready: queue.Queue[Any] = queue.Queue(4)
        over = threading.Event()
        threads = [threading.Thread(target=self._fill, args=(ready, over), daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            while True:
                yield ready.get()
        finally:
            over.set()

    def _fill(self, ready: queue.Queue[Any], over: threading.Event) -> None:
        while not over.is_set():
            batch: list[torch.Tensor] = default_collate([work.sample(0, self.work(self.ms)) for _ in range(8)])
            while not over.is_set():
                try:
                    ready.put(batch, timeout=0.1)
                    break
                except queue.Full:
                    continue
