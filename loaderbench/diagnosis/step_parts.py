"""The parts of a training step, as shares of step time, and the largest of them in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loaderbench.diagnosis.wording import in_percent, label_of, stage_name
from loaderbench.records import Evidence, Trial

REST = "rest of the step"
_LISTED = 0.01  # share of step time; smaller parts are not listed


def step_parts_in_words(trials: Sequence[Trial]) -> tuple[Evidence, ...]:
    """One line about the largest part of a profiled loop's step; empty if the step was not divided."""
    trial = next((trial for trial in trials if trial.status == "completed"), None)
    shares = step_shares(trial) if trial else {}
    if not shares:
        return ()
    largest, *others = sorted(shares, key=lambda part: -shares[part])
    listed = ", ".join(f"{stage_name(part)} {in_percent(shares[part])}" for part in others if shares[part] >= _LISTED)
    figures = f"{in_percent(shares[largest])} of step time, the largest part"
    return (Evidence("cause", label_of(largest), f"{figures}; {listed}" if listed else figures),)


def step_shares(trial: Trial) -> Mapping[str, float]:
    """By part, its share of step time without the data wait; `REST` is outside of all parts.

    Empty if no part was timed. Parts that overlap, and so take longer than the step, are shares of their sum.
    """
    one = trial.of_one_process
    parts_s = {name: cost.wall_s for name, cost in (one.step_stages or {}).items() if cost.wall_s}
    if not parts_s or not one.steady_s or not one.batches or one.data_wait_share is None:
        return {}
    step_s = one.steady_s / one.batches
    wait_s = step_s * one.data_wait_share
    rest_s = max(0.0, step_s - wait_s - sum(parts_s.values()))
    whole_s = wait_s + rest_s + sum(parts_s.values())
    return {name: part_s / whole_s for name, part_s in {**parts_s, REST: rest_s}.items()}
