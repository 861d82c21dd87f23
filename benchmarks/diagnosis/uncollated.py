"""A batch keeps its samples apart, as images of different sizes, and the thread that sends it copies each. Drawn."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader

from benchmarks.diagnosis.drawn_work import COMPUTED_BY
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.opaque_data import Endless
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device
from benchmarks.diagnosis.work import zipping

_DRAW = Draws(20261204)
STEP_MS = 1.0
FLOATS_PER_MB = 250_000


class Images(Endless):
    """A sample of `mb` megabytes, made in `ms`."""

    def __init__(self, ms: float, mb: float) -> None:
        super().__init__(ms)
        self.floats = int(mb * FLOATS_PER_MB)

    def __getitem__(self, index: int) -> Any:
        return torch.full((self.floats,), float(zipping(self.ms))), index


def uncollated(workers: int, *, batch: int, ms: float, mb: float) -> Loop:
    return Loop(lambda: DataLoader(Images(ms, mb), batch, num_workers=workers, collate_fn=list), device(STEP_MS))


def _drawn(number: int) -> Scenario:
    arguments = {
        "workers": _DRAW.randint(1, 3),
        "batch": _DRAW.choice([2, 4, 8]),
        "ms": _DRAW.ms(6, 20),
        "mb": round(_DRAW.uniform(0.3, 2), 1),
    }
    why = "Samples of {mb} MB, made in {ms} ms by {workers} workers, in lists of {batch}.".format(**arguments)
    words = because_of("sample", COMPUTED_BY[arguments["workers"]])
    return Scenario(
        f"uncollated_drawn_{number}", why, uncollated, arguments, words, {"cheaper_sample": {"ms": 0.05, "mb": 0.01}}
    )


SCENARIOS = tuple(map(_drawn, range(8)))
