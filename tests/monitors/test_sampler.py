"""The thread that reads the monitors: where none can be started, a trial is measured without them."""

from __future__ import annotations

import os
import threading

import pytest

from loaderbench.monitors import GpuMonitor
from loaderbench.monitors.sampler import Sampler


def test_without_a_thread_nothing_is_seen_and_nothing_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    sampler = Sampler(os.getpid(), GpuMonitor(()))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    sampler.start()
    found = sampler.stop()
    assert (list(found.samples), found.blocked_on([1], 0.0, 1e9)) == ([], None)
