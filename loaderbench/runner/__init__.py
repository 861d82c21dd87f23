"""One process per trial, watched from outside and ended with all its children."""

from loaderbench.runner.bad_images import find_bad_images
from loaderbench.runner.pixels import psnr_of
from loaderbench.runner.probe import Probe, probe
from loaderbench.runner.protocol import TrialOrder
from loaderbench.runner.server import TrialServer
from loaderbench.runner.trial import Begun, Outcome, TrialRunner, not_tried

__all__ = [
    "Begun",
    "Outcome",
    "Probe",
    "TrialOrder",
    "TrialRunner",
    "TrialServer",
    "find_bad_images",
    "not_tried",
    "probe",
    "psnr_of",
]
