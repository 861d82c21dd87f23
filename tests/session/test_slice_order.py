"""The order in which trials take turns, with trials that only write down when they ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.records import PlannedTrial, TimeSlices, Trial
from loaderbench.session import time_slicing
from loaderbench.session.time_slicing import SlicedRounds


class FakeProcess:
    """A trial that can be stopped, and takes a batch a turn."""

    def __init__(self, planned: PlannedTrial, slice_s: float, log: list[str]) -> None:
        self.order = SimpleNamespace(planned=planned)
        self.session, self.slice_s, self.sliced_s = 1, slice_s, 0.0
        self.is_stopped = self.followed = True
        self.found: Any = None
        self.sampling = SimpleNamespace(pss_bytes=0, samples=())
        self.count, self._log = 0, log

    def follow(self) -> None:
        pass

    def run_slice(self, seconds: float) -> None:
        self._log.append(self.order.planned.id)
        self.count += 1
        self.sliced_s += seconds

    def slices(self) -> TimeSlices:
        return TimeSlices(self.count, 100 * self.count, 100 * self.count, self.sliced_s)

    def end(self, *, at_once: bool = False) -> None:
        pass


class FakeMeasuring:
    """Begins such trials."""

    sliced_seconds = 0.2

    def __init__(self) -> None:
        self.log: list[str] = []

    def begin(self, planned: PlannedTrial) -> Any:
        return SimpleNamespace(process=FakeProcess(planned, 0.05, self.log))

    @contextmanager
    def guard(self) -> Iterator[Any]:
        yield SimpleNamespace(watch=lambda _: None)

    def outcome(self, begun: Any, slices: TimeSlices | None) -> Any:
        return SimpleNamespace(
            trial=Trial(id="x", role="remedy", config={}, round=1, status="completed", time_slices=slices)
        )


def ran(names: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(time_slicing.sys, "platform", "linux")
    measuring = FakeMeasuring()
    planned = [PlannedTrial(id=name, role="remedy", config={}, round=1) for name in names]
    SlicedRounds(measuring, in_time_slices=True).run(planned, lambda _: None, lambda _: None)  # type: ignore[arg-type]
    return measuring.log


def test_each_pass_goes_in_the_reverse_order_of_the_one_before_and_a_drift_cancels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "".join(ran("abc", monkeypatch)) == "abccbaabccba"
