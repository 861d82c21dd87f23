"""A guard process that ends the sessions of stopped trials if the run is killed or interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from loaderbench.runner.processes import end_below, enter_own_session
from loaderbench.runner.server import TrialServer

LEAVE = 0


class SessionGuard:
    """Tells the guard which sessions to watch; a session is the process ID of its trial."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def watch(self, pid: int) -> None:
        """End this session if the run ends."""
        self._tell(pid)

    def forget(self, pid: int) -> None:
        """Stop watching this session, because it has ended."""
        self._tell(-pid)

    def leave(self) -> None:
        """End the sessions that are still watched, and then the guard."""
        self._tell(LEAVE)

    def _tell(self, number: int) -> None:
        with suppress(OSError):  # the guard itself was killed
            self._pipe.send(number)


@contextmanager
def guard(server: TrialServer) -> Iterator[SessionGuard]:
    """Start a guard, which ends the sessions still watched when the block exits.

    A second Ctrl-C can leave the block while trials are being ended, and a stopped trial cannot notice that the run is
    over. The guard itself is never stopped.
    """
    parent_end, child_end = server.pipe()
    process = server.start(_guard_main, child_end)
    child_end.close()
    found = SessionGuard(parent_end)
    try:
        yield found
    finally:
        found.leave()
        process.join()
        parent_end.close()


def _guard_main(pipe: Connection) -> None:
    """Track the sessions to watch until the run leaves or dies, then end them."""
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
