"""Samples what blocked threads wait for, from the kernel function they sleep in.

Linux only. Source: proc(5), `/proc/<pid>/wchan`. The value 0 means that the thread is running or ready to run.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

from loaderbench.monitors import proc
from loaderbench.own_threads import OwnThread
from loaderbench.records import WorkerStates

INTERVAL_S = 0.05
FREQUENT_LOOKS = 250
RARE_INTERVAL_S = 0.2
"""Seconds between the samples of `BlockedThread`, after the first `FREQUENT_LOOKS`: a training can last for hours."""

FEWEST_LOOKS = 10
MOST_APART = 4_096
"""The most processes with separate counts. A loop can start many more."""

RUNNING, LOCK, STORAGE, DEVICE, QUEUE, OTHER = "running", "lock", "storage", "device", "queue", "other"
OWN_THREADS = "own_threads"
"""A main thread at a lock, while some threads of its process work and others are blocked on I/O."""

_POLL = "7"  # the number of the system call
PAGE_FAULT = "page_fault"
"""A thread that needs a page from a file or from swap, outside of any system call."""

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


def kind_at(folder: str) -> str | None:
    """What the process or thread in this folder of `/proc` is blocked on; `None` if unknown.

    The kernel sleeps in the same functions for a read and for a page fault. Where `/proc/<pid>/syscall` is readable, it
    has no system call during a page fault. A wait that ends between the two readings does not count.
    """
    kind = kind_of(proc.read_text(f"{folder}/wchan").strip())
    if kind not in (STORAGE, None):
        return kind
    call = proc.read_text(f"{folder}/syscall")
    return PAGE_FAULT if call.startswith("-1 ") else RUNNING if call.startswith("running") else kind


def kind_at_worker(folder: str) -> str | None:
    """Like `kind_at`, for torch's workers. Without work, one polls for 5 s (`MP_STATUS_CHECK_INTERVAL`)."""
    kind = kind_at(folder)
    words = proc.read_text(f"{folder}/syscall").split() if kind == QUEUE and platform.machine() == "x86_64" else []
    return DEVICE if words[:1] == [_POLL] and not 4_000 < int(words[3], 16) <= 5_000 else kind


def kind_of(wchan: str) -> str | None:
    """Classify a kernel function; `None` if it reveals nothing. A kernel that hides it writes 0."""
    if wchan in ("", "0"):
        return RUNNING
    if "accept" in wchan:  # a server thread, waiting for a connection
        return None
    return next((kind for kind, words in _WORDS if any(word in wchan for word in words)), None)


class Blocked:
    """Counts what the main threads of processes are blocked on. A thread blocked on its queue has no work.

    A sample counts `weight` times, because a rare sample represents more time.
    """

    def __init__(self, root: str = "/proc", at: Callable[[str], str | None] = kind_at) -> None:
        self.weight = 1
        self._root, self._at = root, at
        self._random = Random()  # the global generator belongs to the training script
        self._seen: dict[int, Counter[str]] = {}

    def look(self, pids: Iterable[int]) -> None:
        """Sample each process once, at the cost of one small file.

        Threads are read only for a main thread blocked on a lock.
        """
        for pid in pids:
            kind = self._kind(f"{pid}")
            if kind == LOCK:
                kind = self._cause_of_lock_wait(pid)
            self._count(pid, kind)

    def look_at_main(self, pid: int) -> None:
        """Sample the main thread of a process that may load batches itself.

        Its other threads can belong to anything.
        """
        self._count(pid, self._kind(f"{pid}"))

    def look_at_threads(self, pid: int) -> None:
        """Sample each thread of a process once, counted by thread ID.

        If this process samples itself, each read releases the GIL, which always wakes the thread that has waited the
        longest. A random order keeps the sampled thread from being the same as the woken one every time.
        """
        threads = proc.threads_of(pid, self._root)
        self._random.shuffle(threads)
        for thread in threads:
            self._count(thread, self._kind(f"{pid}/task/{thread}"))

    def _count(self, pid: int, kind: str | None) -> None:
        if pid not in self._seen and len(self._seen) >= MOST_APART:
            self._seen = {0: sum(self._seen.values(), Counter())}
        self._seen.setdefault(pid, Counter())[kind or OTHER] += self.weight

    def _kind(self, process: str) -> str | None:
        return self._at(f"{self._root}/{process}")

    def _cause_of_lock_wait(self, pid: int) -> str:
        """The cause of a main thread's wait for a lock: I/O, if another thread of its process is blocked on I/O.

        That includes a thread that polls sockets, as an event loop or a request with a timeout does, unless a third
        thread works meanwhile, as in the pool of an event loop.
        """
        others = (thread for thread in proc.threads_of(pid, self._root) if thread != pid)
        kinds = {self._kind(f"{pid}/task/{thread}") for thread in others}
        found = next((kind for kind in (PAGE_FAULT, STORAGE) if kind in kinds), None)
        if found is None and kinds & {DEVICE, QUEUE}:
            return OWN_THREADS if RUNNING in kinds else DEVICE
        return found or LOCK

    def add(self, other: Blocked) -> None:
        """Add the samples of another count."""
        for pid, seen in other._seen.items():
            self._seen.setdefault(pid, Counter()).update(seen)

    def shares(self, pids: Iterable[int] | None = None) -> dict[str, float] | None:
        """The share of each kind among all samples of these processes.

        `None` if there are too few samples, or if the kernel hides what threads are blocked on.
        """
        seen: Counter[str] = sum((self._seen.get(pid, Counter()) for pid in pids or self._seen), Counter())
        looks = seen.total()
        if looks < FEWEST_LOOKS or seen[RUNNING] == looks:
            return None
        return {kind: count / looks for kind, count in sorted(seen.items())}


