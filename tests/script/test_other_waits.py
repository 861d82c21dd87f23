"""How long a loop waits for other loaders, by a fake clock."""

from __future__ import annotations

from threading import Thread

import pytest

from loaderbench.script import divided_steps
from loaderbench.script.divided_steps import OtherWaits


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def take(self, waits: OtherWaits, seconds: float) -> None:
        """One batch that comes after so long."""
        waits.asks()
        self.now_s += seconds
        waits.got()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(divided_steps, "_now_s", found)
    return found


def test_a_step_that_takes_batches_of_two_loaders_waits_for_the_other_one(clock: Clock) -> None:
    fast, slow = OtherWaits(), OtherWaits()
    for _ in range(4):
        clock.take(fast, 1.0)
        clock.take(slow, 6.0)
        clock.now_s += 3.0
    fast.asks()
    slow.asks()
    assert fast.share == pytest.approx(0.6)
    assert slow.share == pytest.approx(0.1, abs=0.03)  # its last step has no batch of the fast one


def test_a_validation_within_the_loop_is_waited_for_in_the_step_before(clock: Clock) -> None:
    training, validation = OtherWaits(), OtherWaits()
    for step in range(4):
        clock.take(training, 1.0)
        clock.now_s += 1.0
        if step == 1:
            for _ in range(2):
                clock.take(validation, 2.0)
            validation.asks()
    training.asks()
    assert training.share == pytest.approx(4 / 12)
    assert validation.share == 0.0


def test_what_happens_between_two_epochs_is_no_step(clock: Clock) -> None:
    training, validation = OtherWaits(), OtherWaits()
    for _ in range(2):
        for _ in range(3):
            clock.take(training, 1.0)
        training.leave()
        clock.take(validation, 100.0)
    training.asks()
    assert training.share == 0.0


def test_another_thread_waits_for_itself(clock: Clock) -> None:
    training, other = OtherWaits(), OtherWaits()
    clock.take(training, 1.0)
    thread = Thread(target=clock.take, args=(other, 5.0))
    thread.start()
    thread.join()
    training.asks()
    assert training.share == 0.0


def test_without_a_step_nothing_is_waited_for() -> None:
    assert OtherWaits().share == 0.0
