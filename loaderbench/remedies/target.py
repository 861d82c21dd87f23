"""A measured gain and the demand of the consumer: whether it is met, and whether it capped the gain."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.consumers import NOTHING
from loaderbench.diagnosis.subject import AT_THE_CAP
from loaderbench.records import Recommendation
from loaderbench.remedies.findings import Findings


def with_target(advice: Recommendation, findings: Findings) -> Recommendation:
    """The recommendation with whether its rate meets the demand; unchanged without a demand or a rate."""
    demand, after = findings.demand, advice.after
    if demand is None or after is None or advice.gain is None:
        return advice
    if _is_own_rate(advice, findings):
        sure = after.est if after.lo is None else after.lo
        return replace(advice, meets_target=sure >= demand)
    at_the_cap = after.est >= AT_THE_CAP * demand
    return replace(advice, gain=replace(advice.gain, is_floor=at_the_cap), meets_target=at_the_cap)


def _is_own_rate(advice: Recommendation, findings: Findings) -> bool:
    """Whether no consumer took part in its trials."""
    trials = [trial for trial in (*findings.trials, *findings.remedy_trials) if trial.id in advice.trials]
    return bool(trials) and all(trial.consumer == NOTHING for trial in trials)
