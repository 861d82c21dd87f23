"""The order in which trials take turns, with trials that only write down when they ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.plan import PlannedTrial
from loaderbench.records import Trial, Turns
from loaderbench.session import paired
from loaderbench.session.paired import PairedRounds


class FakeLive:
    """A trial that can be stopped, and takes a batch a turn."""

    def __init__(self, planned: PlannedTrial, turn_s: float, log: list[str]) -> None:
        self.order = SimpleNamespace(planned=planned)
        self.session, self.turn_s, self.turned_s = 1, turn_s, 0.0
        self.stands_still = self.followed = True
        self.found: Any = None
        self.sampling = SimpleNamespace(pss_bytes=0, samples=())
        self.count, self._log = 0, log

    def follow(self) -> None:
        pass

    def take_turn(self, seconds: float) -> None:
        self._log.append(self.order.planned.id)
        self.count += 1
        self.turned_s += seconds

    def turns(self) -> Turns:
        return Turns(self.count, 100 * self.count, 100 * self.count, self.turned_s)

    def end(self, *, at_once: bool = False) -> None:
        pass


class FakeMeasuring:
    """Begins such trials."""

    turn_seconds = 0.2

    def __init__(self) -> None:
        self.log: list[str] = []

    def begin(self, planned: PlannedTrial) -> Any:
        return SimpleNamespace(live=FakeLive(planned, 0.05, self.log))

    @contextmanager
    def guard(self) -> Iterator[Any]:
        yield SimpleNamespace(watch=lambda _: None)

    def outcome(self, begun: Any, turns: Turns | None) -> Any:
        return SimpleNamespace(trial=Trial(id="x", config={}, round=1, status="completed", turns=turns))


def ran(names: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(paired.sys, "platform", "linux")
    measuring = FakeMeasuring()
    planned = [PlannedTrial(name, {}, 1) for name in names]
    PairedRounds(measuring, in_turns=True).run(planned, lambda _: None, lambda *_: None)  # type: ignore[arg-type]
    return measuring.log


def test_each_pass_goes_in_the_reverse_order_of_the_one_before_and_a_drift_cancels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "".join(ran("abc", monkeypatch)) == "abccbaabccba"
