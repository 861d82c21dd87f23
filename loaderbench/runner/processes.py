"""Begins the session of a process that is started here, and ends all that was started in it."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from loaderbench.runner.protocol import LEAVE

GRACE_S = 10.0  # a worker finishes its batch before it looks up
_MANAGER = "torch_shm_manager"  # removes the files it manages when the last process that uses them is gone
_DEATH_S = 1.0
_ENDING = threading.Lock()
_LOADED_S = time.time()  # before any process that is started here


def enter_own_session(pipe: Connection | None = None) -> None:
    """Be the head of a session that can be ended at once, and that ends when the other end of the pipe is gone."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    multiprocessing.set_start_method(None, force=True)  # workers start as Python's default says, not as this did
    if pipe is None or not hasattr(select, "poll"):
        return
    watch = select.poll()
    watch.register(pipe.fileno(), 0)  # hang-up is always reported

    def wait() -> None:
        watch.poll()
        end_own_session()

    threading.Thread(target=wait, name="loaderbench-parent-watch", daemon=True).start()


def write_to(log: Path) -> None:
    """Let this process, and all that it starts, write to its log."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)


def end_own_session() -> None:
    """End this process, which heads a session, with every process below it, and remove what they leave.

    A thread that comes here while another is at it waits for its end: the death of a worker wakes the main thread.
    """
    with _ENDING:
        end_below(os.getpid())


def signal_all(pids: Iterable[int], name: str) -> None:
    """Send a signal to those that are still there, where this system has one of the name."""
    number: int | None = getattr(signal, name, None)
    if number is None:
        return
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def end_below(head: int) -> None:
    """End the head of a session with every process below it, and remove what they leave."""
    below = _below(head)
    _wait_until_dead(_kill(below))  # none may make a file after the search below
    _remove_shared_memory([head, *(child.pid for child in below)])
    with suppress(ProcessLookupError):
        os.kill(head, getattr(signal, "SIGKILL", signal.SIGTERM))


def end_session(process: BaseProcess, pipe: Connection | None = None, grace_s: float = 0.0) -> None:
    """End a process's session and every process below it; with a pipe, let it end by itself first."""
    below = _below(process.pid)  # before it ends: a child with a session of its own is then no longer found
    if pipe is not None:
        with suppress(OSError):
            pipe.send(LEAVE)
        process.join(grace_s)
    if process.is_alive():
        _kill(below)  # first: without their parent, those with a session of their own are found by nobody else
        process.kill()
    process.join(GRACE_S)  # a system call that waits for storage may not end, even by SIGKILL
    below = list({*below, *_in_session(process.pid)})  # those begun since
    _kill(below)
    _wait_until_dead(below)
    if process.pid is not None and hasattr(os, "killpg"):  # a manager that did not end by itself
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    _remove_shared_memory([process.pid or -1, *(child.pid for child in below)])


def _kill(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Kill all but torch's manager of shared memory, which cleans up and ends when it is alone; return those."""
    killed = []
    for process in processes:
        with suppress(psutil.Error):
            if process.name() != _MANAGER:
                process.kill()
                killed.append(process)
    return killed


def _wait_until_dead(processes: list[psutil.Process]) -> None:
    """Wait until none runs; who reaps the dead is not ours to know, and in a container it may be nobody."""
    until = time.monotonic() + _DEATH_S
    while any(_lives(process) for process in processes) and time.monotonic() < until:
        time.sleep(0.002)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _below(pid: int | None) -> list[psutil.Process]:
    """Processes that it has started, and those of its session whose parent is gone."""
    children: list[psutil.Process] = []
    with suppress(psutil.Error, OSError, IndexError):
        children = psutil.Process(pid).children(recursive=True)
    return list({*children, *_in_session(pid)})


def _in_session(pid: int | None) -> list[psutil.Process]:
    """All of the session that this process heads or headed, but for itself."""
    found = []
    for other in _all_pids() if hasattr(os, "getsid") else []:
        with suppress(OSError, psutil.Error):
            if other != pid and os.getsid(other) == pid:
                found.append(psutil.Process(other))
    return found


def _all_pids() -> list[int]:
    try:
        return psutil.pids()
    except (OSError, IndexError):  # without /proc
        return []


def _remove_shared_memory(pids: list[int]) -> None:
    """Remove the files that torch's `file_system` sharing leaves when its owner is killed.

    Containers may share `/dev/shm`, with processes of the same numbers: older files, or another user's, are not ours.
    """
    for pid in pids:
        for file in Path("/dev/shm").glob(f"torch_{pid}_*"):
            with suppress(OSError):
                if file.stat().st_ctime >= _LOADED_S:
                    file.unlink()
