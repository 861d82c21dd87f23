"""A suite: one YAML file that says what to measure. Parsed safely, without importing user code."""

from loaderbench.suite.load import LoadedSuite, Override, load_suite
from loaderbench.suite.model import Measure, Strategy, Suite, parse_duration_s

__all__ = ["LoadedSuite", "Measure", "Override", "Strategy", "Suite", "load_suite", "parse_duration_s"]
