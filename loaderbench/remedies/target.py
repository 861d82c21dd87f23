"""A measured gain and the demand of the consumer: whether it is met, and whether it capped the gain."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.consumers import NOTHING
from loaderbench.diagnosis.ranking import AT_THE_CAP
from loaderbench.records import Recommendation
from loaderbench.remedies.findings import Findings


def with_target(advice: Recommendation, findings: Findings) -> Recommendation:
    """The recommendation with whether its rate meets the demand; unchanged without a demand or a rate.

    It does if all of the rate's interval does. A consumer that caps the rate hides by how much a change exceeds its
    demand, so the gain of one near it is a floor, whether or not that is met.
    """
    after = advice.after
    demand = findings.demand_of({**(advice.against or findings.baseline), **advice.change})
    if demand is None or after is None or advice.gain is None:
        return advice
    sure = after.est if after.lo is None else after.lo
    capped = after.est >= AT_THE_CAP * demand and not _is_own_rate(advice, findings)
    return replace(advice, gain=replace(advice.gain, is_floor=capped), meets_target=sure >= demand)


def _is_own_rate(advice: Recommendation, findings: Findings) -> bool:
    """Whether no consumer took part in its trials."""
    trials = [trial for trial in (*findings.trials, *findings.remedy_trials) if trial.id in advice.trials]
    return bool(trials) and all(trial.consumer == NOTHING for trial in trials)
