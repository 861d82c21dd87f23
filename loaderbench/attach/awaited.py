"""Checks what workers do while the main process waits for a batch, which shows what delays the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loaderbench.monitors import kind_at, proc
from loaderbench.monitors.blocked import DEVICE, FEWEST_LOOKS, PAGE_FAULT, QUEUE, RUNNING, STORAGE


class AwaitedLooks:
    """Checks all workers at moments in which the main process waits. `root` is for tests.

    A worker that waits for its next indices, with no activity in any of its threads, has delivered everything requested
    of it. If another worker is busy at that time, the idle worker's batches are ready in the main process, which
    returns batches in order.
    """

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._seen: Counter[str] = Counter()

    def look(self, main: int, workers: Sequence[int]) -> None:
        """Check once. The result counts only if the main process received no batch during the check."""
        before = self._times_blocked(main)
        found = self._find(workers) if workers else None
        if found is not None and self._kind(main) != RUNNING and self._times_blocked(main) == before:
            self._seen[found] += 1

    def _find(self, workers: Sequence[int]) -> str:
        idle = [pid for pid in workers if self._kind(pid) == QUEUE]
        if len(idle) == len(workers):
            return "transport"
        return "order" if any(map(self._is_done, idle)) else "making"

    @property
    def shares(self) -> dict[str, float] | None:
        """Results as shares of all checks; `None` if there are too few."""
        looks = self._seen.total()
        return {what: count / looks for what, count in sorted(self._seen.items())} if looks >= FEWEST_LOOKS else None

    def _is_done(self, pid: int) -> bool:
        """Whether an idle worker has nothing left to send."""
        threads = [f"{pid}/task/{thread}" for thread in proc.threads_of(pid, self._root)]
        return not set(map(self._kind, threads)) & {RUNNING, DEVICE, STORAGE, PAGE_FAULT}

    def _times_blocked(self, pid: int) -> int | None:
        return proc.parse_times_blocked(proc.read_text(f"{self._root}/{pid}/status"))

    def _kind(self, process: int | str) -> str | None:
        return kind_at(f"{self._root}/{process}")
