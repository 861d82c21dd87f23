"""The importable profiler: a thin face over recorder, tracing, conclusion and report."""

from loaderbench.profiler.profiler import Profiler

__all__ = ["Profiler"]
