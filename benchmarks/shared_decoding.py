"""Compare one decoding service for all ranks of a machine with workers in each rank.

    uv run python benchmarks/shared_decoding.py [--pairs 8] [--steps 60]

Each rank is a process that takes a batch of photographs a step, and all ranks meet after each step, as in an
all-reduce. Two ways, in turns: each rank has a DataLoader; or as many worker processes as CPUs decode the batches of
all ranks, in the order in which the ranks ask. Both keep as many batches ready for a rank. In some cases, the
photographs of the first rank are larger. Prints a table: the job's rate with the service over the rate without it, as
a geometric mean of pairs with its 95% interval. Above 1, the service is faster.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.multiprocessing as processes
from PIL import Image
from torch.utils.data import DataLoader, Dataset, default_collate
from torchvision.transforms.functional import pil_to_tensor, resize

from loaderbench.cpu_lists import usable_cores
from loaderbench.datasets.photos import generate_photos
from loaderbench.statistics.intervals import ratio_interval
from loaderbench.statistics.ratios import times

BATCH, AHEAD, SIDE, WARM_UP_STEPS = 16, 4, 224, 8
LARGER_SIDES = 1.4  # of the first rank's photographs, where ranks are uneven


@dataclass(frozen=True)
class Case:
    """A job: ranks, the workers of each where ranks have their own, and whether one rank has larger photographs."""

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    asked = parser.parse_args()
    print("| ranks | workers each | one rank has larger photographs | with one service |\n| --: | --: | --- | --- |")
    with TemporaryDirectory() as folder:
        generate_photos(Path(folder), images=200)
        files = sorted(Path(folder).rglob("*.jpg"))
        for case in CASES:
            own, service = dict[int, float](), dict[int, float]()
            for pair in range(asked.pairs):
                ways = [(own, False), (service, True)]
                for rates, has_service in ways if pair % 2 else reversed(ways):
                    rates[pair] = _steps_per_s(case, files, asked.steps, has_service=has_service)
            ratio = ratio_interval(service, own)
            print(f"| {case} | {times(ratio) if ratio else ''} |", flush=True)


def _steps_per_s(case: Case, files: list[Path], steps: int, *, has_service: bool) -> float:
    """The rate of a job, in new processes."""
    context = processes.get_context("fork")
    meeting, took = context.Barrier(case.ranks), context.SimpleQueue()
    parts = [
        Photographs(files[rank :: case.ranks], LARGER_SIDES if case.is_uneven and rank == 0 else 1.0)
        for rank in range(case.ranks)
    ]
    asked: Any = context.Queue()
    answers = [context.Queue() for _ in parts]
    workers = [
        context.Process(target=_decode, args=(parts, asked, answers), daemon=True)
        for _ in range(usable_cores() if has_service else 0)
    ]
    ranks = [
        context.Process(
            target=_train,
            args=(
                _served(rank, asked, answers[rank]) if has_service else _loaded(part, case.workers),
                steps, meeting, took if rank == 0 else None,
            ),
        )
        for rank, part in enumerate(parts)
    ]  # fmt: skip
    for process in (*workers, *ranks):
        process.start()
    took_s = took.get()
    for rank in ranks:
        rank.join()
    for worker in workers:
        worker.terminate()
        worker.join()
    return float(steps / took_s)


def _loaded(part: Photographs, workers: int) -> Iterator[torch.Tensor]:
    """Batches of a rank's own DataLoader."""
    yield from DataLoader(part, batch_size=BATCH, num_workers=workers, prefetch_factor=max(1, AHEAD // workers))


def _served(rank: int, asked: Any, answers: Any) -> Iterator[torch.Tensor]:
    """Batches of a rank from the service: as many are asked for in advance as a loader prefetches."""
    batches = (range(first, first + BATCH) for first in range(0, 1_000_000, BATCH))
    for indices in islice(batches, AHEAD):
        asked.put((rank, indices))
    for indices in batches:
        yield answers.get()
        asked.put((rank, indices))


def _decode(parts: list[Photographs], asked: Any, answers: list[Any]) -> None:
    """One worker of the service."""
    torch.set_num_threads(1)
    while True:
        rank, indices = asked.get()
        answers[rank].put(default_collate([parts[rank][index] for index in indices]))


def _train(batches: Iterator[torch.Tensor], steps: int, meeting: Barrier, took: Any) -> None:
    """One rank: it touches each batch, and waits for the others."""
    torch.set_num_threads(1)
    began_s = 0.0
    for step, batch in enumerate(islice(batches, WARM_UP_STEPS + steps + 1)):
        batch.sum()
        meeting.wait()
        if step == WARM_UP_STEPS:
            began_s = time.perf_counter()
    if took is not None:
        took.put(time.perf_counter() - began_s)


if __name__ == "__main__":
    main()
