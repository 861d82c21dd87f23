"""Sums for a linear fit of the seconds that samples are blocked, against the bytes that they read."""

from __future__ import annotations


def add_read(sums: list[float], read_bytes: float, blocked_s: float) -> None:
    """Add one sample, in the order of the worker's shared block."""
    blocked_s = max(0.0, blocked_s)
    sums[0] += 1
    sums[1] += read_bytes
    sums[2] += blocked_s
    sums[3] += read_bytes * read_bytes
    sums[4] += read_bytes * blocked_s
    sums[5] += blocked_s * blocked_s
