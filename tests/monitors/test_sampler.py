"""The thread that reads the monitors: where none can be started, a trial is measured without them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from loaderbench.monitors import GpuMonitor
from loaderbench.monitors.blocked import Blocked
from loaderbench.monitors.sampler import Sampler, Sampling


def test_without_a_thread_nothing_is_seen_and_nothing_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    sampler = Sampler(os.getpid(), GpuMonitor(()))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    sampler.start()
    found = sampler.stop()
    assert (list(found.samples), found.blocked_on([1], 0.0, 1e9)) == ([], None)


def looked(kind: str, folder: Path) -> Blocked:
    """Ten samples of process 7, blocked in a function of the kernel."""
    (folder / "7").mkdir(parents=True, exist_ok=True)
    (folder / "7" / "wchan").write_text(kind)
    blocked = Blocked(str(folder))
    for _ in range(10):
        blocked.look([7])
    return blocked


def test_what_a_process_was_blocked_on_is_that_of_the_steady_state(tmp_path: Path) -> None:
    looks = [(1.0, looked("ext4_read", tmp_path / "a")), (5.0, looked("ep_poll", tmp_path / "b"))]
    sampling = Sampling(root=1, samples=(), pss_bytes=None, cpu_share=0.0, looks=looks)
    assert sampling.blocked_on([7], 4.0, 6.0) == {"queue": 1.0}
    assert sampling.blocked_on([7], 8.0, 9.0) == {"queue": 0.5, "storage": 0.5}
