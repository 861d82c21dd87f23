"""Finds whether blocked workers wait for bytes or for requests, from the kernel's counts of both and of time.

Linux only. Source: proc(5), `/proc/<pid>/status` (voluntary context switches: how often the main thread was blocked),
`/proc/<pid>/io` (`rchar`: bytes returned by read(2) and similar calls) and `/proc/<pid>/schedstat`.

The one that takes the time varies less per second. A test for two paired variances decides. Sources: Pitman, A Note on
Normal Correlation, Biometrika 1939; Morgan, A Test for the Significance of the Difference between the Two Variances in
a Sample from a Normal Bivariate Population, Biometrika 1939.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import correlation, fmean, pstdev

from loaderbench.monitors import proc

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
