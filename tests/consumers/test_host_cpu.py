"""An emulated GPU whose host computes takes the CPU time it was given, and leaves the interpreter to others."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from loaderbench.consumers.emulated import Emulated, EmulatedAccelerator, compute_for


@pytest.mark.timed
@pytest.mark.parametrize("samples", [1, 8])
def test_each_sample_takes_its_cpu_time(samples: int) -> None:
    device = EmulatedAccelerator(1e9, host_s_per_sample=0.005)
    before = time.thread_time()
    for _ in range(4):
        device.consume(None, samples)
    assert time.thread_time() - before == pytest.approx(4 * samples * 0.005, rel=0.2)


def test_without_it_the_host_takes_none() -> None:
    device = EmulatedAccelerator(1e9)
    before = time.thread_time()
    for _ in range(100):
        device.consume(None, 8)
    assert time.thread_time() - before < 0.1


@pytest.mark.timed
def test_other_threads_run_meanwhile() -> None:
    counted = [0]
    over = threading.Event()

    def count() -> None:
        while not over.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    compute_for(0.5)
    over.set()
    thread.join()
    assert counted[0] > 50


def test_the_option_of_a_suite_reaches_the_device() -> None:
    given = Emulated(demand=100.0, host_cpu_s_per_sample=0.01)
    device = given.make({}, Path(), time.monotonic)
    before = time.thread_time()
    device.consume(None, 5)
    assert time.thread_time() - before > 0.04
