"""Two tests run at a time, each file on one worker; tests that time something run last, one at a time.

While a test runs, its worker holds a lock on a file that all workers share: exclusive if the test is marked `timed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from xdist.scheduler import LoadGroupScheduling

try:
    import fcntl
except ImportError:  # Windows: `timed` tests run last, but possibly in parallel
    fcntl = None  # type: ignore[assignment]

TIMED = "timed"
SHARED_RUN = "small_run"
"""A fixture that takes long: what uses it runs on one worker, in whichever file."""

BROWSER = "browser"
"""Tests that share the pages they opened."""

LONGEST_FIRST = ("session", "browser", "runner", "commands", "profiler", "tracing")
"""Folders of tests that take longest: the short files left at the end fill up the workers."""


class OneFileOneWorker(LoadGroupScheduling):
    """Keeps the tests of a file together, which share what the file's fixtures made, and those of a group."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if scope == nodeid else scope


def order(items: list[pytest.Item]) -> None:
    """Sort what takes longest to the front, and `timed` tests, in one group, to the end."""
    for item in items:
        if item.get_closest_marker(TIMED):
            item.add_marker(pytest.mark.xdist_group(TIMED))
        elif SHARED_RUN in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(SHARED_RUN))
        elif item.get_closest_marker(BROWSER):
            item.add_marker(pytest.mark.xdist_group(BROWSER))
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[bool, int]:
    folder = item.path.parent.name
    rank = LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)
    return item.get_closest_marker(TIMED) is not None, rank


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Wait until a test may run, in parallel or `alone`. While one waits to run alone, no other test starts."""
    with ExitStack() as own:
        with _held(folder / "queue.lock", alone=True):
            own.enter_context(_held(folder / "turn.lock", alone=alone))
        yield


@contextmanager
def _held(file: Path, *, alone: bool) -> Iterator[None]:
    with file.open("a") as lock:
        if fcntl is None:
            yield
            return
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a process that was forked meanwhile holds the file open, too
