"""A clock of the tracer that moves only when a sample says so."""

from __future__ import annotations

import pytest

from loaderbench.tracing import clock, tracer


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
    """The clock of every tracer in this test."""
    fake = FakeClock()
    for module in (clock, tracer):
        monkeypatch.setattr(module, "now_s", fake.read)
    return fake
