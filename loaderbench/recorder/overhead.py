"""What the recorder itself costs."""

from __future__ import annotations

import time
from itertools import repeat

from loaderbench.consumers.host import NoConsumer
from loaderbench.recorder.measure import Steps

_BATCHES = 2_000


def recorder_s_per_batch() -> float:
    """Seconds that recording adds to one batch: a loop over ready batches with it, less the same loop without."""
    ready = [0] * _BATCHES
    steps = Steps(ready, NoConsumer())
    began_s = time.perf_counter()
    for _ in repeat(None, _BATCHES):
        steps.take()
    recorded_s = time.perf_counter()
    for _ in ready:
        pass
    return max(0.0, (recorded_s - began_s) - (time.perf_counter() - recorded_s)) / _BATCHES
