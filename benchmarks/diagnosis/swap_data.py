"""Datasets in memory that is too small for them, and what gives a process too little memory."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import Dataset, get_worker_info

from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.running import MARK
from benchmarks.diagnosis.work import hashing, sample

KEEPER = Path(__file__).with_name("swap_keeper.py")
SWAP_MIB = 4096
PAGE_OUT = 21  # MADV_PAGEOUT of Linux 5.4
_PAGE_BYTES = 4096


@contextmanager
def group_with_swap(limit_mib: int, swap_mib: int = SWAP_MIB) -> Iterator[Path]:
    """A control group with so much memory, and a swap file. Raises `OSError` if that is not allowed."""
    environment = {name: value for name, value in os.environ.items() if name != MARK}  # it outlives its scenario
    command = [sys.executable, str(KEEPER), str(limit_mib), str(swap_mib)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            said = keeper.stdout.readline().strip()
            if not said.startswith("/"):
                raise OSError(said)
            yield Path(said)
        finally:
            with suppress(BrokenPipeError):
                keeper.stdin.write("end\n")  # workers have inherited the pipe, so closing it does not end it
                keeper.stdin.flush()
            keeper.wait()


@contextmanager
def limited_to(limit_mib: int) -> Iterator[None]:
    """Give this process, and what it starts, so much more memory than it has already."""
    with group_with_swap(limit_mib) as group:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield


@cache
def no_swap() -> str | None:
    """Say why memory cannot be swapped out here, or nothing."""
    try:
        with group_with_swap(64, 16):
            return None
    except OSError as error:
        return str(error)


def filled(mib: int) -> np.ndarray[Any, Any]:
    """Rows of a page each, none of them zero."""
    rows = np.empty((mib << 8, _PAGE_BYTES), np.uint8)
    rows[:] = np.random.default_rng(0).integers(1, 255, _PAGE_BYTES, dtype=np.uint8)
    return rows


def paged_out(mib: int) -> mmap.mmap:
    """Memory that is in swap and that nobody reads."""
    held = mmap.mmap(-1, mib << 20)
    held.write(b"\x01" * (mib << 20))
    held.madvise(PAGE_OUT)
    return held


class InMemory(Dataset[Any]):
    """A sample is `pages` pages of one array, each at a random place.

    In `each`, all processes share the array, or every worker copies it before its first sample. `hash_ms` is further
    work on a sample.
    """

    def __init__(self, mib: int, pages: int, each: str, hash_ms: float) -> None:
        self.rows, self.pages, self.each, self.hash_ms = filled(mib), pages, each, hash_ms
        self.own: np.ndarray[Any, Any] | None = None

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        if self.own is None:
            self.own = self.rows.copy() if self.each == "copies" and get_worker_info() else self.rows
        hashing(self.hash_ms)
        places = np.random.default_rng(index).integers(len(self.own), size=self.pages)
        return sample(index, float(self.own[places, 0].sum()))


class Objects(Dataset[Any]):
    """A sample is `count` objects of a long list: reading one writes its reference count, so each worker copies it."""

    def __init__(self, mib: int, count: int) -> None:
        self.count = count
        text = np.random.default_rng(0).integers(1, 255, _PAGE_BYTES, dtype=np.uint8).tobytes()
        self.parts = [text[:-1] + bytes([1 + number % 255]) for number in range(mib << 8)]

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        chosen = np.random.default_rng(index).integers(len(self.parts), size=self.count).tolist()
        return sample(index, float(sum(self.parts[place][-1] for place in chosen)))


class Mapped(Dataset[Any]):
    """A sample is `pages` pages of a mapped file, each at a random place."""

    rows: Any = None

    def __init__(self, path: Path, pages: int) -> None:
        self.path, self.pages = path, pages

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        if self.rows is None:
            self.rows = np.memmap(self.path, np.uint8, "r").reshape(-1, _PAGE_BYTES)
        places = np.random.default_rng(index).integers(len(self.rows), size=self.pages)
        return sample(index, float(self.rows[places, 0].sum()))
