"""Times what a consumer waits for. A trial's process uses it; the user's own loop will use the same."""

from loaderbench.recorder.measure import Measurement, NoBatchesError, measure
from loaderbench.recorder.overhead import recorder_s_per_batch
from loaderbench.recorder.rules import Rules

__all__ = ["Measurement", "NoBatchesError", "Rules", "measure", "recorder_s_per_batch"]
