"""Fixes that may gain more than the result, in words."""

from __future__ import annotations

from loaderbench.records import Config
from loaderbench.records.words import count
from loaderbench.report import numbers
from loaderbench.statistics.open_fixes import OpenFix


def why_none(fix: OpenFix) -> str:
    """The reason for keeping the current arguments."""
    ratio, pairs = fix.ratio, count(fix.pairs, "pair")
    gain = numbers.gain(ratio.est, ratio.lo, ratio.hi).main
    setting = arguments({**fix.over, **fix.change})
    than = f" than {arguments(fix.over)}" if fix.over else ""
    if fix.is_gain:
        return (
            f"{setting} was faster{than} ({gain}, {pairs}), but was not compared with the current arguments often "
            "enough; use a longer budget"
        )
    return f"{setting} may be faster{than} ({gain} after {pairs}), undecided; use a longer budget"


def in_detail(fix: OpenFix) -> str:
    """One line about a fix that is not part of the result."""
    ratio = fix.ratio
    gain = numbers.gain(ratio.est, ratio.lo, ratio.hi, f"vs {arguments(fix.over) or 'current arguments'}").text
    setting = f"{arguments(fix.change)}: {gain}, {count(fix.pairs, 'pair')}"
    if fix.is_gain:
        return f"Also faster: {setting}. A longer budget may combine it with other changes"
    return f"May be faster: {setting}, undecided. Use a longer budget to find out"


def arguments(found: Config) -> str:
    """Text such as `num_workers=2, in_order=False`."""
    return ", ".join(f"{name}={value!r}" for name, value in found.items())
