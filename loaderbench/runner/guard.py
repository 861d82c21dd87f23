"""A process that is never stopped, and ends what is, should the run be killed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from loaderbench.runner.processes import end_below, enter_own_session
from loaderbench.runner.server import TrialServer

DONE = -1


class SessionGuard:
    """Watches sessions of trials, which are the numbers of their processes."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def watch(self, pid: int) -> None:
        """End this session with the run."""
        with suppress(OSError):  # it was killed itself
            self._pipe.send(pid)


@contextmanager
def guard(server: TrialServer) -> Iterator[SessionGuard]:
    """Start one; when the block is left, the sessions have been ended and it is not needed any more."""
    ours, theirs = server.pipe()
    process = server.start(_guard_main, theirs)
    theirs.close()
    found = SessionGuard(ours)
    try:
        yield found
    finally:
        found.watch(DONE)
        process.join()
        ours.close()


def _guard_main(pipe: Connection) -> None:
    """Note what to watch until asked to end; if the run dies first, end all of it."""
    enter_own_session()
    sessions: list[int] = []
    with suppress(EOFError, OSError):
        while (pid := pipe.recv()) != DONE:
            sessions.append(pid)
        return
    for pid in sessions:
        end_below(pid)
