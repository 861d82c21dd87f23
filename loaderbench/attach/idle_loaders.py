"""Finds workers of loaders that nobody iterates over, such as a validation loader with persistent workers."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loaderbench.monitors import kind_of, proc
from loaderbench.monitors.blocked import QUEUE

WAKES_EACH_S = 5.0
"""An idle worker looks so often whether its parent is alive: `MP_STATUS_CHECK_INTERVAL` of torch."""

BLOCKS_PER_WAKE = 2
START_GAP_S = 0.05
"""Workers of one loader start one after the other. After a longer gap, those of another loader begin. A large process
takes as long to fork: each of its workers is then a group of its own."""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class _FirstLook:
    """A worker as it was first seen: at this time, after blocking so often. It started at `began_s` after boot."""

    at_s: float
    blocked: int
    began_s: float


class IdleLoaders:
    """Looks at all workers several times a second. `root` is for tests."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._first: dict[int, _FirstLook] = {}
        self._worked = set[int]()
        self.idle = frozenset[int]()  # the workers that the last look left out

    def at_work(self, pids: Sequence[int], now_s: float | None = None) -> list[int]:
        """The workers of loaders with a worker that has worked, or started, since the first look.

        All of them at the first look, and if no loader has worked.
        """
        now_s = time.monotonic() if now_s is None else now_s
        is_first = not self._first
        for pid in pids:
            if pid in self._first:
                self._look(pid, now_s)
            else:
                self._first[pid] = _FirstLook(now_s, self._blocked(pid), self._began_s(pid))
                self._worked |= set() if is_first else {pid}  # somebody has just begun to iterate
        groups = [group for group in self._loaders(pids) if is_first or not self._worked.isdisjoint(group)]
        found = frozenset(pid for group in groups for pid in group) or frozenset(pids)
        self.idle = frozenset(pids) - found
        return [pid for pid in pids if pid in found]

    def _look(self, pid: int, now_s: float) -> None:
        first = self._first[pid]
        may_wake = BLOCKS_PER_WAKE * (1 + (now_s - first.at_s) / WAKES_EACH_S)
        is_idle = kind_of(proc.read_text(f"{self._root}/{pid}/wchan").strip()) == QUEUE
        if not is_idle or self._blocked(pid) - first.blocked > may_wake:
            self._worked.add(pid)

    def _loaders(self, pids: Iterable[int]) -> list[list[int]]:
        """Workers that started together."""
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
