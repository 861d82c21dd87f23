"""Starts processes from a fork server that has torch imported, or with spawn if the system has no fork."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from loaderbench.child_processes import named_parent, same_path
from loaderbench.errors import UsageError
from loaderbench.runner.processes import end_session, enter_own_session, write_to
from loaderbench.runner.scratch import claim_scratch

PRELOAD = "loaderbench.fork_server"
DYING_S = 2.0
_FORKED = (
    "cannot start trials in a process forked from one that ran loaderbench; "
    "start it with spawn, or run loaderbench as a command"
)


class ForkServerKilledError(Exception):
    """The fork server was killed before it had started a process, and so was its replacement."""


class TrialServer:
    """Starts processes: the first pays for importing torch, each further one for a fork. `method` is the start method.

    `uses_devices`: the processes may use a GPU.
    """

    uses_devices = True

    def __init__(self) -> None:
        methods = multiprocessing.get_all_start_methods()
        self.method = "forkserver" if "forkserver" in methods else "spawn"
        self._context: Any = multiprocessing.get_context(self.method)
        if self.method == "forkserver":
            self._context.set_forkserver_preload([PRELOAD])

    def warm_up(self) -> None:
        """Start the server's imports in the background.

        Raises `UsageError` in a process forked from one with a server: only the server's parent may use it or wait for
        it.
        """
        claim_scratch()
        if self.method == "forkserver":
            try:
                with same_path(), _sigint_blocked(), named_parent():
                    forkserver.ensure_running()
            except ChildProcessError:
                raise UsageError(_FORKED) from None

    def has_died(self) -> bool:
        """Whether the fork server was killed; starting the next process then also starts another server.

        The server's pipes close a moment before it counts as dead, so this polls for up to `DYING_S`.
        """
        pid = getattr(forkserver._forkserver, "_forkserver_pid", None)
        if self.method != "forkserver" or pid is None:
            return False
        with suppress(psutil.Error, ChildProcessError):
            until_s = time.monotonic() + DYING_S
            while not _has_ended(pid):
                if time.monotonic() > until_s:
                    return False
                time.sleep(0.01)
        return True

    def start(self, target: Callable[..., None], *args: object) -> BaseProcess:
        """Start a process that calls `target(*args)`; retry once if the fork server is killed before it responds.

        Raises `ForkServerKilledError` if the next server is killed too.
        """
        for _ in range(2):
            try:
                return self._start(target, *args)
            except (EOFError, ConnectionError):
                self.has_died()  # waits for the end of the old server, which must precede another's start
        raise ForkServerKilledError

    def _start(self, target: Callable[..., None], *args: object) -> BaseProcess:
        self.warm_up()
        process: BaseProcess = self._context.Process(target=target, args=args, daemon=False)
        with _no_main_module():
            process.start()
        return process

    def ask(self, target: Callable[..., None], *args: object, timeout_s: float, log: Path | None = None) -> Any:
        """Call the target as `ask_each` does, and return what it sends first; `None` if it ends or takes too long."""
        with closing(self.ask_each(target, *args, timeout_s=timeout_s, log=log)) as answers, suppress(TimeoutError):
            return next(answers, None)
        return None

    def ask_each(
        self, target: Callable[..., None], *args: object, timeout_s: float, log: Path | None = None
    ) -> Generator[Any, None, None]:
        """Call `target(pipe, *args)` in a process and yield what it sends, until it ends.

        The process writes its output to `log`, if given. Raises `TimeoutError` on silence.
        """
        parent_end, child_end = self.pipe()
        try:
            process = self.start(_answer, log, target, child_end, *args)
        except ForkServerKilledError:
            return
        child_end.close()
        try:
            while parent_end.poll(timeout_s):
                yield parent_end.recv()
        except (EOFError, OSError):
            return
        else:
            raise TimeoutError
        finally:
            parent_end.close()
            end_session(process)

    def numbers(self, count: int) -> Any:
        """Allocate shared memory for `count` doubles, all 0, to pass to a process that this server starts."""
        return self._context.RawArray("d", count)

    def pipe(self) -> tuple[Any, Any]:
        """Make a two-way pipe; the second end is for a process that this server starts."""
        ends: tuple[Any, Any] = self._context.Pipe(duplex=True)
        return ends


def _has_ended(child: int) -> bool:
    """Whether this child can be waited for; only then does `forkserver` start another server.

    A killed process with threads is a zombie before that.
    """
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def _answer(log: Path | None, target: Callable[..., None], pipe: Any, *args: object) -> None:
    """Call the target in a new session, which ends if the process waiting for the answer does.

    Without a log, the output of user code goes to stderr, because stdout is for results only.
    """
    enter_own_session(pipe)
    if log is None:
        os.dup2(2, 1)
    else:
        write_to(log)
    target(pipe, *args)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Delay Ctrl-C while the server starts, because a terminal sends it to the server too.

    The server inherits the blocked signal; this process receives it afterwards.
    """
    resource_tracker.ensure_running()  # its own start would unblock signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Keep a child from importing the user's script again, which could start a run if it has no `__main__` guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
