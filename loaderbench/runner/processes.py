"""Ends what a trial started, all of it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

GRACE_S = 10.0  # a worker finishes its batch before it looks up


def end_trial(process: BaseProcess, *, grace_s: float = 0.0) -> None:
    """Let a trial end by itself for so long; then end its session and every process below it."""
    if grace_s:
        process.join(grace_s)
    below = _descendants(process.pid) if process.is_alive() else []
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
