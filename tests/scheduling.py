"""Which tests run at the same time: first the usual ones, each file on one worker; then `sleeping`; last `timed`.

All workers share a lock file for each kind of test. A worker holds the lock of its current kind until it moves on to
the next kind; for `timed` tests, the lock is exclusive. A kind starts once no worker has tests of an earlier kind left:
xdist hands tests out in order, and shuts down a worker when there are no more for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

try:
    import fcntl
except ImportError:  # Windows: `timed` tests run last, but others may run meanwhile
    fcntl = None  # type: ignore[assignment]

USUAL, SLEEPING, TIMED = KINDS = ("usual", "sleeping", "timed")
SHARED_RUN = "small_run"
"""A fixture that takes long: what uses it runs on one worker, in whichever file."""

BROWSER = "browser"
"""Tests that share the pages they opened."""

LONGEST_FIRST = ("session", "browser", "script")
"""Folders of tests that take longest: the short files left at the end fill up the workers."""

MOSTLY_WAIT = ("runner", "tuning", "commands", "profiler", "tracing", "monitors")
"""Folders whose tests mostly wait. They are spread over the other folders, whose tests compute meanwhile."""

SPREAD_OVER = 0.8
"""The share of the other folders over which they are spread: short files are left at the end."""

LONG_FILES = (
    "test_attach_command", "test_diagnosis", "test_gpu", "test_small_machine", "test_contributing",
    "test_chaos_seeds", "test_loader_guard", "test_step_options", "test_object_store", "test_examples", "test_docs",
    "test_other_systems", "test_pauses", "test_trackers", "test_live_trackers", "test_cgroup_limits",
    "test_recorded_runs", "test_words", "test_hostile_runs", "test_layers",
)  # fmt: skip
"""Files to begin first: of the `sleeping` tests, and of the usual ones in the other folders."""


class OneFileOneWorker(LoadGroupScheduling):
    """Keeps the tests of a file together, which share what the file's fixtures made, and those of a group."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if scope == nodeid else scope

    def _reschedule(self, node: WorkerController) -> None:
        """Hand out no more than a worker needs, which is two tests: what it has cannot be run by another meanwhile."""
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


def kind_of(item: pytest.Item) -> str:
    """One of `KINDS`, by the marker of the test."""
    return next((kind for kind in (TIMED, SLEEPING) if item.get_closest_marker(kind)), USUAL)


def order(items: list[pytest.Item]) -> None:
    """Sort tests by kind, then the longest first, and group those that share something."""
    for number, item in enumerate(items):
        if group := _group(item, number):
            item.add_marker(pytest.mark.xdist_group(group))
    spread = _spread(items)
    items.sort(key=lambda item: (KINDS.index(kind_of(item)), spread[item.path, kind_of(item)]))


def _group(item: pytest.Item, number: int) -> str:
    kind = kind_of(item)
    if kind == SLEEPING:
        return f"{SLEEPING} {item.path.stem if _shares(item) else number}"
    if kind == TIMED:
        return TIMED
    if SHARED_RUN in getattr(item, "fixturenames", ()):
        return SHARED_RUN
    return BROWSER if item.get_closest_marker(BROWSER) else ""


def _shares(item: pytest.Item) -> bool:
    """Whether it uses what a fixture makes once for several tests of its file."""
    known = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    return any(definitions[-1].scope == "module" for definitions in known)


def _spread(items: list[pytest.Item]) -> dict[tuple[Path, str], float]:
    """Where the tests of a file and a kind begin: below 0 if at once, else from 0 to 1."""
    files = dict.fromkeys((item.path, kind_of(item)) for item in items)
    places = {file: -1.0 + _rank(file[0].parent.name, LONGEST_FIRST) / len(LONGEST_FIRST) for file in files}
    later = [file for file in files if places[file] == 0]
    later.sort(key=lambda file: (_rank(file[0].stem, LONG_FILES), _rank(file[0].parent.name, MOSTLY_WAIT)))
    waiting = [file for file in later if file[0].parent.name in MOSTLY_WAIT]
    computing = [file for file in later if file not in waiting]
    for some, end in ((waiting, SPREAD_OVER), (computing, 1.0)):
        places |= {file: end * number / len(some) for number, file in enumerate(some)}
    return places


def _rank(name: str, names: tuple[str, ...]) -> int:
    return names.index(name) if name in names else len(names)


class Turn:
    """Which kind of tests this worker is running."""

    def __init__(self) -> None:
        self._kind, self._lock = "", ExitStack()

    def move_to(self, folder: Path, kind: str) -> None:
        """Wait until tests of this kind may run."""
        if kind == self._kind:
            return
        self.end()
        for earlier in KINDS[: KINDS.index(kind)]:
            with held(folder / f"{earlier}.lock", alone=True):
                pass  # no worker has such tests left
        self._lock.enter_context(held(folder / f"{kind}.lock", alone=kind == TIMED))
        self._kind = kind

    def end(self) -> None:
        """Release the lock explicitly: a process forked outside of Python may still have the file open."""
        self._lock.close()


_LOCKS: set[TextIO] = set()


def _close_locks() -> None:
    """In a forked process: it may outlive a worker that crashed, and would hold the lock for it."""
    for lock in _LOCKS:
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_locks)


@contextmanager
def held(file: Path, *, alone: bool) -> Iterator[None]:
    with file.open("a") as lock:
        if fcntl is None:
            yield
            return
        _LOCKS.add(lock)
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
            _LOCKS.discard(lock)
