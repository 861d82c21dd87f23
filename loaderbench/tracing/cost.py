"""What tracing one sample costs, found by pairs: a sample of empty stages traced, and the same sample not traced."""

from __future__ import annotations

import time
from statistics import median

from loaderbench.tracing import block as layout
from loaderbench.tracing.block import BLOCK_BYTES, Block
from loaderbench.tracing.reading import Traced
from loaderbench.tracing.timed import timed
from loaderbench.tracing.tracer import Tracer

_SAMPLES = 100
_PAIRS = 7


def tracing_s_per_sample(traced: Traced) -> float | None:
    """Seconds for a sample with as many stages as those that were traced had; `None` where none was."""
    if not traced.traced:
        return None
    stages = sum(total.calls for (stage, _), total in traced.parts.items() if stage not in ("idle", "collate"))
    entered = max(0, round(stages / traced.traced) - 1)  # one is the sample itself
    cost_s = median(_pair_s(entered) for _ in range(_PAIRS)) / _SAMPLES
    return max(0.0, cost_s) * traced.traced / traced.samples


def _pair_s(stages: int) -> float:
    tracer = Tracer(Block(bytearray(BLOCK_BYTES)), max_cost_share=1e9)
    stage = timed(_nothing, tracer, tracer.place("transform"))

    def sample() -> None:
        for _ in range(stages):
            stage()

    tracer.block.header[layout.ENABLED] = 1.0
    began_s = time.perf_counter()
    for index in range(_SAMPLES):
        tracer.sample(index, sample)
    between_s = time.perf_counter()
    for _ in range(_SAMPLES):
        for _ in range(stages):
            _nothing()
    return 2 * between_s - began_s - time.perf_counter()


def _nothing() -> None:
    pass
