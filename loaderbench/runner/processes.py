"""Sets up the session of a child process, and ends all processes of a session."""

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

GRACE_S = 10.0  # seconds for a worker to finish its batch before it checks for the end
_MANAGER = "torch_shm_manager"  # removes its files when the last process that uses them is gone
_DEATH_S = 1.0
_ENDING = threading.Lock()
_LOADED_S = time.time()  # before any child process is started


def enter_own_session(pipe: Connection | None = None) -> None:
    """Make this process a session leader that can be ended as a group, and ends when the pipe's other end closes."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    multiprocessing.set_start_method(None, force=True)  # workers use Python's default start method, not this process's
    if pipe is None or not hasattr(select, "poll"):
        return
    watch = select.poll()
    watch.register(pipe.fileno(), 0)  # hang-up is always reported

    def wait() -> None:
        watch.poll()
        end_own_session()

    threading.Thread(target=wait, name="loaderbench-parent-watch", daemon=True).start()


def write_to(log: Path) -> None:
    """Redirect the output of this process and its children to a log."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)


def end_own_session() -> None:
    """End this process, a session leader, with all its descendants, and remove the files they leave.

    A second thread that calls this waits for the first: a worker's death wakes the main thread.
    """
    with _ENDING:
        end_below(os.getpid())


def signal_all(pids: Iterable[int], name: str) -> None:
    """Send a signal to the processes that still exist, if this system has a signal of that name."""
    number: int | None = getattr(signal, name, None)
    if number is None:
        return
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def end_below(head: int) -> None:
    """End a session leader with all its descendants, and remove the files they leave."""
    below = _below(head)
    _wait_until_dead(_kill(below))  # none may create a file after the search below
    _remove_shared_memory([head, *(child.pid for child in below)])
    with suppress(ProcessLookupError):
        os.kill(head, getattr(signal, "SIGKILL", signal.SIGTERM))


def end_session(process: BaseProcess, pipe: Connection | None = None, grace_s: float = 0.0) -> None:
    """End a process's session and all its descendants; with a pipe, let the process end by itself first."""
    below = _below(process.pid)  # before it ends: a child with its own session could not be found afterwards
    if pipe is not None:
        with suppress(OSError):
            pipe.send(LEAVE)
        process.join(grace_s)
    if process.is_alive():
        _kill(below)  # first: once the parent is gone, children with their own session cannot be found
        process.kill()
    process.join(GRACE_S)  # a system call that waits for storage may not return, even after SIGKILL
    below = list({*below, *_in_session(process.pid)})  # children started since
    _kill(below)
    _wait_until_dead(below)
    if process.pid is not None and hasattr(os, "killpg"):  # a manager that did not exit
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    _remove_shared_memory([process.pid or -1, *(child.pid for child in below)])


def _kill(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Kill all but torch's shared-memory manager, which cleans up and exits once alone; return the killed processes."""
    killed = []
    for process in processes:
        with suppress(psutil.Error):
            if process.name() != _MANAGER:
                process.kill()
                killed.append(process)
    return killed


def _wait_until_dead(processes: list[psutil.Process]) -> None:
    """Wait until none is running. Another process may reap them; in a container, possibly none does."""
    until = time.monotonic() + _DEATH_S
    while any(_is_alive(process) for process in processes) and time.monotonic() < until:
        time.sleep(0.002)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _below(pid: int | None) -> list[psutil.Process]:
    """The descendants of a process, and the members of its session whose parent is gone."""
    children: list[psutil.Process] = []
    with suppress(psutil.Error, OSError, IndexError):
        children = psutil.Process(pid).children(recursive=True)
    return list({*children, *_in_session(pid)})


def _in_session(pid: int | None) -> list[psutil.Process]:
    """All members of the session that this process leads or led, except itself."""
    found = []
    for other in _all_pids() if hasattr(os, "getsid") else []:
        with suppress(OSError, psutil.Error):
            if other != pid and os.getsid(other) == pid:
                found.append(psutil.Process(other))
    return found


def _all_pids() -> list[int]:
    try:
        return psutil.pids()
    except (OSError, IndexError):  # no /proc
        return []


def _remove_shared_memory(pids: list[int]) -> None:
    """Remove the files that torch's `file_system` sharing strategy leaves when their owner is killed.

    Containers can share `/dev/shm` and reuse process IDs, so older files and those of other users are kept.
    """
    for pid in pids:
        for file in Path("/dev/shm").glob(f"torch_{pid}_*"):
            with suppress(OSError):
                if file.stat().st_ctime >= _LOADED_S:
                    file.unlink()
