"""Calls a function in a forked copy of this process, and waits for its result."""

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
    """What the function returned, or its exception as one line. `interrupted`: Ctrl-C ended the call early."""

    answer: Answer | None = None
    raised: str = ""
    interrupted: bool = False


def call_in_copy(function: Callable[[], Answer]) -> Returned[Answer]:
    """Call the function in a forked process that has its own session, and wait for the result.

    Ctrl-C is passed on to the child process; a second one raises `KeyboardInterrupt` here. The fork happens in a
    separate thread, as in `ForkingServer`. Raises `OSError` if no process can be forked.
    """
    parent_end, child_end = multiprocessing.Pipe(duplex=True)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the script can replace the stream by any object
            stream.flush()  # otherwise the child process would write buffered text again
    forked: list[int | OSError] = []

    def fork() -> None:
        try:
            pid = os.fork()
        except OSError as error:
            forked.append(error)
            return
        if pid == 0:
            parent_end.close()
            _send_result_and_exit(function, child_end)
        forked.append(pid)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    child_end.close()
    if isinstance(forked[0], OSError):
        raise forked[0]
    return _wait_for_result(parent_end, forked[0])


def _send_result_and_exit(function: Callable[[], Any], pipe: Connection) -> None:
    """Send the result and exit. Never returns, because the callers belong to the parent process."""
    try:
        enter_own_session(pipe)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            result = Returned(answer=function())
        except BaseException as error:
            result = Returned(raised="".join(traceback.format_exception_only(type(error), error)).strip())
        pipe.send(result)
    finally:
        leave_scratch()
        os._exit(0)


def _wait_for_result(pipe: Connection, pid: int) -> Returned[Any]:
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
