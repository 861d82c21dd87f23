"""Times how long a consumer waits for data. Used by a trial's process and by `Profiler`."""

from loaderbench.recorder.inside import loader_inside
from loaderbench.recorder.measure import Measurement, NoBatchesError, Rules, Steps, measure
from loaderbench.recorder.overhead import recorder_s_per_batch
from loaderbench.recorder.trials import completed_rank, completed_trial, spread_of, with_reasons

__all__ = [
    "Measurement",
    "NoBatchesError",
    "Rules",
    "Steps",
    "completed_rank",
    "completed_trial",
    "loader_inside",
    "measure",
    "recorder_s_per_batch",
    "spread_of",
    "with_reasons",
]
