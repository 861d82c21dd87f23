"""Ends what a trial started, all of it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from loaderbench.runner.orders import LEAVE

GRACE_S = 10.0  # a worker finishes its batch before it looks up
_ENDING = threading.Lock()


def end_trial(process: BaseProcess, pipe: Connection | None, grace_s: float) -> None:
    """End a trial's session and every process below it; with a pipe, let it end by itself first."""
    below = _below(process.pid)  # before it ends: a child with a session of its own is then no longer found
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


def end_own_session() -> None:
    """End this process, which heads a session, with every process below it, and remove what they leave.

    A thread that comes here while another is at it waits for its end: the death of a worker wakes the main thread.
    """
    with _ENDING:
        below = _below(os.getpid())
        for child in below:
            with suppress(psutil.Error):
                child.kill()
        psutil.wait_procs(below, timeout=1.0)  # so that none makes a file after they were looked for
        _remove_shared_memory([os.getpid(), *(child.pid for child in below)])
        if hasattr(os, "killpg"):
            os.killpg(os.getpid(), signal.SIGKILL)


def _below(pid: int | None) -> list[psutil.Process]:
    """Processes that it has started, and those of its session whose parent is gone."""
    found: dict[int, psutil.Process] = {}
    with suppress(psutil.Error):
        found = {child.pid: child for child in psutil.Process(pid).children(recursive=True)}
    for other in psutil.pids() if hasattr(os, "getsid") else []:
        with suppress(OSError, psutil.Error):
            if other != pid and os.getsid(other) == pid:
                found.setdefault(other, psutil.Process(other))
    return list(found.values())


def _remove_shared_memory(pids: list[int]) -> None:
    """Remove the files that torch's `file_system` sharing leaves when its owner is killed."""
    for pid in pids:
        for file in Path("/dev/shm").glob(f"torch_{pid}_*"):
            file.unlink(missing_ok=True)
