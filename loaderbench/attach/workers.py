"""What the kernel's counts say of workers: which belong to idle loaders, and what blocked ones wait for.

An idle loader is not being iterated over, such as a validation loader with persistent workers.

Blocked workers wait for bytes or for requests. Linux only. Source: proc(5), `/proc/<pid>/status` (voluntary context
switches: how often the main thread was blocked), `/proc/<pid>/io` (`rchar`: bytes returned by read(2) and similar
calls) and `/proc/<pid>/schedstat`.

The one that takes the time varies less per second. A test for two paired variances decides. Sources: Pitman, A Note on
Normal Correlation, Biometrika 1939; Morgan, A Test for the Significance of the Difference between the Two Variances in
a Sample from a Normal Bivariate Population, Biometrika 1939.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import correlation, fmean, pstdev

from loaderbench.monitors import kind_at, proc
from loaderbench.monitors.blocked import QUEUE

WAKES_EACH_S = 5.0
"""Seconds between an idle worker's checks that its parent process is alive: `MP_STATUS_CHECK_INTERVAL` of torch."""

BLOCKS_PER_WAKE = 2
START_GAP_S = 0.05
"""Longest gap between the starts of workers of one loader, which start sequentially.

If a large process takes longer than that to fork, each of its workers is a group by itself.
"""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class _FirstLook:
    """The first check of a worker: when, and how often the worker had blocked. It started `began_s` after boot."""

    at_s: float
    blocked: int
    began_s: float


