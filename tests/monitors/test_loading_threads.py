"""Threads of this process that load are read as workers, and are no part of the main process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from loaderbench.loaders.thread_workers import threads_started
from loaderbench.monitors import WorkerWatch, proc

pytestmark = pytest.mark.skipif(not proc.available(), reason="no /proc with lists of children here")

BLOCK = bytes(4 << 20)


@contextmanager
def thread(work: Callable[[], object]) -> Iterator[int]:
    """A thread that does this again and again; its number."""
    over, began = threading.Event(), threading.Event()

    def run() -> None:
        began.set()
        while not over.is_set():
            work()

    made = threading.Thread(target=run)
    with threads_started() as found:
        made.start()
        began.wait()
    try:
        assert found == [made.native_id]
        yield found[0]
    finally:
        over.set()
        made.join()


def compute() -> None:
    zlib.crc32(BLOCK)  # without the GIL


def test_a_computing_thread_is_on_a_cpu_and_one_that_waits_is_blocked() -> None:
    wait = threading.Event()
    with thread(compute) as busy, thread(lambda: wait.wait(0.01)) as idle:
        watches = [WorkerWatch(), WorkerWatch()]
        for _ in range(2):
            for watch, number in zip(watches, (busy, idle), strict=True):
                watch.read([], [number])
            for _ in range(50):
                compute()
        of_busy, of_idle = (watch.states() for watch in watches)
    assert of_busy is not None
    assert of_idle is not None
    assert (of_busy.count, of_busy.threads_per_worker) == (1, 1)
    assert of_busy.blocked_share < 0.5  # it may wait for the GIL of a thread that is not on a CPU
    assert of_idle.blocked_share > 0.5


def test_threads_that_load_are_left_out_of_the_main_process() -> None:
    with thread(compute) as busy:
        whole, apart = WorkerWatch(), WorkerWatch()
        for _ in range(2):
            whole.read([os.getpid()])
            apart.read([os.getpid()], apart=[busy])
            for _ in range(50):
                compute()
        of_all, of_rest = whole.states(), apart.states()
    assert of_all is not None
    assert of_rest is not None
    assert of_rest.other_threads_cpu_share < of_all.other_threads_cpu_share
    assert of_rest.threads_per_worker == of_all.threads_per_worker - 1


def test_memory_of_threads_is_that_of_their_process() -> None:
    with thread(compute) as busy:
        watch = WorkerWatch()
        watch.read([], [busy])
        compute()
        watch.read([], [busy])
        watch.read_memory([])
    states = watch.states()
    assert states is not None
    assert states.not_measured["pss_bytes"] == "threads share the memory of the main process"


def test_a_thread_that_has_ended_is_not_read() -> None:
    with thread(compute) as busy:
        pass
    while os.path.exists(f"/proc/self/task/{busy}"):  # noqa: PTH110 - the kernel's part ends after Python's
        pass
    watch = WorkerWatch()
    for _ in range(2):
        watch.read([], [busy])
    assert watch.states() is None


def test_the_time_of_child_programs_counts_once_for_all_threads_of_a_process() -> None:
    burn = "import time\nwhile time.process_time() < 0.6: pass"
    wait = threading.Event()
    with thread(lambda: wait.wait(0.01)) as one, thread(lambda: wait.wait(0.01)) as other:
        watches = [WorkerWatch(), WorkerWatch()]
        for _ in range(2):
            for watch, numbers in zip(watches, ([one], [one, other]), strict=True):
                watch.read([], numbers)
            subprocess.run([sys.executable, "-c", burn], check=True)
        of_one, of_both = (watch.states() for watch in watches)
    assert of_one is not None
    assert of_both is not None
    assert of_one.children_cpu_share
    assert of_both.children_cpu_share == pytest.approx(of_one.children_cpu_share / 2, rel=0.2)
