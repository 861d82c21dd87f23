"""The thread that sends a worker's batches is known by its ID."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from loaderbench.monitors import proc
from loaderbench.tracing.loader import LoaderTrace

pytestmark = pytest.mark.skipif(not proc.available(), reason="no /proc with threads here")


class Numbers(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(index)


class WithQueue(Numbers):
    """Sends something of its own through a queue, from one of its samples on."""

    def __init__(self, first: int) -> None:
        self._first = first

    def __getitem__(self, index: int) -> torch.Tensor:
        if index >= self._first and not hasattr(self, "queue") and get_worker_info() is not None:
            self.queue = multiprocessing.get_context("fork").Queue()
            self.queue.put(index)
        return super().__getitem__(index)


def senders_in(loader: DataLoader[Any]) -> tuple[frozenset[int], set[int]]:
    """What is known of the senders at the end of an epoch, and the threads of the workers by then."""
    trace = LoaderTrace(loader)
    batches = trace.batches()
    for _ in range(len(loader)):
        next(batches)
    pids = [child.pid for child in multiprocessing.active_children()]
    threads = {int(one.name) for pid in pids for one in Path(f"/proc/{pid}/task").iterdir() if int(one.name) != pid}
    trace.stop()
    return trace.senders, threads


@pytest.mark.parametrize("workers", [1, 2])
def test_each_worker_has_one_thread_that_sends_its_batches(workers: int) -> None:
    known, threads = senders_in(DataLoader(Numbers(), batch_size=4, num_workers=workers))
    assert len(known) == workers
    assert known <= threads


@pytest.mark.parametrize("first", [0, 4, 8])
def test_the_thread_of_another_queue_is_not_the_sender(first: int) -> None:
    known, threads = senders_in(DataLoader(WithQueue(first), batch_size=4, num_workers=1))
    assert len(known) == 1
    assert known < threads


def test_a_worker_that_made_no_batch_of_an_earlier_epoch_has_a_sender_later() -> None:
    loader = DataLoader(Numbers(), batch_size=40, num_workers=3, persistent_workers=True)
    trace = LoaderTrace(loader)
    for _ in range(3):
        assert len(list(trace.batches())) == len(loader) == 2
    assert len(trace.senders) == 2
    trace.stop()


def test_without_workers_there_is_no_sender() -> None:
    assert senders_in(DataLoader(Numbers(), batch_size=4))[0] == frozenset()
