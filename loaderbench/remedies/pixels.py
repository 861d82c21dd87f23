"""Whether a fix changes the pixels of the samples, and by how much: a field of the record, and a cost in words."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.records import IDENTICAL, PixelChange, Recommendation, Tried, Verification

NOT_COMPARED = PixelChange(None, "not compared: the fix was not tried")
"""The change of pixels of a fix that is known to change some."""


def pixels_of(known: PixelChange | None, found: Tried | Verification) -> PixelChange | None:
    """The measured change of pixels; if there is none, what is known of the fix with the reason for the gap."""
    why_not = found.not_measured.get("psnr_db", "")
    if found.psnr_db is not None:
        return PixelChange(found.psnr_db)
    if known is None or why_not == IDENTICAL.why_not:
        return None
    return PixelChange(None, why_not or "not compared in this run")


def with_pixel_cost(advice: Recommendation) -> Recommendation:
    """The recommendation with `Changes pixels: PSNR 34 dB` among its costs, if it changes any."""
    if advice.pixels is None:
        return advice
    return replace(advice, costs=(*advice.costs, f"Changes pixels: {advice.pixels.psnr_in_words}"))
