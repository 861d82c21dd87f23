"""Slow work is announced on stderr until it ends."""

from __future__ import annotations

import sys
from threading import Event
from typing import Any

import pytest

from loaderbench.commands.outputs import said_if_slow


class Lines:
    """A stderr that announces its second line."""

    def __init__(self) -> None:
        self.text, self.has_two = "", Event()

    def write(self, text: str) -> None:
        self.text += text
        if self.text.count("\n") > 1:
            self.has_two.set()

    def flush(self) -> None:
        pass


def test_a_slow_body_is_named_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: Any = Lines()
    monkeypatch.setattr(sys, "stderr", lines)
    with said_if_slow("Listing", first_s=0.001, again_s=0.001):
        assert lines.has_two.wait(10)
    assert lines.text.startswith("Listing: 0 s so far; Ctrl-C stops\nListing: 0 s")


def test_a_fast_body_is_not_mentioned(capfd: pytest.CaptureFixture[str]) -> None:
    with said_if_slow("Listing", first_s=1000):
        pass
    assert capfd.readouterr().err == ""


def test_an_interrupted_body_ends_with_its_exception() -> None:
    with pytest.raises(KeyboardInterrupt), said_if_slow("Listing"):
        raise KeyboardInterrupt
