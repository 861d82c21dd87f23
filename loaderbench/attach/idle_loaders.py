"""Which workers belong to a loader that is not iterated over now, as those of a validation that persist."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence

from loaderbench.monitors import kind_of, proc
from loaderbench.monitors.blocked import QUEUE

WAKES_EACH_S = 5.0
"""An idle worker looks so often whether its parent is alive: `MP_STATUS_CHECK_INTERVAL` of torch."""

BLOCKS_PER_WAKE = 2
START_GAP_S = 0.05
"""Workers of one loader start one after the other. After a longer gap, those of another loader begin. A large process
takes as long to fork: each of its workers is then a group of its own."""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class IdleLoaders:
    """Looks at all workers several times a second. `root` is for tests."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._first: dict[int, tuple[float, int]] = {}  # when a worker was seen first, and how often it had blocked
        self._worked = set[int]()
        self.idle = frozenset[int]()  # the workers that the last look left out

    def at_work(self, pids: Sequence[int], now_s: float | None = None) -> list[int]:
        """The workers of loaders of which one has worked since the first look.

        All of them at the first look, and where no loader has worked.
        """
        now_s = time.monotonic() if now_s is None else now_s
        is_first = not self._first
        for pid in pids:
            self._look(pid, now_s)
        groups = [group for group in self._loaders(pids) if is_first or not self._worked.isdisjoint(group)]
        found = frozenset(pid for group in groups for pid in group) or frozenset(pids)
        self.idle = frozenset(pids) - found
        return [pid for pid in pids if pid in found]

    def _look(self, pid: int, now_s: float) -> None:
        blocked = proc.parse_times_blocked(proc.read_text(f"{self._root}/{pid}/status")) or 0
        began_s, before = self._first.setdefault(pid, (now_s, blocked))
        may_wake = BLOCKS_PER_WAKE * (1 + (now_s - began_s) / WAKES_EACH_S)
        is_idle = kind_of(proc.read_text(f"{self._root}/{pid}/wchan").strip()) == QUEUE
        if not is_idle or blocked - before > may_wake:
            self._worked.add(pid)

    def _loaders(self, pids: Iterable[int]) -> Iterator[list[int]]:
        """Workers that started together."""
        began = sorted((self._began_s(pid), pid) for pid in pids)
        group: list[int] = []
        before_s = 0.0
        for began_s, pid in began:
            if group and began_s - before_s > START_GAP_S:
                yield group
                group = []
            group.append(pid)
            before_s = began_s
        if group:
            yield group

    def _began_s(self, pid: int) -> float:
        text = proc.read_text(f"{self._root}/{pid}/stat")
        return proc.parse_activity(text).began_ticks / _TICKS_PER_S if text else 0.0
