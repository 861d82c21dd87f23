"""Work that a lock serializes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from benchmarks.diagnosis import lock_data as data
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device


def locked(kind: str, workers: int, *, ms: float = 2.0, **arguments: Any) -> Loop:
    dataset = getattr(data, kind)(ms, **arguments)
    return Loop(lambda: DataLoader(dataset, 8, num_workers=workers), device(1), within=lambda: _lock_file(dataset))


@contextmanager
def _lock_file(dataset: Any) -> Iterator[None]:
    try:
        yield
    finally:
        if hasattr(dataset, "name"):
            Path(dataset.name).unlink(missing_ok=True)


def threads(*, ms: float = 6.0, free: bool = False) -> Loop:
    loader = data.ThreadedLoader(ms, free)
    return Loop(lambda: loader, device(1))


FREED = {"release_lock": {"held": False}}

SCENARIOS = (
    Scenario(
        "lock_between_workers_w2",
        "Two workers, one lock around the work: one core is busy, and one worker always waits.",
        locked,
        {"kind": "Locked", "workers": 2},
        because_of("sample", "lock"),
        FREED,
    ),
    Scenario(
        "lock_between_workers_w4",
        "The same with four workers: three wait.",
        locked,
        {"kind": "Locked", "workers": 4},
        because_of("sample", "lock"),
        FREED,
    ),
    Scenario(
        "lock_on_a_file_w3",
        "Three workers that zip under `flock`; they open only an empty lock file and read nothing.",
        locked,
        {"kind": "FileLocked", "workers": 3},
        because_of("sample", "lock"),
        FREED,
    ),
    Scenario(
        "lock_interpreter_w1",
        "Four threads in one worker in pure Python; a second worker would use the idle core: `workers` is right, too.",
        locked,
        {"kind": "Threaded", "workers": 1},
        because_of("sample", "lock workers"),
        {"more_workers": {"workers": 2}},
    ),
    Scenario(
        "lock_interpreter_loader",
        "No DataLoader: four threads in pure Python in the main process, of which one runs.",
        threads,
        {},
        because_of("main_process", "lock"),
        {"release_lock": {"free": True}},
    ),
)
