"""A stream makes many samples at once, as a reader of row groups does, and then hands them out. Values are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from benchmarks.diagnosis.drawn_work import COMPUTED_BY
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device
from benchmarks.diagnosis.work import sample, zipping

_DRAW = Draws(20261203)
STEP_MS = 1.0


class Groups(IterableDataset[Any]):
    """Endless groups of `size` samples, each of which takes `ms` with its group and `later_ms` when handed out."""

    def __init__(self, size: int, ms: float, later_ms: float) -> None:
        self.size, self.ms, self.later_ms = size, ms, later_ms

    def __iter__(self) -> Iterator[Any]:
        for group in count():
            made = [zipping(self.ms) for _ in range(self.size)]
            for one in made:
                if self.later_ms:
                    zipping(self.later_ms)
                yield sample(group, one)


def grouped(workers: int, *, batch: int, size: int, ms: float, later_ms: float) -> Loop:
    return Loop(lambda: DataLoader(Groups(size, ms, later_ms), batch, num_workers=workers), device(STEP_MS))


def _drawn(number: int) -> Scenario:
    arguments = {
        "workers": _DRAW.randint(0, 3),
        "batch": _DRAW.choice([4, 8, 16]),
        "size": _DRAW.randint(20, 200),
        "ms": _DRAW.ms(1, 4),
        "later_ms": _DRAW.choice([0.0, 0.0, 0.2]),
    }
    why = "Groups of {size} samples, {ms} ms each, {workers} workers, batches of {batch}.".format(**arguments)
    words = because_of("sample", COMPUTED_BY[arguments["workers"]])
    if arguments["workers"] > 1:  # while one makes a group, the batches of others wait for their turn
        words = because_of("sample stragglers", f"{COMPUTED_BY[arguments['workers']]} order")
    fixes = {"cheaper_sample": {"ms": 0.05}}
    return Scenario(f"grouped_drawn_{number}", why, grouped, arguments, words, fixes)


SCENARIOS = tuple(map(_drawn, range(8)))
