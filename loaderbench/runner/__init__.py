"""Runs each trial in its own process, monitors it from outside, and ends it with all its child processes."""

from loaderbench.runner.probe import Probe, probe
from loaderbench.runner.protocol import TrialOrder
from loaderbench.runner.server import ForkServerKilledError, TrialServer
from loaderbench.runner.trial import Begun, TrialOutcome, TrialRunner, not_tried

__all__ = [
    "Begun",
    "ForkServerKilledError",
    "Probe",
    "TrialOrder",
    "TrialOutcome",
    "TrialRunner",
    "TrialServer",
    "not_tried",
    "probe",
]
