"""Times what a consumer waits for. A trial's process and `Profiler` use it."""

from loaderbench.recorder.inside import inside_fields
from loaderbench.recorder.measure import Measurement, measure
from loaderbench.recorder.overhead import recorder_s_per_batch
from loaderbench.recorder.reasons import why_missing
from loaderbench.recorder.rules import Rules
from loaderbench.recorder.spreads import spread_of
from loaderbench.recorder.steps import NoBatchesError, Steps

__all__ = [
    "Measurement",
    "NoBatchesError",
    "Rules",
    "Steps",
    "inside_fields",
    "measure",
    "recorder_s_per_batch",
    "spread_of",
    "why_missing",
]
