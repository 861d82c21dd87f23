"""Finds faster arguments for a user's loader, measured on its own dataset, sampler and collate function."""

from loaderbench.tuning.plan import OwnLoop, TuneOrder
from loaderbench.tuning.tune import TuningInterrupted, tune_loader
from loaderbench.tuning.tuned import Tuned

__all__ = ["OwnLoop", "TuneOrder", "Tuned", "TuningInterrupted", "tune_loader"]
