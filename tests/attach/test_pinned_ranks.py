"""A training may be bound to other CPUs than the command that looks at it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from loaderbench.attach.job import Training
from loaderbench.attach.watch import JobWatch

BUSY = "while True: pass"


@contextmanager
def busy_on(cpu: int) -> Iterator[Training]:
    """A program that never rests, on one CPU."""
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        os.sched_setaffinity(process.pid, {cpu})
        yield Training(process.pid, BUSY)
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_ranks_bound_to_cpus_of_their_own_are_counted_on_these_only() -> None:
    first, second, *_ = sorted(os.sched_getaffinity(0))
    with busy_on(first) as one, busy_on(second) as other:
        job = JobWatch([one, other])
        job.look_for(0.5)
    found = [watch.machine.use() for watch in job.watches]
    assert [watch.cpus for watch in job.watches] == [[first], [second]]
    assert [(use.cpus, use.ranks) for use in found if use is not None] == [(1, 1), (1, 1)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_training_that_ends_has_used_what_it_used_until_then() -> None:
    ends = "import time\nbegan_s = time.monotonic()\nwhile time.monotonic() < began_s + 1.5: pass"
    cpu = min(os.sched_getaffinity(0))
    with busy_on(cpu) as lasting, subprocess.Popen([sys.executable, "-c", ends]) as ending:
        job = JobWatch([lasting, Training(ending.pid, ends)])
        threading.Thread(target=ending.wait).start()  # nothing is left of it in /proc
        job.look_for(3)
    assert job.watches[1].use().cpu_s > 0.3
    use = job.watches[1].machine.use()
    assert use is not None
    assert use.own_cpus > 0.3
    assert all(watch.allotted.cpus >= 1 for watch in job.watches)
