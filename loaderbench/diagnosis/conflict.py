"""What speaks against a cause that was named."""

from __future__ import annotations

from loaderbench.diagnosis.cause import RULES, Cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.operational import operational_bounds
from loaderbench.diagnosis.thresholds import ALMOST, CONFLICT, TIED


def speaks_against(facts: Facts, cause: Cause) -> tuple[str, ...]:
    """What other rules have to say that come to another cause, and the stage that costs almost as much."""
    others = [found for rule in RULES[:-1] if (found := rule(facts)) is not None]
    said = [found.why for found in others if (found.work, found.limit) != (cause.work, cause.limit)]
    if near_tie(facts, cause, ALMOST):
        first, second, *_ = _ranked(facts)
        said.append(f"{second[0]} takes {second[1] / first[1] * 100:.0f} % of what {first[0]} takes")
    return (*said, *_conflict(facts))


def near_tie(facts: Facts, cause: Cause, share: float = TIED) -> bool:
    """Whether another stage costs this share, or more, of the one that was named for its cost."""
    ranked = _ranked(facts)
    return cause.limit in ("workers", "cpu") and len(ranked) > 1 and ranked[1][1] >= share * ranked[0][1] > 0


def _ranked(facts: Facts) -> list[tuple[str, float]]:
    return sorted(facts.cpu_s.items(), key=lambda item: -item[1])


def conflicting(facts: Facts) -> bool:
    """Whether more is delivered than the times that were traced would let through."""
    return bool(_conflict(facts))


def _conflict(facts: Facts) -> tuple[str, ...]:
    tightest = operational_bounds(facts).tightest
    if tightest is None or facts.samples_per_s <= CONFLICT * tightest[1]:
        return ()
    rates = f"{tightest[1]:,.0f} samples/s through, and {facts.samples_per_s:,.0f} are delivered"
    return (f"by the times that were traced the {tightest[0].replace('_', ' ')} would let {rates}",)
