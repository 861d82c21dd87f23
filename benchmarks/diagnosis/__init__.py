"""Loaders with one planted cause each, and whether the diagnosis names it: `python -m benchmarks.diagnosis`."""
