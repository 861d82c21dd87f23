"""A process that ends the sessions of stopped trials if the run is killed or interrupted; never stopped itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from loaderbench.runner.processes import end_below, enter_own_session
from loaderbench.runner.server import TrialServer

LEAVE = 0


class SessionGuard:
    """Watches sessions of trials, which are the numbers of their processes."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def watch(self, pid: int) -> None:
        """End this session if the run ends."""
        self._tell(pid)

    def forget(self, pid: int) -> None:
        """Stop watching this session: it has ended."""
        self._tell(-pid)

    def leave(self) -> None:
        """End what is still watched, and then the guard itself."""
        self._tell(LEAVE)

    def _tell(self, number: int) -> None:
        with suppress(OSError):  # it was killed itself
            self._pipe.send(number)


@contextmanager
def guard(server: TrialServer) -> Iterator[SessionGuard]:
    """Start a guard; at the end of the block, it ends the sessions that the block did not end.

    A second Ctrl-C may leave the block while trials are being ended, and a stopped trial cannot notice that the run is
    over.
    """
    ours, theirs = server.pipe()
    process = server.start(_guard_main, theirs)
    theirs.close()
    found = SessionGuard(ours)
    try:
        yield found
    finally:
        found.leave()
        process.join()
        ours.close()


def _guard_main(pipe: Connection) -> None:
    """Note what to watch until the run leaves or dies; then end all of it."""
    enter_own_session()
    sessions: set[int] = set()
    with suppress(EOFError, OSError):
        while (number := pipe.recv()) != LEAVE:
            if number > 0:
                sessions.add(number)
            else:
                sessions.discard(-number)
    for pid in sessions:
        end_below(pid)
