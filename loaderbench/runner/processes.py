"""Ends what a trial started, all of it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from loaderbench.runner.orders import LEAVE

GRACE_S = 10.0  # a worker finishes its batch before it looks up


def end_trial(process: BaseProcess, pipe: Connection | None, grace_s: float) -> None:
    """End a trial's session and every process below it; with a pipe, let it end by itself first."""
    below = _descendants(process.pid)  # before it ends: a child with a session of its own is then no longer found
    if pipe is not None:
        with suppress(OSError):
            pipe.send(LEAVE)
        process.join(grace_s)
    if process.pid is not None and hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    for child in below:
        with suppress(psutil.Error):
            child.kill()
    if process.is_alive():
        process.kill()
    process.join()
    _remove_shared_memory([process.pid or -1, *(child.pid for child in below)])


def _descendants(pid: int | None) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _remove_shared_memory(pids: list[int]) -> None:
    """Remove the files that torch's `file_system` sharing leaves when its owner is killed."""
    for pid in pids:
        for file in Path("/dev/shm").glob(f"torch_{pid}_*"):
            file.unlink(missing_ok=True)
