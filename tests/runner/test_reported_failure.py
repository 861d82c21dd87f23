"""A trial's process reports its failure even if a worker ends at the same time."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Iterator
from multiprocessing import Pipe
from types import FrameType

import pytest

from loaderbench.runner.measured_process import report_failure
from loaderbench.runner.protocol import Clue, Raised

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGCHLD"), reason="no SIGCHLD here")


@pytest.fixture
def handler_of_torch() -> Iterator[None]:
    """Raises in the main thread when a worker ends, as torch's does."""

    def fail(_: int, __: FrameType | None) -> None:
        raise RuntimeError("DataLoader worker (pid 7) exited unexpectedly with exit code 3.")

    before = signal.signal(signal.SIGCHLD, fail)
    yield
    signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("handler_of_torch")
def test_a_worker_that_ends_while_a_failure_is_reported_does_not_end_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traceback, "print_exc", lambda: os.kill(os.getpid(), signal.SIGCHLD))
    here, there = Pipe(duplex=False)
    with here, there:
        report_failure(ConnectionResetError("the worker's memory could not be fetched"), there, [])
        raised, clue = here.recv(), here.recv()
    assert isinstance(raised, Raised)
    assert "could not be fetched" in raised.text
    assert isinstance(clue, Clue)
