"""What torch's launcher leaves if no rank began, and the line while it waits."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from torch.distributed.elastic.rendezvous.api import RendezvousTimeoutError

from loaderbench.script import launcher
from loaderbench.script.launcher import note_launcher, note_rank, read_failure, said_if_late


@pytest.fixture(autouse=True)
def at_exit(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What would be called at the end of this process."""
    found: list[tuple[object, ...]] = []
    monkeypatch.setattr(launcher.atexit, "register", lambda *call: found.append(call))
    return found


def end(at_exit: list[tuple[object, ...]], error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    for function, *arguments in at_exit:
        function(*arguments)  # type: ignore[operator]


def test_a_launcher_that_ends_without_ranks_says_why(
    tmp_path: Path, at_exit: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    note_launcher(tmp_path)
    end(at_exit, RendezvousTimeoutError(), monkeypatch)
    assert read_failure(tmp_path).startswith("no rank started: the other machines did not join in time")


def test_nothing_is_said_once_a_rank_began_or_of_another_error_or_in_a_child(
    tmp_path: Path, at_exit: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    note_launcher(tmp_path)
    end(at_exit, ValueError("of the script"), monkeypatch)
    assert read_failure(tmp_path) == ""
    own = os.getpid()
    with monkeypatch.context() as child:
        child.setattr(launcher.os, "getpid", lambda: own + 1)
        end(at_exit, RendezvousTimeoutError(), monkeypatch)
    assert read_failure(tmp_path) == ""
    note_rank(tmp_path)
    end(at_exit, RendezvousTimeoutError(), monkeypatch)
    assert read_failure(tmp_path) == ""


@pytest.mark.parametrize("begun", [False, True])
def test_a_launcher_that_waits_long_is_explained_unless_a_rank_began(
    begun: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launcher, "LOOK_S", 0.01)
    monkeypatch.setattr(launcher, "LATE_S", 0.02)
    note_launcher(tmp_path)
    if begun:
        note_rank(tmp_path)
    with said_if_late(tmp_path):
        time.sleep(0.3)
    assert capfd.readouterr().err.count("loaderbench: no rank started within") == (0 if begun else 1)