class IdleLoaders:
    """Checks all workers several times a second. `root` is for tests."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._first: dict[int, _FirstLook] = {}
        self._worked = set[int]()
        self.idle = frozenset[int]()  # the workers that the last check left out

    def at_work(self, pids: Sequence[int], now_s: float | None = None) -> list[int]:
        """Workers of loaders that have been active since the first check: a worker has worked or started.

        Returns all workers at the first check, and also if no loader has been active.
        """
        now_s = time.monotonic() if now_s is None else now_s
        is_first = not self._first
        for pid in pids:
            if pid in self._first:
                self._look(pid, now_s)
            else:
                self._first[pid] = _FirstLook(now_s, self._blocked(pid), self._began_s(pid))
                self._worked |= set() if is_first else {pid}  # an epoch has just begun
        groups = [group for group in self._loaders(pids) if is_first or not self._worked.isdisjoint(group)]
        found = frozenset(pid for group in groups for pid in group) or frozenset(pids)
        self.idle = frozenset(pids) - found
        return [pid for pid in pids if pid in found]

    def _look(self, pid: int, now_s: float) -> None:
        first = self._first[pid]
        may_wake = BLOCKS_PER_WAKE * (1 + (now_s - first.at_s) / WAKES_EACH_S)
        is_idle = kind_at(f"{self._root}/{pid}") == QUEUE
        if not is_idle or self._blocked(pid) - first.blocked > may_wake:
            self._worked.add(pid)

    def _loaders(self, pids: Iterable[int]) -> list[list[int]]:
        """Groups of workers that started together."""
        groups: list[list[int]] = []
        before_s = -math.inf
        for began_s, pid in sorted((self._first[pid].began_s, pid) for pid in pids):
            if began_s - before_s > START_GAP_S:
                groups.append([])
            groups[-1].append(pid)
            before_s = began_s
        return groups

    def _blocked(self, pid: int) -> int:
        return proc.parse_times_blocked(proc.read_text(f"{self._root}/{pid}/status")) or 0

    def _began_s(self, pid: int) -> float:
        text = proc.read_text(f"{self._root}/{pid}/stat")
        return proc.parse_activity(text).began_ticks / _TICKS_PER_S if text else 0.0


FEWEST_WAITS = 20
"""Waits needed in a window: with fewer, the wait in progress at its end outweighs differences between windows."""

FEWEST_BYTES = 4096  # per wait; messages through a worker's queue are smaller


@dataclass(frozen=True)
class _Counts:
    """Counts of a process at one moment, or of several processes between two moments."""

    clock_s: float
    on_cpu_s: float
    waits: int
    read_bytes: int

    @property
    def blocked_s(self) -> float:
        """Seconds in which the main thread was neither running nor runnable."""
        return max(0.0, self.clock_s - self.on_cpu_s)

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(
            self.clock_s + other.clock_s,
            self.on_cpu_s + other.on_cpu_s,
            self.waits + other.waits,
            self.read_bytes + other.read_bytes,
        )

    def since(self, before: _Counts) -> _Counts:
        """The counts between the earlier moment and this one."""
        return _Counts(
            self.clock_s - before.clock_s,
            self.on_cpu_s - before.on_cpu_s,
            self.waits - before.waits,
            self.read_bytes - before.read_bytes,
        )


_NOTHING = _Counts(0.0, 0.0, 0, 0)


class BlockedReads:
    """Adds up what workers read and how often they were blocked. `root` and `clock` are for tests."""

    def __init__(self, root: str = "/proc", clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock = root, clock
        self._before: dict[int, _Counts] = {}
        self._seen: list[_Counts] = []

    def read(self, pids: Sequence[int]) -> None:
        """Read each worker once, in about 40 microseconds."""
        now = {pid: counts for pid in pids if (counts := self._counts(pid)) is not None}
        between = [counts.since(self._before[pid]) for pid, counts in now.items() if pid in self._before]
        if between and all(one.waits >= 0 and one.read_bytes >= 0 for one in between):
            self._seen.append(sum(between, _NOTHING))
        self._before = now

    @property
    def bytes_per_wait(self) -> float | None:
        """Bytes read per wait of a worker; `None` if there was no wait."""
        whole = sum(self._seen, _NOTHING)
        return whole.read_bytes / whole.waits if whole.waits else None

    @property
    def bytes_share(self) -> float | None:
        """The share of blocked time that the bytes explain; `None` if that is unknown."""
        if (self.bytes_per_wait or 0.0) < FEWEST_BYTES:
            return None
        windows = [one for one in self._windows() if one.blocked_s > 0]
        waits, read = ([each / one.blocked_s for each, one in zip(counts, windows, strict=True)]
                       for counts in ([one.waits for one in windows], [one.read_bytes for one in windows]))  # fmt: skip
        return share_explained(waits, read)

    def _windows(self) -> list[_Counts]:
        """Windows of several readings each, with enough waits in every window while there are enough windows."""
        waits = sum(one.waits for one in self._seen)
        together = max(1, -(-FEWEST_WAITS * len(self._seen) // max(1, waits)))
        together = min(together, max(1, len(self._seen) // FEWEST_PAIRS))
        whole = len(self._seen) // together * together
        return [sum(self._seen[at : at + together], _NOTHING) for at in range(0, whole, together)]

    def _counts(self, pid: int) -> _Counts | None:
        try:
            waits = proc.parse_times_blocked(proc.read_text(f"{self._root}/{pid}/status"))
            scheduled = proc.parse_schedstat(proc.read_text(f"{self._root}/{pid}/schedstat"))
            read = proc.parse_read_counts(proc.read_text(f"{self._root}/{pid}/io"))
        except (ValueError, LookupError):  # the process has ended, or its files are not readable
            return None
        if waits is None or scheduled is None:
            return None
        on_cpu_s = (scheduled.run_ns + scheduled.wait_ns) / 1e9
        return _Counts(self._clock(), on_cpu_s, waits, read.asked_bytes)


LEVEL = 0.9
FEWEST_PAIRS = 8
LEAST_VARIETY = 0.03
"""Minimum standard deviation of the differences, relative to the means; below it, the two counts are equivalent."""


def share_explained(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The share of a constant that `second` explains, by nonnegative least squares without an intercept.

    Both are paired sequences of positive values per unit of the constant. `None` if there are too few pairs, or if both
    are equally steady.
    """
    if len(first) < FEWEST_PAIRS or not any(first) or not any(second):
        return None
    ours, others = _relative(first), _relative(second)
    if not _variances_differ(ours, others):
        return None
    from scipy.optimize import nnls  # takes half a second to import, and --help does not need it

    (own, other), _ = nnls(list(zip(ours, others, strict=True)), [1.0] * len(first))
    return float(other / (own + other))


def _relative(values: Sequence[float]) -> list[float]:
    mean = fmean(values)
    return [value / mean for value in values]


def _variances_differ(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether the variances differ; equal variances imply uncorrelated sums and differences of the pairs."""
    sums = [one + other for one, other in zip(first, second, strict=True)]
    differences = [one - other for one, other in zip(first, second, strict=True)]
    if pstdev(differences) < LEAST_VARIETY or not pstdev(sums):
        return False
    from scipy.special import stdtrit

    degrees, found = len(first) - 2, correlation(sums, differences)
    unexplained = max(0.0, 1 - found**2)  # rounding can put a correlation beyond 1
    return abs(found) * math.sqrt(degrees) >= float(stdtrit(degrees, 0.5 + LEVEL / 2)) * math.sqrt(unexplained)
