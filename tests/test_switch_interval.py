"""Python's switch interval, while several parts of loaderbench shorten it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from loaderbench.switch_interval import SwitchInterval, wake_promptly

USUAL_S = 0.005
PR_GET_TIMERSLACK = 30  # from <linux/prctl.h>


@pytest.fixture
def interval() -> Iterator[SwitchInterval]:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    yield SwitchInterval()
    sys.setswitchinterval(before_s)


def now_s() -> float:
    return round(sys.getswitchinterval(), 6)


def test_the_usual_one_is_back_whichever_part_ends_first(interval: SwitchInterval) -> None:
    """A save of one thread and a batch of another overlap in all orders."""
    for first, last in ((1e-4, 5e-5), (5e-5, 1e-4)):
        interval.begin(first)
        assert now_s() == first
        interval.begin(last)
        assert now_s() == 5e-5
        interval.end(first)
        assert now_s() == last
        interval.end(last)
        assert now_s() == USUAL_S


def test_it_ends_with_its_block_also_where_that_raises(interval: SwitchInterval) -> None:
    meanwhile_s: list[float] = []

    def save() -> None:
        with interval.at_most(5e-5):
            meanwhile_s.append(now_s())
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save()
    assert (meanwhile_s, now_s()) == ([5e-5], USUAL_S)


def test_a_usual_one_that_is_shorter_stays(interval: SwitchInterval) -> None:
    sys.setswitchinterval(1e-5)
    with interval.at_most(5e-5):
        assert now_s() == 1e-5
    assert now_s() == 1e-5


def test_one_that_the_user_sets_meanwhile_is_the_usual_one_from_then_on(interval: SwitchInterval) -> None:
    with interval.at_most(1e-4):
        sys.setswitchinterval(0.002)
        with interval.at_most(5e-5):
            assert now_s() == 5e-5
    assert now_s() == 0.002


def test_a_child_that_was_forked_while_a_thread_held_the_lock_is_not_blocked(interval: SwitchInterval) -> None:
    interval._lock.acquire()
    interval.forked()
    with interval.at_most(1e-4):
        assert now_s() == 1e-4


def test_a_child_has_the_usual_one_although_a_thread_asked_for_another_at_the_fork(interval: SwitchInterval) -> None:
    with interval.at_most(1e-4):
        interval.forked()
        assert now_s() == USUAL_S
    assert now_s() == USUAL_S


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux delays timeouts by a slack that can be set")
def test_only_the_thread_that_asks_wakes_promptly() -> None:
    def slack_ns() -> int:
        slack: int = ctypes.CDLL(None).prctl(PR_GET_TIMERSLACK)
        return slack

    def of_thread() -> int:
        wake_promptly()
        return slack_ns()

    usual_ns = slack_ns()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(of_thread).result() == 1
    assert slack_ns() == usual_ns > 1
