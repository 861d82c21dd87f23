"""Short epochs that restart the workers each time."""

from __future__ import annotations

import time
from typing import Any

from torch.utils.data import DataLoader, Dataset

from benchmarks.diagnosis import work
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device


class Short(Dataset[Any]):
    """A few samples of 0.5 ms."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        return work.sample(index, work.python(0.5))


def loads_an_index(_worker: int) -> None:
    """What a worker_init_fn does that opens a database or a large index."""
    time.sleep(0.25)


def short(
    workers: int,
    *,
    batches: int = 8,
    persistent: bool = False,
    context: str | None = None,
    init: bool = False,
    seconds: float = 4.0,
) -> Loop:
    """Epochs of so many batches. `seconds` are many where a start takes seconds."""
    dataset = Short(8 * batches)

    def loader() -> Any:
        return DataLoader(
            dataset,
            8,
            num_workers=workers,
            persistent_workers=persistent,
            multiprocessing_context=context,
            worker_init_fn=loads_an_index if init else None,
        )

    return Loop(loader, device(6), seconds=seconds, warmup=2)


def fixed(batches: int) -> dict[str, dict[str, Any]]:
    return {"persistent_workers": {"persistent": True}, "larger_epochs": {"batches": batches}}


SCENARIOS = (
    Scenario(
        "startup_fork_w2",
        "Epochs of four batches: forking and joining two workers takes longer than the batches.",
        short,
        {"workers": 2, "batches": 4},
        because_of("startup", "startup"),
        fixed(400),
    ),
    Scenario(
        "startup_init_w2",
        "Each start loads an index for 0.25 s in worker_init_fn.",
        short,
        {"workers": 2, "batches": 12, "init": True},
        because_of("startup", "startup"),
        fixed(4_000),
    ),
    Scenario(
        "startup_spawn_w1",
        "Each epoch spawns a worker, which imports torch for seconds.",
        short,
        {"workers": 1, "batches": 20, "context": "spawn", "seconds": 8.0},
        because_of("startup", "startup"),
        fixed(4_000),
    ),
    Scenario(
        "startup_forkserver_w1",
        "The same through a fork server, which has not imported torch.",
        short,
        {"workers": 1, "batches": 20, "context": "forkserver", "seconds": 8.0},
        because_of("startup", "startup"),
        fixed(4_000),
    ),
)
