"""Evidence against a cause: other rules that apply, a stage that costs almost as much, and a rate that is too high."""

from __future__ import annotations

from loaderbench.diagnosis.cause import RULES, Cause, apply
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.operational import LIMIT_NAMES, operational_bounds
from loaderbench.diagnosis.thresholds import ALMOST, CONFLICT, TIED
from loaderbench.diagnosis.wording import in_percent, stage_name


def speaks_against(facts: Facts, cause: Cause) -> tuple[str, ...]:
    """Evidence against the cause: findings of other rules, and another stage that costs almost as much."""
    others = [found for rule in RULES[:-1] if (found := apply(rule, facts)) is not None]
    evidence = [str(found.why) for found in others if (found.work, found.limit) != (cause.work, cause.limit)]
    if near_tie(facts, cause, ALMOST):
        first, second, *_ = _stages_by_cost(facts)
        evidence.append(
            f"{stage_name(second[0])} costs {in_percent(second[1] / first[1])} as much as {stage_name(first[0])}"
        )
    if cause.limit == "cpu" and facts.more_are_faster:
        evidence.append("more workers were measured as faster, without a consumer")
    return (*evidence, *_conflict(facts))


def near_tie(facts: Facts, cause: Cause, share: float = TIED) -> bool:
    """Whether another stage costs at least this share of the stage that was named for its cost."""
    ranked = _stages_by_cost(facts)
    return cause.limit in ("workers", "cpu") and len(ranked) > 1 and ranked[1][1] >= share * ranked[0][1] > 0


def costliest_two(facts: Facts) -> str:
    """The two stages of a near tie: `decode and transform`."""
    (first, _), (second, _), *_ = _stages_by_cost(facts)
    return f"{stage_name(first)} and {stage_name(second)}"


def _stages_by_cost(facts: Facts) -> list[tuple[str, float]]:
    return sorted(facts.cpu_s.items(), key=lambda item: -item[1])


def conflicting(facts: Facts) -> bool:
    """Whether throughput exceeds what the traced times allow."""
    return bool(_conflict(facts))


def _conflict(facts: Facts) -> tuple[str, ...]:
    for name, rate in operational_bounds(facts).known.items():
        measured = facts.samples_per_s if name == "cpus" else facts.own_samples_per_s * facts.ranks_of_rate
        if measured > CONFLICT * rate:
            allowed = f"{rate:,.0f} that traced times allow ({LIMIT_NAMES[name]})"
            return (f"measured {measured:,.0f} samples/s, above the {allowed}",)
    return ()
