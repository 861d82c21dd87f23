"""Scheduling states of DataLoader workers between readings: on a CPU, in a run queue, or blocked.

Linux only: elsewhere there are no states, and `why_not` has the reason. Source: proc(5), and sched-stats.rst of the
kernel. The kernel adds time in a run queue only when the thread leaves the queue, so only totals are clipped, not
single readings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from loaderbench.monitors import proc
from loaderbench.monitors.processes import Reading, Sums, read_process, read_thread, thread_times
from loaderbench.records import Reasons, WorkerStates
from loaderbench.records.words import NOT_READ_TWICE

NO_CPU_COUNT = 1 << 30
PINNING_THREAD = "pt_data_pin"  # torch's name for the thread that copies batches into pinned memory


class WorkerWatch:
    """Adds up the states of worker processes between readings. Processes can come and go: each epoch starts new ones.

    Activity before a process's first reading or after its last is not seen. `root` and `clock` are for tests.
    """

    def __init__(self, root: str = "/proc", clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock = root, clock
        self._before: dict[int, Reading] = {}
        self._sums = Sums()
        self._senders = set[int]()
        self._pins: dict[tuple[int, int], bool] = {}
        self._has_pinning, self._pinning_s = False, 0.0
        self._count = 0
        self._allowed_cpus = NO_CPU_COUNT
        self._are_threads = False
        self._pss_bytes: int | None = None
        self._swapped_bytes: int | None = None
        self._why_no_memory = "worker memory was not read"

    def read(
        self,
        pids: Sequence[int],
        threads: Sequence[int] = (),
        *,
        apart: Collection[int] = (),
        senders: Collection[int] = (),
    ) -> None:
        """Read each process once, in about 50 microseconds.

        A process that was missing from a reading starts again without a previous one. `threads` of this process are
        read like processes. `apart` are threads to leave out of processes, and `senders` those that send batches.
        Unreadable files raise no error, because this is called from inside a user's training loop.
        """
        found = [read_process(self._root, pid, self._clock) for pid in pids]
        found += [read_thread(self._root, thread, self._clock) for thread in threads]
        now = {one.pid: one.without(apart) for one in found if one is not None}
        pairs = [(self._before[pid], found) for pid, found in now.items() if pid in self._before]
        self._sums.add(pairs)
        self._senders.update(senders)
        self._read_swapped(
            after.pid for before, after in pairs if before.activity.major_faults < after.activity.major_faults
        )
        self._pinning_s += sum(
            runnable_s
            for before, after in pairs
            for thread, _, runnable_s in thread_times(before, after)
            if self._is_pinning(after.pid, thread)
        )
        self._count = max(self._count, len(now))
        self._are_threads = bool(threads) and not pids
        self._allowed_cpus = min([*map(_allowed_cpus, now), self._allowed_cpus])
        self._before = now
        self._pins = {key: pins for key, pins in self._pins.items() if key[0] in now}

    def pause(self) -> None:
        """Leave out the time until the next reading, such as an epoch boundary."""
        self._before = {}

    def read_memory(self, pids: Sequence[int]) -> None:
        """Read the workers' PSS and what of their memory is in swap, and keep the largest sums.

        Costs milliseconds per process.
        """
        self._read_swapped(pids)  # at least this much, if what follows takes too long
        texts = [proc.read_text(f"{self._root}/{pid}/smaps_rollup") for pid in pids]
        sizes = [proc.parse_pss_bytes(text) for text in texts if "Pss:" in text]
        swapped = [found for text in texts if (found := proc.parse_swapped_out(text))]
        if sizes:
            self._pss_bytes = max(self._pss_bytes or 0, sum(sizes))
        if swapped:
            self._swapped_bytes = max(self._swapped_bytes or 0, _swapped_bytes(swapped))
        self._why_no_memory = (
            "threads share the memory of the main process"
            if not pids
            else "proportional memory (PSS) of the workers is not readable"
        )

    def _read_swapped(self, pids: Iterable[int]) -> None:
        """Read how much of each process is in swap, and keep the largest size."""
        statuses = [proc.parse_vm_swap(proc.read_text(f"{self._root}/{pid}/status")) for pid in pids]
        in_swap = [size for size in statuses if size is not None]
        if in_swap:
            self._swapped_bytes = max(self._swapped_bytes or 0, *in_swap)

    def states(self, senders: Collection[int] = ()) -> WorkerStates | None:
        """The workers' states over all intervals; `None` if there are none, and then `why_not` has the reason.

        `senders` are threads that send batches, in addition to those of the readings.
        """
        sums, sending = self._sums, self._sums.times_of({*self._senders, *senders})
        if sums.wall_s <= 0:
            return None
        on_cpu = min(1.0, sums.run_s / sums.wall_s)
        run_queue = min(1.0 - on_cpu, sums.wait_s / sums.wall_s)
        hits, why_no_hits = sums.page_cache_hits()
        reasons: Reasons = {"page_cache_hit_share": why_no_hits} if hits is None else {}
        system = sums.system_share()
        if system is None:
            reasons["system_share"] = "the workers used too little CPU time"
        reasons["blocked_on"] = "what workers were blocked on was not checked"
        if not self._has_pinning:
            reasons["pinning_share"] = "no thread pins memory, or this torch version does not name it"
        if self._allowed_cpus == NO_CPU_COUNT:
            reasons["allowed_cpus"] = "this system does not report CPU affinity"
        if sending is None:
            reasons |= dict.fromkeys(("sending_cpu_share", "sending_threads"), "no thread is known to send batches")
        if not sums.read_io:
            reasons["read_bytes_per_s"] = why_no_hits
        if self._pss_bytes is None:
            reasons["pss_bytes"] = self._why_no_memory
        if self._swapped_bytes is None:
            reasons["swapped_bytes"] = self._why_no_memory
        return WorkerStates(
            on_cpu_share=on_cpu,
            run_queue_share=run_queue,
            blocked_share=1.0 - on_cpu - run_queue,
            count=self._count,
            mean_count=sums.wall_s / sums.clock_s,
            other_threads_cpu_share=sums.others_s / sums.wall_s,
            children_cpu_share=sums.children_s / sums.wall_s,
            threads_per_worker=sums.threads / sums.intervals,
            page_cache_hit_share=hits,
            minor_faults_per_s=sums.minor_faults / sums.clock_s,
            read_bytes_per_s=sums.asked_bytes / sums.clock_s if sums.read_io else None,
            major_faults_per_s=sums.major_faults / sums.clock_s,
            pss_bytes=self._pss_bytes,
            swapped_bytes=self._swapped_bytes,
            runnable_threads=sums.runnable_s / sums.clock_s,
            sending_cpu_share=sending.run_s / sums.wall_s if sending else None,
            sending_threads=sending.runnable_s / sums.clock_s if sending else None,
            system_share=system,
            allowed_cpus=self._allowed_cpus if self._allowed_cpus < NO_CPU_COUNT else None,
            are_threads=self._are_threads,
            pinning_share=min(1.0, self._pinning_s / sums.wall_s) if self._has_pinning else None,
            not_measured=reasons,
        )

    def _is_pinning(self, pid: int, thread: int) -> bool:
        """Whether this is the pin-memory thread. Its name is read once, while its process is watched."""
        if (pid, thread) not in self._pins:
            name = proc.read_text(f"{self._root}/{pid}/task/{thread}/comm").strip()
            self._pins[pid, thread] = name == PINNING_THREAD
            self._has_pinning = self._has_pinning or self._pins[pid, thread]
        return self._pins[pid, thread]

    def why_not(self) -> str:
        """Why there are no states, as a clause; empty if there are states."""
        if self._sums.wall_s > 0:
            return ""
        if not any(Path(self._root).glob("[0-9]*")):
            return "worker states need Linux and its /proc"
        if self._sums.incomplete:
            return "no scheduler statistics in this kernel"
        return NOT_READ_TWICE


def _swapped_bytes(found: Sequence[proc.SwappedOut]) -> int:
    """At least this much of the processes' memory is in swap. The second term has swapped-out shared memory."""
    return max(sum(one.proportional_bytes for one in found), *(one.all_bytes for one in found))


def _allowed_cpus(pid: int) -> int:
    try:
        return len(os.sched_getaffinity(pid))
    except (OSError, AttributeError):
        return NO_CPU_COUNT
