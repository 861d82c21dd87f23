"""Calls a function in a copy of this process, which ends with it, and waits for what it returns."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from loaderbench.runner.processes import enter_own_session
from loaderbench.runner.scratch import leave_scratch

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Returned(Generic[Answer]):
    """What the function returned, or what it raised, in a line. `interrupted`: Ctrl-C has ended it early."""

    answer: Answer | None = None
    raised: str = ""
    interrupted: bool = False


def call_in_copy(function: Callable[[], Answer]) -> Returned[Answer]:
    """Call it in a forked process, with a session of its own, and wait.

    It gets Ctrl-C in place of this process, and the second one raises `KeyboardInterrupt` here. Forked from a thread of
    its own, as in `ForkingServer`. Raises `OSError` where no process can be forked.
    """
    ours, theirs = multiprocessing.Pipe(duplex=True)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the script's own, which may be anything
            stream.flush()  # the copy would write it again
    forked: list[int | OSError] = []

    def fork() -> None:
        try:
            pid = os.fork()
        except OSError as error:
            forked.append(error)
            return
        if pid == 0:
            ours.close()
            _answer(function, theirs)
        forked.append(pid)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    theirs.close()
    if isinstance(forked[0], OSError):
        raise forked[0]
    return _wait(ours, forked[0])


def _answer(function: Callable[[], Any], pipe: Connection) -> None:
    """Never returns: what called this function belongs to the process that was copied."""
    try:
        enter_own_session(pipe)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            said = Returned(answer=function())
        except BaseException as error:
            said = Returned(raised="".join(traceback.format_exception_only(type(error), error)).strip())
        pipe.send(said)
    finally:
        leave_scratch()
        os._exit(0)


def _wait(pipe: Connection, pid: int) -> Returned[Any]:
    interrupted = False
    while True:
        try:
            found: Returned[Any] = pipe.recv()
        except KeyboardInterrupt:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if interrupted else signal.SIGINT)
            if interrupted:
                raise
            interrupted = True
            continue
        except (EOFError, OSError):
            found = Returned(raised="the process that tunes was killed")
        pipe.close()
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        return replace(found, interrupted=interrupted)
