"""Moves stopped processes to other CPUs, with their threads placed next to each other as before.

CPUs of a shared machine differ for a second or two, and a process that is stopped would stay where it was. Threads that
work at the same time must not meet on one CPU: they would share it until the system moves one of them away.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress

from loaderbench.monitors import proc


def move_to_next_cpus(pids: Iterable[int]) -> dict[int, Set[int]]:
    """Let each thread of these go on on the next of its CPUs, and only there.

    Returns the CPUs that each thread may use, for `allow_all`.
    """
    allowed: dict[int, Set[int]] = {}
    for pid in pids:
        for thread, last in proc.last_cpus(pid).items():
            with suppress(OSError):  # it is gone, or its CPUs are others now
                cpus = os.sched_getaffinity(thread)
                os.sched_setaffinity(thread, {next_cpu(cpus, last)})
                allowed[thread] = cpus
    return allowed


def next_cpu(cpus: Set[int], last: int) -> int:
    """The one after `last`, or the first where there is none after it."""
    return min((cpu for cpu in cpus if cpu > last), default=min(cpus))


def allow_all(allowed: Mapping[int, Set[int]]) -> None:
    """Let the system move the threads again, now that they run."""
    for thread, cpus in allowed.items():
        with suppress(OSError):
            os.sched_setaffinity(thread, cpus)
