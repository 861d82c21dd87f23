"""A clock that slows down as much as a busy machine slows down its programs."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

LOADAVG = Path("/proc/loadavg")


class MachineClock:
    """Seconds during which a process had a CPU to itself, or would have had one. Counts whenever it is read."""

    def __init__(self) -> None:
        self._seconds, self._looked_s = 0.0, time.monotonic()
        self._cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def seconds(self) -> float:
        """Seconds since the clock was created, each interval divided by the runnable threads per CPU."""
        now_s = time.monotonic()
        self._seconds += (now_s - self._looked_s) * min(1.0, self._cpus / _runnable())
        self._looked_s = now_s
        return self._seconds


def _runnable() -> int:
    """Runnable threads, including those of other programs: the fourth field. Source: proc_loadavg(5)."""
    with suppress(OSError, IndexError, ValueError):
        return max(1, int(LOADAVG.read_text().split()[3].partition("/")[0]))
    return 1
