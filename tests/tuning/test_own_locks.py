"""A trial has locks of its own: the script's are free, whatever becomes of the trial."""

from __future__ import annotations

import multiprocessing
from functools import partial
from typing import Any

import pytest
from torch.utils.data import DataLoader

from loaderbench.tuning.own_loader import changed_loader, forget, keep, renew_locks

FORK: Any = multiprocessing.get_context("fork")


class Dataset:
    def __init__(self, lock: Any) -> None:
        self.parts = {"reader": [lock]}


def free_in_another_process(lock: Any) -> bool:
    """Whether a process that is forked now can take it."""

    def take(pipe: Any) -> None:
        pipe.send(lock.acquire(timeout=0.2))

    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=take, args=(theirs,))
    process.start()
    found = bool(ours.recv())
    process.join()
    return found


@pytest.mark.parametrize("make", [FORK.Lock, FORK.RLock, FORK.Condition, lambda: FORK.Value("i", 3)])
def test_a_lock_that_the_script_holds_is_free_in_a_copy_and_stays_held_in_the_script(make: Any) -> None:
    lock = make()
    dataset = Dataset(lock)

    def copy(pipe: Any) -> None:
        renew_locks([dataset, None], "fork")
        with lock:  # never released: the copy is killed
            pipe.send(free_in_another_process(lock))
            pipe.recv()

    lock.acquire()
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=copy, args=(theirs,))
    process.start()
    assert ours.recv() is False, "its workers share it"
    process.kill()
    process.join()
    assert not free_in_another_process(lock)
    lock.release()
    assert free_in_another_process(lock), "the copy was killed while it held its own"


def test_counts_and_flags_are_kept() -> None:
    semaphore, event, value = FORK.Semaphore(3), FORK.Event(), FORK.Value("i", 7)
    event.set()
    renew_locks([[semaphore, event, value]], "fork")
    assert [semaphore.acquire(block=False) for _ in range(4)] == [True, True, True, False]
    assert event.is_set()
    with value.get_lock():
        value.value += 1
    assert value.value == 8


def test_locks_of_a_worker_init_fn_are_free_in_a_copy_of_the_loader() -> None:
    lock = FORK.Lock()
    loader: DataLoader[int] = DataLoader([1, 2], worker_init_fn=partial(print, lock))  # type: ignore[arg-type]

    def copy(pipe: Any) -> None:
        changed_loader()
        pipe.send(lock.acquire(timeout=0.2))

    keep(loader, whole_epochs=False)
    lock.acquire()
    try:
        ours, theirs = FORK.Pipe()
        process = FORK.Process(target=copy, args=(theirs,))
        process.start()
        assert ours.recv() is True
        process.join()
    finally:
        forget()
