"""The Python thread next to the loop that uses the most CPU time is found, with its name."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from loaderbench.monitors import PythonThreads, proc

pytestmark = pytest.mark.skipif(not proc.available(), reason="no /proc with times of threads here")


def count_until(over: threading.Event) -> None:
    while not over.is_set():
        sum(range(100))


def use_a_cpu(cpu_s: float) -> None:
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        sum(range(100))


@contextmanager
def running(*threads: threading.Thread, over: threading.Event) -> Iterator[None]:
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_the_busiest_thread_is_named_by_its_outermost_own_function() -> None:
    over, watch = threading.Event(), PythonThreads()
    watch.begin()
    busy, idle = threading.Thread(target=count_until, args=(over,)), threading.Thread(target=over.wait)
    with running(busy, idle, over=over):
        use_a_cpu(0.2)
        found = watch.busiest()
    assert found is not None
    assert found.name == f"count_until (test_python_threads.py:{count_until.__code__.co_firstlineno})"
    assert 0.05 < found.cpu_share < 1.1


def test_time_before_the_beginning_does_not_count() -> None:
    over, paused, go, watch = threading.Event(), threading.Event(), threading.Event(), PythonThreads()

    def work_first() -> None:
        use_a_cpu(0.2)
        paused.set()
        over.wait()

    early, late = threading.Thread(target=work_first), threading.Thread(target=lambda: (go.wait(), count_until(over)))
    with running(early, late, over=over):
        assert paused.wait(60)
        watch.begin()
        go.set()
        use_a_cpu(0.1)
        found = watch.busiest()
    assert found is not None
    assert found.name.startswith("<lambda>")


@pytest.mark.parametrize("name", ["loaderbench-lines", "Thread-1 (_pin_memory_loop)"])
def test_known_threads_and_the_own_one_are_left_out(name: str) -> None:
    over, watch = threading.Event(), PythonThreads()
    watch.begin()
    with running(threading.Thread(target=count_until, args=(over,), name=name), over=over):
        use_a_cpu(0.1)
        found = watch.busiest()
    assert found is None or "count_until" not in found.name


def test_the_thread_that_runs_the_loop_is_left_out_if_another_one_asks() -> None:
    over, began, watch = threading.Event(), threading.Event(), PythonThreads()
    assert watch.busiest() is None

    def train() -> None:
        watch.begin()
        began.set()
        count_until(over)

    with running(threading.Thread(target=train), over=over):
        assert began.wait(60)
        use_a_cpu(0.1)
        found = watch.busiest()
    assert found is None or not found.name.startswith("train")
