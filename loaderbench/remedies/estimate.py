"""What a change should give, from the operational bound: the order in which remedies are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.operational import operational_bounds
from loaderbench.records import Config


def estimate(facts: Facts, change: Config, relieves: Mapping[str, float], demand: float | None) -> float | None:
    """Samples/s, changed over unchanged; `None` where the costs are not known, or the change is to none of them.

    `relieves` are the parts of each stage's time that are left. Source: the asymptotic bounds of operational analysis
    with one term changed (Denning and Buzen 1978).
    """
    count = change.get("num_workers")
    workers = count if isinstance(count, int) else None
    if workers is None and not relieves:
        return None
    before = operational_bounds(facts, demand).tightest
    after = operational_bounds(_relieved(facts, relieves), demand, workers=workers).tightest
    return None if before is None or after is None or before[1] <= 0 else after[1] / before[1]


def _relieved(facts: Facts, relieves: Mapping[str, float]) -> Facts:
    cpu_s = {stage: time_s * relieves.get(stage, 1.0) for stage, time_s in facts.cpu_s.items()}
    wall_s = {stage: time_s * relieves.get(stage, 1.0) for stage, time_s in facts.wall_s.items()}
    whole = sum(facts.cpu_s.values())
    left = sum(cpu_s.values()) / whole if whole > 0 else 1.0
    return replace(
        facts, cpu_s=cpu_s, wall_s=wall_s, own_cpus=None if facts.own_cpus is None else facts.own_cpus * left
    )
