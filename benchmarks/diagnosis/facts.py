"""What the kernel says a loop's processes did: the proof that a planted cause is there, without the tool under test."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

Facts = dict[str, float]
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> dict[str, float]:
    """CPU seconds, seconds on the run queue over all threads, minor faults and bytes from storage."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tasks = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    read = Path(f"/proc/{pid}/io").read_text().split("read_bytes: ")[1].split()[0]
    return {
        "user_s": int(fields[11]) * _TICK_S,
        "system_s": int(fields[12]) * _TICK_S,
        "on_cpu_s": sum(int(task[0]) for task in tasks) / 1e9,
        "queue_s": sum(int(task[1]) for task in tasks) / 1e9,
        "faults": float(fields[7]),
        "read_bytes": float(read),
        "threads": float(len(tasks)),
    }


def _all() -> dict[int, dict[str, float]]:
    found = {}
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            found[process.pid] = _stat(process.pid)
        except OSError:  # it has ended meanwhile
            continue
    return found


def _machine_s() -> float:
    """CPU seconds of the whole machine: user, nice, system, interrupts."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) * _TICK_S


class Watched:
    """Watches this process and all below it, from now on. Processes that come or go in between are not counted."""

    def __init__(self) -> None:
        self._began_s, self._before = time.perf_counter(), _all()
        self._machine_s = _machine_s()

    def facts(self) -> Facts:
        """Cores in use by main process and by workers, per worker its queueing, and the kernel's share."""
        wall_s, after = time.perf_counter() - self._began_s, _all()
        deltas = {
            pid: {name: after[pid][name] - before[name] for name in before}
            for pid, before in self._before.items()
            if pid in after
        }
        main = deltas.pop(os.getpid())
        busy = [delta for delta in deltas.values() if delta["on_cpu_s"] > 0.01 * wall_s or len(deltas) < 3]
        everyone = [main, *deltas.values()]
        cpu_s = sum(delta["user_s"] + delta["system_s"] for delta in everyone)
        return {
            "main_cores": main["on_cpu_s"] / wall_s,
            "worker_cores": sum(delta["on_cpu_s"] for delta in deltas.values()) / wall_s,
            "queue_per_worker": sum(delta["queue_s"] for delta in busy) / wall_s / max(1, len(busy)),
            "others_cores": (_machine_s() - self._machine_s) / wall_s - cpu_s / wall_s,
            "system_share": sum(delta["system_s"] for delta in everyone) / max(cpu_s, 1e-9),
            "faults_per_s": sum(delta["faults"] for delta in everyone) / wall_s,
            "storage_mb_per_s": sum(delta["read_bytes"] for delta in everyone) / wall_s / 1e6,
            "threads_per_worker": max((after[pid]["threads"] for pid in deltas), default=0.0),
        }
