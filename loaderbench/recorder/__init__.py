"""Times what a consumer waits for. A trial's process and `Profiler` use it."""

from loaderbench.recorder.inside import loader_inside
from loaderbench.recorder.measure import Measurement, measure
from loaderbench.recorder.overhead import recorder_s_per_batch
from loaderbench.recorder.rules import Rules
from loaderbench.recorder.spreads import spread_of
from loaderbench.recorder.steps import NoBatchesError, Steps
from loaderbench.recorder.trials import completed_trial, with_reasons

__all__ = [
    "Measurement",
    "NoBatchesError",
    "Rules",
    "Steps",
    "completed_trial",
    "loader_inside",
    "measure",
    "recorder_s_per_batch",
    "spread_of",
    "with_reasons",
]
