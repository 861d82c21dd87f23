"""What blocked threads wait for: the kernel function they sleep in, sampled now and then.

Linux only. Source: proc(5), `/proc/<pid>/wchan`; 0 stands for a thread that runs or is ready to.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from loaderbench.monitors import proc
from loaderbench.records import WorkerStates

INTERVAL_S = 0.05
FEWEST_LOOKS = 10
MOST_APART = 4_096
"""Processes with counts of their own; a loop may start many more."""

RUNNING, LOCK, STORAGE, DEVICE, QUEUE, OTHER = "running", "lock", "storage", "device", "queue", "other"
_WORDS = (
    (LOCK, ("futex", "lock_inode", "flock", "posix_lock", "semtimedop", "rwsem", "mutex")),
    (QUEUE, ("poll", "epoll", "select")),
    (
        STORAGE,
        ("folio", "io_schedule", "bit_wait", "page", "filemap", "blk_", "ext4", "xfs", "btrfs", "nfs", "fuse",
         "request_wait", "overlay", "jbd2", "cifs", "rpc_"),
    ),
    (DEVICE, ("nanosleep", "sk_wait", "tcp", "inet", "wait_woken", "unix_stream", "pipe", "schedule_timeout")),
)  # fmt: skip


def kind_of(wchan: str) -> str | None:
    """What a kernel function stands for; `None` for one that tells nothing (a kernel that hides it writes 0)."""
    if wchan in ("", "0"):
        return RUNNING
    if "accept" in wchan:  # a server's thread, which waits for nobody in particular
        return None
    return next((kind for kind, words in _WORDS if any(word in wchan for word in words)), None)


class Blocked:
    """Counts what the main threads of some processes stood at. A thread at its queue has nothing to do."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._seen: dict[int, Counter[str]] = {}

    def look(self, pids: Iterable[int]) -> None:
        """Look once: a small file to read for each, and for each of its threads where it waits for these."""
        for pid in pids:
            kind = self._kind(f"{pid}")
            if kind == LOCK:
                kind = self._behind_a_lock(pid)
            self._count(pid, kind)

    def look_at_main(self, pid: int) -> None:
        """Look once at a process that may load by itself: at its main thread alone, for others may belong to anyone."""
        self._count(pid, self._kind(f"{pid}"))

    def look_at_threads(self, pid: int) -> None:
        """Look once at each thread of a process, by the kernel's number of it."""
        for thread in self._threads(pid):
            self._count(thread, self._kind(f"{pid}/task/{thread}"))

    def _count(self, pid: int, kind: str | None) -> None:
        if pid not in self._seen and len(self._seen) >= MOST_APART:
            self._seen = {0: sum(self._seen.values(), Counter())}
        self._seen.setdefault(pid, Counter())[kind or OTHER] += 1

    def _kind(self, process: str) -> str | None:
        return kind_of(proc.read_text(f"{self._root}/{process}/wchan").strip())

    def _behind_a_lock(self, pid: int) -> str:
        """A thread may wait at a lock for what other threads of its process fetch: then these are what it waits for."""
        kinds = {self._kind(f"{pid}/task/{thread}") for thread in self._threads(pid) if thread != pid}
        return next((kind for kind in (STORAGE, DEVICE) if kind in kinds), LOCK)

    def _threads(self, pid: int) -> list[int]:
        """Of a process; none where they cannot be listed."""
        try:
            names = os.listdir(f"{self._root}/{pid}/task")  # noqa: PTH208 - half the cost of a Path per thread
        except OSError:
            return []
        return [int(name) for name in names]

    def shares(self, pids: Iterable[int] | None = None) -> dict[str, float] | None:
        """The shares of all looks at these; `None` where they are too few, or where the kernel hides what it is."""
        seen: Counter[str] = sum((self._seen.get(pid, Counter()) for pid in pids or self._seen), Counter())
        looks = seen.total()
        if looks < FEWEST_LOOKS or seen[RUNNING] == looks:
            return None
        return {kind: count / looks for kind, count in sorted(seen.items())}


def with_looks(states: WorkerStates | None, shares: dict[str, float] | None) -> WorkerStates | None:
    """The workers' states with what they were seen to stand at; as they are where nothing was."""
    if states is None or shares is None:
        return states
    reasons = {name: why for name, why in states.not_measured.items() if name != "blocked_on"}
    return replace(states, blocked_on=shares, not_measured=reasons)


class BlockedThread:
    """Looks from a thread of its own: between two batches a loop sees its workers at the same moment every time."""

    def __init__(self) -> None:
        self.blocked = Blocked()
        self._pids: Sequence[int] = ()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, pids: Sequence[int]) -> None:
        """Look at these workers from now on; without any, at the main thread of this process."""
        self._pids = pids
        if os.path.exists("/proc/self/wchan"):  # noqa: PTH110 - elsewhere there is nothing to see
            self._done.clear()
            looking = threading.Thread(target=self._run, name="loaderbench-blocked", daemon=True)
            with suppress(RuntimeError):  # no further thread can be started
                looking.start()
                self._thread = looking

    def end(self) -> None:
        """Stop; returns when the thread has ended and the process may fork."""
        self._done.set()
        ended, self._thread = self._thread, None
        if ended is not None and ended is not threading.current_thread():  # which may free a loop, and so end it
            ended.join(10 * INTERVAL_S)  # at shutdown of the interpreter, no thread ends

    def forget(self) -> None:
        """What was seen until now is of the warm-up."""
        self.blocked = Blocked()

    def _run(self) -> None:
        while not self._done.wait(INTERVAL_S):
            if self._pids:
                self.blocked.look(self._pids)
            else:
                self.blocked.look_at_main(os.getpid())
