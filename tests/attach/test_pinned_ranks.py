"""A training may be bound to other CPUs than the command that looks at it."""

from __future__ import annotations

import os
import subprocess
import sys
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
