"""The lines of a loop outside of its loader are found by stack samples of its own thread."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from loaderbench.tracing.loop_lines import EACH, FEWEST_LOOKS, INTERVALS_S, Driver, LineTimes, LoopLineClock, driver_of

NAME = Path(__file__).name


def marked(mark: str) -> str:
    """The place of the only line of this file that ends with a comment."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"  # {mark}")]
    return f"{NAME}:{found}"


def innermost() -> FrameType:
    return sys._getframe()  # innermost


def called() -> FrameType:
    return innermost()  # caller


def added(times: LineTimes, frames: Iterator[FrameType], driver: Driver = frozenset()) -> None:
    for frame in frames:
        times.add(frame, driver)


def place_of(times: LineTimes) -> str | None:
    found = times.busiest()
    return found and found.place


@pytest.fixture
def clock() -> Iterator[LoopLineClock]:
    made = LoopLineClock()
    yield made
    made.stop()


def test_the_innermost_line_is_named_with_its_text_and_share() -> None:
    times = LineTimes()
    added(times, (called() for _ in range(FEWEST_LOOKS)))
    found = times.busiest()
    assert found is not None
    assert (found.place, found.looks) == (marked("innermost"), FEWEST_LOOKS)
    assert found.text == "return sys._getframe()  # innermost"
    assert found.share == pytest.approx(1)


def test_the_caller_is_named_if_its_time_is_spread_over_lines() -> None:
    def several(number: int) -> FrameType:
        if number % 3 == 0:
            return sys._getframe()
        if number % 3 == 1:
            return sys._getframe()
        return sys._getframe()

    def calls(number: int) -> FrameType:
        return several(number)  # spread

    times = LineTimes()
    added(times, (calls(number) for number in range(30)))
    assert place_of(times) == marked("spread")


def test_no_line_is_named_of_few_stack_samples() -> None:
    times = LineTimes()
    added(times, (called() for _ in range(FEWEST_LOOKS - 1)))
    assert times.busiest() is None
    assert times.why_none == "9 stack samples of this part of the loop; 10 are needed"
    assert LineTimes().why_none == "no stack samples of this part of the loop; 10 are needed"


def test_lines_of_libraries_do_not_count() -> None:
    found: list[FrameType] = []

    def write() -> None:
        json.dumps({1: object()}, default=lambda _: found.append(sys._getframe(1)))  # calls a library

    write()
    assert "json" in found[0].f_code.co_filename
    times = LineTimes()
    added(times, iter(found * FEWEST_LOOKS))
    assert place_of(times) == marked("calls a library")


def test_a_call_that_only_drives_the_loop_does_not_count() -> None:
    """As `trainer.fit()`, which was in progress when the loop asked for its batch and still is."""
    times = LineTimes()

    def step(driver: Driver) -> None:
        added(times, (sys._getframe() for _ in range(FEWEST_LOOKS)), driver)

    def fit() -> None:
        driver = driver_of(sys._getframe(1))
        step(driver)

    fit()  # drives
    lines = [place for place, _ in times._by_line.items()]
    assert lines
    assert marked("drives") not in [f"{Path(file).name}:{line}" for file, line in lines]


def test_the_caller_of_lines_in_half_of_no_stack_samples_is_not_guessed() -> None:
    times = LineTimes()
    frames = [innermost() for _ in range(2)] + [called() for _ in range(2)]
    for number in range(30):
        times.add(frames[number % 2], driver_of(frames[number % 2]))
    assert times.busiest() is None
    assert times.why_none == "no line of the script was in half of the 30 stack samples"


def test_stack_samples_become_rare() -> None:
    times, intervals_s = LineTimes(), []
    for _ in range(2 * EACH + 1):
        intervals_s.append(times.interval_s)
        times.add(innermost(), frozenset())
    assert (intervals_s[0], intervals_s[EACH], intervals_s[2 * EACH]) == INTERVALS_S


def test_two_recordings_are_added_up() -> None:
    first, second = LineTimes(), LineTimes()
    added(first, (called() for _ in range(FEWEST_LOOKS)))
    added(second, (called() for _ in range(3 * FEWEST_LOOKS)))
    first.merge(second)
    found = first.busiest()
    assert found is not None
    assert (found.place, found.looks) == (marked("innermost"), 4 * FEWEST_LOOKS)


def test_the_clock_finds_the_line_at_which_its_thread_sleeps(clock: LoopLineClock) -> None:
    times = LineTimes()
    clock.begin(times, driver_of(sys._getframe()))
    while times.looks < FEWEST_LOOKS:
        time.sleep(0.02)  # slow
    clock.end()
    assert place_of(times) == marked("slow")


def test_the_clock_leaves_out_what_follows_a_pause(clock: LoopLineClock) -> None:
    times = LineTimes()
    clock.begin(times, driver_of(sys._getframe()))
    clock.pause()
    time.sleep(0.1)
    clock.resume()
    while times.looks < FEWEST_LOOKS:
        time.sleep(0.02)  # resumed
    assert place_of(times) == marked("resumed")
    found = times.busiest()
    assert found is not None
    assert found.share > 2 / 3, "with the pause, at most a third"


def test_a_clock_that_is_stopped_leaves_no_thread_and_can_begin_again(clock: LoopLineClock) -> None:
    usual_s = sys.getswitchinterval()
    for _ in range(2):
        times = LineTimes()
        clock.begin(times, frozenset())
        while not times.looks:
            time.sleep(0.01)
        assert "loaderbench-loop" in {one.name for one in threading.enumerate()}
        clock.stop()
        assert "loaderbench-loop" not in {one.name for one in threading.enumerate()}
    assert sys.getswitchinterval() == usual_s
