"""What speaks against a cause that was named."""

from __future__ import annotations

from loaderbench.analysis.cause import RULES, Cause
from loaderbench.analysis.facts import Facts
from loaderbench.analysis.operational import operational_bounds
from loaderbench.analysis.thresholds import ALMOST, CONFLICT


def speaks_against(facts: Facts, cause: Cause) -> tuple[str, ...]:
    """What other rules have to say that come to another cause, and the stage that costs almost as much."""
    others = [found for rule in RULES[:-1] if (found := rule(facts)) is not None]
    said = [found.why for found in others if (found.stage, found.limit) != (cause.stage, cause.limit)]
    ranked = sorted(facts.cpu_s.items(), key=lambda item: -item[1])
    if cause.limit in ("workers", "cpu") and len(ranked) > 1 and ranked[1][1] >= ALMOST * ranked[0][1] > 0:
        said.append(f"{ranked[1][0]} takes {ranked[1][1] / ranked[0][1] * 100:.0f} % of what {ranked[0][0]} takes")
    return (*said, *_conflict(facts))


def conflicting(facts: Facts) -> bool:
    """Whether more is delivered than the times that were traced would let through."""
    return bool(_conflict(facts))


def _conflict(facts: Facts) -> tuple[str, ...]:
    tightest = operational_bounds(facts).tightest
    if tightest is None or facts.samples_per_s <= CONFLICT * tightest[1]:
        return ()
    rates = f"{tightest[1]:,.0f} samples/s through, and {facts.samples_per_s:,.0f} are delivered"
    return (f"by the times that were traced the {tightest[0].replace('_', ' ')} would let {rates}",)
