"""Time that passes only while somebody sleeps."""

from __future__ import annotations

import time

import pytest


class SleepingClock:
    """Seconds since an arbitrary moment."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def sleeping_clock(monkeypatch: pytest.MonkeyPatch) -> SleepingClock:
    """The clock of `time.monotonic` and `time.sleep` in this test."""
    clock = SleepingClock()
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock
