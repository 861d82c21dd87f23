"""A suite: one YAML file that says what to measure. Read safely, checked with positions, imported by nobody's code."""

from loaderbench.suite.load import LoadedSuite, Override, load_suite
from loaderbench.suite.model import Consumer, ImageFolder, Measure, Suite, Target

__all__ = ["Consumer", "ImageFolder", "LoadedSuite", "Measure", "Override", "Suite", "Target", "load_suite"]
