"""Cost of recording a loop that computes on a GPU: for `overhead.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, repeat
from typing import Any

import torch
from overhead_loop import BARE, OURS, Step, until_narrow, warm_up
from overhead_pairs import Block, Rounds, spent

from loaderbench import Profiler

BLOCK_STEPS = 128
LAUNCH_BOUND, GPU_BOUND = "a step that its launches limit", "a step that the GPU limits"
_PRODUCTS, _SIZE = 4, 4096


def gpu_loops(limit_s: float, warm_up_s: float) -> Iterator[tuple[str, Rounds]]:
    """Interleaved loops with and without `Profiler`; each block ends when the GPU is done."""
    torch.set_num_threads(1)
    for name, step in ((LAUNCH_BOUND, _small_step()), (GPU_BOUND, _large_step())):
        taken = Rounds(BLOCK_STEPS)
        with Profiler(trace=False) as profiler:
            recorded = iter(profiler.iter(repeat([0])))
            pair: dict[str, Block] = {
                BARE: lambda: spent(lambda: _run(step, repeat([0]))),  # noqa: B023 - called within the turn
                OURS: lambda: spent(lambda: _run(step, recorded)),  # noqa: B023
            }
            warm_up(pair, warm_up_s)
            for _ in range(2):  # an interval needs two rounds
                taken.take(pair)
            until_narrow(taken, pair, limit_s)
            recorded.close()
        yield name, taken


def _run(step: Callable[[], object], batches: Iterator[Any]) -> None:
    for _ in islice(batches, BLOCK_STEPS):
        step()
    torch.cuda.synchronize()


def _small_step() -> Callable[[], object]:
    step = Step(32)
    step.model.cuda()
    batch = tuple(part.cuda() for part in step.batch)
    return lambda: step(batch)


def _large_step() -> Callable[[], object]:
    """Some milliseconds of matrix products."""
    matrix = torch.rand(_SIZE, _SIZE, device="cuda", dtype=torch.bfloat16)

    def products() -> None:
        for _ in range(_PRODUCTS):
            matrix @ matrix

    return products
