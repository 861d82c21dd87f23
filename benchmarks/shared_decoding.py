"""Compare workers that all ranks of a machine share with workers of each rank.

    uv run python benchmarks/shared_decoding.py [--pairs 8] [--steps 60]

Each rank is a process that takes a batch of photographs a step, and all ranks meet in an all-reduce after each step.
Two ways, in turns: each rank has a DataLoader; or the same loaders share their workers, as in the fix `share_workers`.
In some cases, the photographs of the first rank are larger. Prints a table: the job's rate with shared workers over the
rate without, as a geometric mean of pairs with its 95% interval. Above 1, shared workers are faster.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from PIL import Image
from torch import distributed, multiprocessing
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import pil_to_tensor, resize

from loaderbench.datasets.photos import generate_photos
from loaderbench.loaders.shared_workers import SharedWorkers
from loaderbench.statistics.intervals import ratio_interval, times

BATCH, AHEAD, SIDE, WARM_UP_STEPS = 16, 4, 224, 8
LARGER_SIDES = 1.4  # of the first rank's photographs, where ranks are uneven


@dataclass(frozen=True)
class Case:
    """A job: ranks, the workers of each, and whether one rank has larger photographs."""

    ranks: int
    workers: int
    is_uneven: bool = False

    def __str__(self) -> str:
        return f"{self.ranks} | {self.workers} | {'yes' if self.is_uneven else 'no'}"


CASES = (Case(2, 1), Case(2, 2), Case(4, 1), Case(8, 1), Case(2, 1, is_uneven=True), Case(4, 1, is_uneven=True))


class Photographs(Dataset[Any]):
    """The files of one rank, decoded to images of the same size."""

    def __init__(self, files: list[Path], scale: float) -> None:
        self.files, self.scale = files, scale

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        with Image.open(self.files[index % len(self.files)]) as image:
            width, height = (int(side * self.scale) for side in image.size)
            return pil_to_tensor(resize(image.convert("RGB").resize((width, height)), [SIDE, SIDE]))


@dataclass(frozen=True)
class Job:
    """One measurement: the photographs of each rank, its workers, and the steps after the warm-up."""

    parts: list[Photographs]
    workers: int
    steps: int
    is_shared: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    asked = parser.parse_args()
    print("| ranks | workers each | one rank has larger photographs | rate with shared workers |")
    print("| --: | --: | --- | --- |")
    with TemporaryDirectory() as folder:
        generate_photos(Path(folder), images=200)
        files = sorted(Path(folder).rglob("*.jpg"))
        for case in CASES:
            own, shared = dict[int, float](), dict[int, float]()
            for pair in range(asked.pairs):
                ways = [(own, False), (shared, True)]
                for rates, is_shared in ways if pair % 2 else reversed(ways):
                    rates[pair] = _steps_per_s(case, files, asked.steps, is_shared=is_shared)
            ratio = ratio_interval(shared, own)
            print(f"| {case} | {times(ratio) if ratio else ''} |", flush=True)


def _steps_per_s(case: Case, files: list[Path], steps: int, *, is_shared: bool) -> float:
    """The rate of a job, in new processes."""
    parts = [
        Photographs(files[rank :: case.ranks], LARGER_SIDES if case.is_uneven and rank == 0 else 1.0)
        for rank in range(case.ranks)
    ]
    took_s = multiprocessing.get_context("fork").SimpleQueue()
    job = Job(parts, case.workers, steps, is_shared)
    with TemporaryDirectory() as folder:
        arguments = (job, f"file://{folder}/group", took_s)
        multiprocessing.start_processes(_train, arguments, case.ranks, start_method="fork")  # type: ignore[no-untyped-call]
    return float(steps / took_s.get())


def _train(rank: int, job: Job, meeting: str, took_s: Any) -> None:
    """One rank: it touches each batch, and waits for the others."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=len(job.parts))
    loader = DataLoader(
        job.parts[rank], batch_size=BATCH, num_workers=job.workers, prefetch_factor=max(1, AHEAD // job.workers)
    )
    batches = SharedWorkers(loader) if job.is_shared else loader
    began_s = 0.0
    for step, batch in enumerate(islice(batches, WARM_UP_STEPS + job.steps + 1)):
        distributed.all_reduce(batch.sum())
        if step == WARM_UP_STEPS:
            began_s = time.perf_counter()
    if rank == 0:
        took_s.put(time.perf_counter() - began_s)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
