"""A trial's process reports its failure even if a worker ends at the same time."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Iterator
from multiprocessing import Pipe
from types import FrameType

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench.diagnosis.failures import classify
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


class Ends(Dataset[torch.Tensor]):
    """A dataset whose worker ends in the given way at its first sample."""

    def __init__(self, by_signal: int) -> None:
        self.by_signal = by_signal

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.by_signal:
            os.kill(os.getpid(), self.by_signal)
        os._exit(3)


@pytest.mark.parametrize(("by_signal", "kind"), [(signal.SIGKILL, "worker_killed"), (0, "worker_exited")])
def test_the_signal_that_ended_a_worker_is_known_if_torch_s_handler_missed_it(
    monkeypatch: pytest.MonkeyPatch, by_signal: int, kind: str
) -> None:
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.2)
    batches = iter(DataLoader(Ends(by_signal), num_workers=1))
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    here, there = Pipe(duplex=False)
    with here, there:
        try:
            next(batches)
        except RuntimeError as error:
            report_failure(error, there, [])
        finally:
            signal.signal(signal.SIGCHLD, before)
        text = here.recv().text
    assert "exited unexpectedly" in text
    assert classify(text).kind == kind
