"""Stopped processes go on on other CPUs, and their threads keep their places next to each other."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from loaderbench.monitors import proc
from loaderbench.runner.time_slices import allow_all, move_to_next_cpus, next_cpu

linux = pytest.mark.skipif(sys.platform != "linux", reason="CPUs of a thread are chosen on Linux")
THREE_THREADS = """
import threading, time
for _ in range(2):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("started", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize(("last", "following"), [(2, 3), (3, 7), (7, 2), (0, 2), (9, 2), (5, 7)])
def test_after_the_last_cpu_comes_the_first(last: int, following: int) -> None:
    assert next_cpu({2, 3, 7}, last) == following


@pytest.fixture
def stopped() -> Iterator[int]:
    """A process of three threads, stopped."""
    with subprocess.Popen([sys.executable, "-c", THREE_THREADS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        yield process.pid
        process.kill()


@linux
def test_each_thread_may_only_use_the_next_cpu_until_all_are_allowed(stopped: int) -> None:
    before = {thread: os.sched_getaffinity(thread) for thread in proc.last_cpus(stopped)}
    last = proc.last_cpus(stopped)
    assert len(last) == 3
    assert move_to_next_cpus([stopped]) == before
    for thread, cpu in last.items():
        assert os.sched_getaffinity(thread) == {next_cpu(before[thread], cpu)}
    os.kill(stopped, signal.SIGCONT)
    allow_all(before)
    assert {thread: os.sched_getaffinity(thread) for thread in before} == before


@linux
@pytest.mark.skipif(os.cpu_count() == 1, reason="there is no other CPU")
def test_a_process_that_goes_on_runs_on_the_next_cpu() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            os.kill(process.pid, signal.SIGSTOP)
            until_stopped(process.pid)
            before = proc.last_cpus(process.pid)[process.pid]
            cpus = move_to_next_cpus([process.pid])[process.pid]
            os.kill(process.pid, signal.SIGCONT)
            until_s = time.monotonic() + 30
            while proc.last_cpus(process.pid)[process.pid] != next_cpu(cpus, before):
                assert time.monotonic() < until_s
                time.sleep(0.001)
        finally:
            process.kill()


def until_stopped(pid: int) -> None:
    """A signal stops a process that runs on another CPU a little later."""
    while proc.read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)


@linux
def test_a_process_that_is_gone_has_no_threads() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert move_to_next_cpus([process.pid]) == {}
    allow_all({process.pid: {0}})
