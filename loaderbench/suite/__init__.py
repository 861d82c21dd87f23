"""A suite: one YAML file that says what to measure. Read safely, checked with positions, imported by nobody's code."""

from loaderbench.suite.load import LoadedSuite, Override, load_suite
from loaderbench.suite.model import Measure, Suite, parse_duration_s

__all__ = ["LoadedSuite", "Measure", "Override", "Suite", "load_suite", "parse_duration_s"]
