"""A measured gain and the consumer's demand: whether the demand is met, and whether it capped the gain."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.consumers import NOTHING
from loaderbench.records import Recommendation
from loaderbench.remedies.findings import Findings
from loaderbench.statistics.target_rate import AT_THE_CAP


def with_target(advice: Recommendation, findings: Findings) -> Recommendation:
    """Set whether the recommendation's rate meets the demand; unchanged without a demand or a rate.

    The demand is met if the rate's lower bound meets it. A consumer that caps the rate hides how far a change exceeds
    the demand, so a gain near the cap is a floor, whether or not the demand is met.
    """
    after = advice.after
    demand = findings.demand_of({**(advice.against or findings.baseline), **advice.change})
    if demand is None or after is None or advice.gain is None:
        return advice
    sure = after.est if after.lo is None else after.lo
    capped = after.est >= AT_THE_CAP * demand and not _is_own_rate(advice, findings)
    return replace(advice, gain=replace(advice.gain, is_floor=capped), meets_target=sure >= demand)


def _is_own_rate(advice: Recommendation, findings: Findings) -> bool:
    """Whether the recommendation's trials ran without a consumer."""
    trials = [trial for trial in (*findings.trials, *findings.remedy_trials) if trial.id in advice.trials]
    return bool(trials) and all(trial.consumer == NOTHING for trial in trials)
