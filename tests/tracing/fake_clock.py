"""A clock of tracing that moves only when a sample says so."""

from __future__ import annotations

import pytest

from loaderbench.tracing import clock, slowest, taking, tracer


class FakeClock:
    """It reads one second at first."""

    now_s = 1.0

    def read(self) -> float:
        """The moment."""
        return self.now_s

    def pass_s(self, seconds: float) -> float:
        """Let this many seconds pass, and return them."""
        self.now_s += seconds
        return seconds


def fake_clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of every tracer and of every `next()` in this test."""
    fake = FakeClock()
    for module in (clock, slowest, taking, tracer):
        monkeypatch.setattr(module, "now_s", fake.read)
    return fake
