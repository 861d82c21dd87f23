"""Lines on stderr never disturb the script that they belong to."""

from __future__ import annotations

import sys

import pytest

from loaderbench.stderr import say


def test_each_line_says_who_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    say("one", "two")
    assert capsys.readouterr().err == "loaderbench: one\nloaderbench: two\n"


def test_without_a_stderr_nothing_is_printed_to_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say("one")
    assert capsys.readouterr().out == ""


class Broken:
    """A stream of the script's own."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def write(self, text: str) -> None:
        self.asked.append(text)
        raise RuntimeError("no window to write to")


def test_a_stream_of_the_script_may_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Broken()
    monkeypatch.setattr(sys, "stderr", broken)
    say("one")
    assert broken.asked == ["loaderbench: one"]
