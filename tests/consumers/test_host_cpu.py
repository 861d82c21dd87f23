"""An emulated GPU takes the CPU time it was given, in one thread or in several, and steps with those of other ranks."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from loaderbench.consumers import emulated
from loaderbench.consumers.emulated import ComputingThreads, Emulated, EmulatedAccelerator, compute_for


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


def test_a_step_begins_when_all_ranks_have_their_batch_and_that_is_no_wait_for_data() -> None:
    now_s = [0.0]
    device = EmulatedAccelerator(10, lambda: now_s[0], last_of_ranks=lambda own_s: max(own_s, 5.0))
    device.consume(None, 10)  # from 5 to 6
    device.wait_clock.ask()
    now_s[0] = 6.5
    device.wait_clock.got()
    assert device.wait_clock.waits_s() == [0.5]


def test_a_loop_that_waits_for_each_step_asks_for_the_next_batch_when_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(emulated.time, "sleep", lambda pause_s: now_s.__setitem__(0, now_s[0] + pause_s))
    ended_s: dict[bool, list[float]] = {}
    for blocking in (True, False):
        now_s[0] = 1.0
        device = Emulated(demand=10.0, blocking=blocking).make({}, Path(), lambda: now_s[0])
        for _ in range(3):
            device.consume(None, 5)
            ended_s.setdefault(blocking, []).append(now_s[0])
    assert ended_s == {True: [1.5, 2.0, 2.5], False: [1.0, 1.0, 1.5]}


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


@pytest.mark.timed
@pytest.mark.parametrize("count", [2, 3])
def test_several_threads_take_the_cpu_time_together(count: int) -> None:
    threads = ComputingThreads(count)
    cpu_s, own_s = time.process_time(), time.thread_time()
    for _ in range(5):
        threads.compute_for(0.06)
    assert time.thread_time() - own_s >= 5 * 0.06 / count
    assert time.process_time() - cpu_s >= 5 * 0.06


def test_a_region_ends_when_its_slowest_thread_does(monkeypatch: pytest.MonkeyPatch) -> None:
    regions: dict[int, int] = {}

    def slow_in_one_thread(cpu_s: float) -> None:
        number = threading.get_ident()
        if number != main:
            time.sleep(0.002)
        regions[number] = regions.get(number, 0) + 1
        assert max(regions.values()) - min(regions.values()) <= 1 or len(regions) == 1

    main = threading.get_ident()
    monkeypatch.setattr(emulated, "compute_for", slow_in_one_thread)
    ComputingThreads(2).compute_for(2 * 10 * emulated.REGION_S)
    assert sorted(regions.values()) == [10, 10]


def test_the_options_of_a_suite_reach_the_device() -> None:
    given = Emulated(demand=100.0, host_cpu_s_per_sample=0.01, host_threads=2)
    device = given.make({}, Path(), time.monotonic)
    before, all_before = time.thread_time(), time.process_time()
    device.consume(None, 8)
    assert time.thread_time() - before >= 0.04
    assert time.process_time() - all_before >= 0.08
