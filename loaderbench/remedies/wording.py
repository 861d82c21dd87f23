"""How a measured change is told: its rates, its gain, and why it is not recommended."""

from __future__ import annotations

from loaderbench.records import Configuration, Interval, Standing
from loaderbench.statistics.intervals import excludes_one

NO_GAIN = 1.10
"""A gain that cannot exceed this is none worth a change; an interval that reaches further has not decided."""


def why_not(ratio: Interval, rounds: int) -> tuple[Standing, str]:
    """Why a change whose interval does not lie above 1 is not recommended, after so many rounds."""
    if excludes_one(ratio):
        return "already_ok", f"it was slower: {times(ratio)}"
    if ratio.hi is not None and ratio.hi <= NO_GAIN:
        return "already_ok", f"no gain of more than {(NO_GAIN - 1) * 100:.0f} %: {times(ratio)}"
    holds = "comes from one round alone" if ratio.hi is None else "holds both a gain and a loss"
    advice = f"more rounds (--rounds {max(2 * rounds, 6)}) or a quieter machine would decide"
    return "not_checked", f"undecided: {times(ratio)} {holds}; {advice}"


def times(ratio: Interval) -> str:
    """`x1.02 (0.97-1.08)`, with a multiplication sign and an en dash."""
    if ratio.lo is None or ratio.hi is None:
        return f"\N{MULTIPLICATION SIGN}{_factor(ratio.est)}"
    return f"\N{MULTIPLICATION SIGN}{_factor(ratio.est)} ({_factor(ratio.lo)}\N{EN DASH}{_factor(ratio.hi)})"


def evidence(label: str, found: Configuration) -> str:
    """The rate of one configuration, with its interval."""
    return f"{label}: {_rate(found.samples_per_s)}"


def _factor(value: float) -> str:
    """Two decimals near 1, where they matter."""
    if value < 0.1:
        return f"{value:.1g}"
    if value < 2:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _rate(interval: Interval | None) -> str:
    if interval is None:
        return "not measured"
    spread = "" if interval.lo is None else f" ({interval.lo:,.0f}\N{EN DASH}{interval.hi:,.0f})"
    return f"{interval.est:,.0f}{spread} samples/s"


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
