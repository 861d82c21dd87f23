"""Finds workers of loaders that are not being iterated over, such as a validation loader with persistent workers."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
