"""Planted causes that no neighbor can hide, through the public door."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import run_epochs
from torch.utils.data import DataLoader, Dataset

from loaderbench.records import Verdict

# On busy CPUs the verdict names no cause: tests that compute are `timed`, and others `sleeping`.


class Waiting(Dataset[torch.Tensor]):
    """Samples that wait: all of them, or one in so many; for a device, or for one another."""

    def __init__(self, wait_s: float, *, every: int = 1, lock: Any = None, files: list[Path] | None = None) -> None:
        self.wait_s, self.every, self.lock, self.files = wait_s, every, lock, files

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.files:
            data = self.files[index % len(self.files)].read_bytes()
            time.sleep(self.wait_s * len(data) / 2**20)
        elif self.lock is not None:
            with self.lock:
                time.sleep(self.wait_s)
        elif index % self.every == 0:
            time.sleep(self.wait_s)
        return torch.zeros(8)


class Lazy:
    """A sampler that takes its time in the main process."""

    def __iter__(self) -> Any:
        for index in range(100_000):
            time.sleep(2e-3)
            yield index

    def __len__(self) -> int:
        return 100_000


def one_cpu(_: int) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def files(folder: Path) -> list[Path]:
    found = []
    for number in range(40):
        found.append(folder / f"{number}.bin")
        found[-1].write_bytes(bytes((number + 1) * 50_000))
    return found


LOADERS: dict[str, tuple[Callable[[Path], DataLoader[Any]], tuple[str, str]]] = {
    "storage latency": (lambda _: DataLoader(Waiting(4e-3), 8, num_workers=2), ("read", "storage_latency")),
    "storage latency, no workers": (lambda _: DataLoader(Waiting(4e-3), 8), ("read", "storage_latency")),
    "storage bandwidth": (
        lambda folder: DataLoader(Waiting(3e-2, files=files(folder)), 8, num_workers=2),
        ("read", "storage_bandwidth"),
    ),
    "a lock across workers": (
        lambda _: DataLoader(Waiting(4e-3, lock=multiprocessing.Lock()), 8, num_workers=2),
        ("sample", "lock"),
    ),
    "a slow sample in a hundred": (
        lambda _: DataLoader(Waiting(0.25, every=100), 8, num_workers=2),
        ("stragglers", "order"),
    ),
    "a slow sampler": (
        lambda _: DataLoader(Waiting(1e-4), 8, sampler=Lazy(), num_workers=1),  # type: ignore[arg-type]
        ("main_process", "lock"),
    ),
}


def diagnose(loader: DataLoader[Any], seconds: float = 3.0) -> Verdict:
    torch.set_num_threads(1)
    return run_epochs(loader, seconds).verdict


@pytest.mark.sleeping
@pytest.mark.parametrize("planted", LOADERS)
def test_a_planted_cause_is_named(planted: str, tmp_path: Path) -> None:
    make, expected = LOADERS[planted]
    for _ in range(3):
        found = diagnose(make(tmp_path))
        if found.limit != "neighbors":  # which the machine may have for a while, and it is right then
            break
    assert found.bound == "input"
    assert (found.stage, found.limit) == expected, found
    assert len(found.evidence) > 2


@pytest.mark.timed
def test_epochs_that_are_over_before_they_begin_are_told() -> None:
    class Short(Waiting):
        def __len__(self) -> int:
            return 64

    found = diagnose(DataLoader(Short(1e-5), 8, num_workers=2))
    assert (found.bound, found.stage, found.limit) == ("input", "startup", "startup")


@pytest.mark.timed
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_workers_that_may_use_one_cpu_alone_are_told() -> None:
    class Busy(Waiting):
        def __getitem__(self, index: int) -> torch.Tensor:
            until_s = time.thread_time() + 2e-3
            while time.thread_time() < until_s:
                pass
            return torch.zeros(8)

    for _ in range(3):  # other programs may hold the CPUs for as long as it takes
        found = diagnose(DataLoader(Busy(0.0), 8, num_workers=2, worker_init_fn=one_cpu))
        if found.limit != "neighbors":
            break
    assert (found.bound, found.limit) == ("input", "quota")


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_keeps_up_is_left_alone(workers: int) -> None:
    torch.set_num_threads(1)
    for step_s in (0.05, 0.1, 0.2, 0.4):  # a neighbor may hold up a batch for longer than a twentieth of a step
        found = run_epochs(DataLoader(Waiting(1e-5), 8, num_workers=workers), 2.0, step_s=step_s).verdict
        if found.bound == "compute":
            break
    assert (found.bound, found.stage, found.limit) == ("compute", None, "none")


@pytest.mark.sleeping
def test_a_transfer_that_is_marked_and_long_bounds_the_loop() -> None:
    found = run_epochs(DataLoader(Waiting(1e-5), 8), 2.0, step_s=0.002, transfer_s=0.03).verdict
    assert found.bound == "transfer"
    assert "transfer" in found.evidence[0]


@pytest.mark.sleeping
def test_without_tracing_the_limit_is_told_and_the_stage_is_not() -> None:
    found = run_epochs(DataLoader(Waiting(4e-3), 8, num_workers=2), 2.0, trace=False).verdict
    assert found.bound == "input"
    assert found.stage is None
    assert "trace=True" in found.not_measured["stage"]
