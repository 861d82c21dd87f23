"""The importable profiler: a thin API over recorder, tracing, conclusion and report."""

from loaderbench.profiler.profiler import Profiler

__all__ = ["Profiler"]
