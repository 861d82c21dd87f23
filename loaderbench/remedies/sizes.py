"""How large the images are, from the bytes that a sample reads."""

from __future__ import annotations

from loaderbench.diagnosis.facts import Facts

LARGE_BYTES = 1_000_000  # a JPEG of about four megapixels


def large_images(facts: Facts) -> bool:
    """Whether files are far larger than what a crop of a few hundred pixels needs."""
    return (facts.bytes_per_sample or 0.0) >= LARGE_BYTES
