"""How much a fix changes the pixels of samples: a field of the record, and a cost in words."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.records import IDENTICAL, PixelChange, Recommendation, Tried, Verification

NOT_COMPARED = PixelChange(None, "not compared: the fix was not tried")
"""The pixel change of an untried fix that is known to change pixels."""


def pixels_of(known: PixelChange | None, found: Tried | Verification) -> PixelChange | None:
    """The measured pixel change, or the reason why a known change was not measured; `None` if no pixels change."""
    why_not = found.not_measured.get("psnr_db", "")
    if found.psnr_db is not None:
        return PixelChange(found.psnr_db)
    if known is None or why_not == IDENTICAL.why_not:
        return None
    return PixelChange(None, why_not or "not compared in this run")


def with_pixel_cost(advice: Recommendation) -> Recommendation:
    """Add `Changes pixels: PSNR 34 dB` to the costs of a recommendation that changes pixels."""
    if advice.pixels is None:
        return advice
    return replace(advice, costs=(*advice.costs, f"Changes pixels: {advice.pixels.psnr_in_words}"))