def with_looks(states: WorkerStates | None, shares: dict[str, float] | None) -> WorkerStates | None:
    """The workers' states with shares of what they were blocked on, or unchanged if there are none."""
    if states is None or shares is None:
        return states
    reasons = {name: why for name, why in states.not_measured.items() if name != "blocked_on"}
    return replace(states, blocked_on=shares, not_measured=reasons)


class BlockedThread:
    """Samples from a separate thread.

    Between two batches, a loop would see its workers in the same state every time.
    """

    def __init__(self) -> None:
        self.blocked = Blocked()
        self._late_s, self._waits = 0.0, 0
        self._is_first = True  # the first wait since `begin`: an epoch can be short
        self._pids: Sequence[int] = ()
        self._done = threading.Event()
        self._thread: OwnThread | None = None

    def begin(self, pids: Sequence[int]) -> None:
        """Start to sample these workers, or the main thread of this process if there are none."""
        self._pids, self._is_first = pids, True
        if os.path.exists("/proc/self/wchan"):  # noqa: PTH110 - other systems have no wchan
            self._done.clear()
            looking = OwnThread("blocked", self._run)
            with suppress(RuntimeError):  # can't start new thread
                looking.start()
                self._thread = looking

    def end(self) -> None:
        """Stop sampling. On return, the thread has ended and the process can fork."""
        self._done.set()
        ended, self._thread = self._thread, None
        if ended is not None:
            ended.wait(10 * INTERVAL_S)  # at interpreter shutdown, a daemon thread never ends

    def forget(self) -> None:
        """Drop the samples of the warm-up."""
        self.blocked = Blocked()
        self._late_s, self._waits = 0.0, 0

    @property
    def gil_wait_s(self) -> float | None:
        """How much too late this thread's timed waits ended, on average: a thread waits for the GIL at their end."""
        return self._late_s / self._waits if self._waits else None

    def _is_over(self) -> bool:
        """Wait for the next sample. Returns whether sampling was stopped."""
        is_frequent = self._is_first or self._waits < FREQUENT_LOOKS
        pause_s, self._is_first = INTERVAL_S if is_frequent else RARE_INTERVAL_S, False
        self.blocked.weight = round(pause_s / INTERVAL_S)
        due_s = time.monotonic() + pause_s
        if self._done.wait(pause_s):
            return True
        self._late_s += max(0.0, time.monotonic() - due_s)
        self._waits += 1
        return False

    def _run(self) -> None:
        while not self._is_over():
            if self._pids:
                self.blocked.look(self._pids)
            else:
                self.blocked.look_at_main(os.getpid())
