"""Several tests run at a time, each file on one worker; then those that sleep, and last, one by one, those that time.

From its first test of a kind to the last, a worker holds a lock on a file that all workers share, one file for each
kind: exclusive for `timed` tests. Tests of a kind start when no worker has any of an earlier kind left: xdist hands
them out in order, and ends a worker for which it has no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from xdist.scheduler import LoadGroupScheduling

try:
    import fcntl
except ImportError:  # Windows: `timed` tests run last, but others may run meanwhile
    fcntl = None  # type: ignore[assignment]

USUAL, SLEEPING, TIMED = KINDS = ("usual", "sleeping", "timed")
SHARED_RUN = "small_run"
"""A fixture that takes long: what uses it runs on one worker, in whichever file."""

BROWSER = "browser"
"""Tests that share the pages they opened."""

LONGEST_FIRST = ("session", "browser", "script", "runner", "tuning", "commands", "profiler", "tracing")
"""Folders of tests that take longest: the short files left at the end fill up the workers."""


class OneFileOneWorker(LoadGroupScheduling):
    """Keeps the tests of a file together, which share what the file's fixtures made, and those of a group."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if scope == nodeid else scope


def kind_of(item: pytest.Item) -> str:
    """Beside which others a test runs."""
    return next((kind for kind in (TIMED, SLEEPING) if item.get_closest_marker(kind)), USUAL)


def order(items: list[pytest.Item]) -> None:
    """Sort by kind, and what takes longest to the front. `timed` tests are one group."""
    for item in items:
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_place)


def _group(item: pytest.Item) -> str:
    kind = kind_of(item)
    if kind == SLEEPING:
        return f"{SLEEPING} {item.path.stem}"
    if kind == TIMED:
        return TIMED
    if SHARED_RUN in getattr(item, "fixturenames", ()):
        return SHARED_RUN
    return BROWSER if item.get_closest_marker(BROWSER) else ""


def _place(item: pytest.Item) -> tuple[int, int]:
    folder = item.path.parent.name
    rank = LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)
    return KINDS.index(kind_of(item)), rank


class Turn:
    """The kind of tests that this worker is at."""

    def __init__(self) -> None:
        self._kind, self._lock = "", ExitStack()

    def come(self, folder: Path, kind: str) -> None:
        """Wait until a test of this kind may run."""
        if kind == self._kind:
            return
        self.end()
        for earlier in KINDS[: KINDS.index(kind)]:
            with _held(folder / f"{earlier}.lock", alone=True):
                pass  # the last worker that had such tests has come to others
        self._lock.enter_context(_held(folder / f"{kind}.lock", alone=kind == TIMED))
        self._kind = kind

    def end(self) -> None:
        """Let others go on. A process that was forked meanwhile has the file open, and must not keep the lock."""
        self._lock.close()


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
            fcntl.flock(lock, fcntl.LOCK_UN)
