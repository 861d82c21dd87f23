"""Compares two versions measured in interleaved pairs of processes, one pair per round.

The unit is the pair, whose two processes alternated in time slices or ran sequentially. All intervals are those
of `sequential`: they hold at all planned looks together, and for all configurations together (Bonferroni's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from loaderbench.records import (
    Comparison,
    Config,
    GateResult,
    Interval,
    Measured,
    MetricChange,
    Side,
    SideBySide,
    Trial,
)
from loaderbench.statistics.comparison import DATA_WAIT, RATE, change_of, headline_of, within_one
from loaderbench.statistics.configurations import Round, rates_of
from loaderbench.statistics.gates import LATER_FAILED, judge_one, judge_sides
from loaderbench.statistics.intervals import (
    FEWEST_ROUNDS,
    LEVEL,
    mean_interval,
    ratio_interval,
)
from loaderbench.statistics.sequential import level_at_looks

FAILED = "every trial failed"
EARLIER_FAILED = "every trial of the earlier version failed"
NO_RATE = "no trial delivered a sample"
NO_WAIT = "not measured without a gate on data_wait_share"
_WIDE = "the interval includes both no change and a change that matters; a longer --budget narrows it"
_FEW = f"fewer than {FEWEST_ROUNDS} pairs; set a longer --budget"


def compare_sides(measured: Measured) -> tuple[Comparison | None, tuple[GateResult, ...]]:
    """Compare the two versions of a run over all its pairs, and judge its gates; empty for any other run."""
    asked = measured.side_by_side
    if asked is None:
        return None, ()
    comparison = comparison_of(asked, measured.ab_trials)
    return comparison, tuple(judge_sides(gate, comparison) for gate in asked.gates)


def comparison_of(asked: SideBySide, trials: Sequence[Trial]) -> Comparison:
    """Compare every configuration; the outcome is that of the one with the largest loss or smallest gain."""
    level = level_at_looks(asked.looks, 1 - (1 - LEVEL) / len(asked.configs))
    each = ((_rate_change(c, trials, level, asked), _share_change(c, trials, level, asked)) for c in asked.configs)
    changes = [change for both in each for change in both]
    rates = [change for change in changes if change.metric == "samples_per_s"]
    worst = min(rates, key=partial(_gain_of, trials=trials))
    reasons = [worst.not_measured.get("change", _WIDE)] if worst.outcome == "inconclusive" else []
    return Comparison(
        outcome=worst.outcome,
        headline=headline_of(worst, worst.config if len(asked.configs) > 1 else {}),
        metrics=tuple(changes),
        reasons=tuple(reasons),
        config=worst.config,
    )


def _gain_of(found: MetricChange, trials: Sequence[Trial]) -> float:
    """The gain to rank a configuration by; minus infinity if only the later version fails to load."""
    if found.change is not None:
        return found.change.est
    fails = any(one.failure for one in trials if one.config == found.config and one.side == "after")
    return -math.inf if found.before is not None and found.after is None and fails else math.inf


def pairs_of(config: Config, trials: Sequence[Trial]) -> int:
    """The number of rounds that measured both versions of a configuration."""
    return len(_rates(config, trials, "before").keys() & _rates(config, trials, "after").keys())


def is_decided(config: Config, asked: SideBySide, comparison: Comparison) -> bool:
    """Whether every gate is decided for a configuration; without gates, whether its change is."""
    if asked.gates:
        return all(
            judge_one(gate, replace(comparison, config=config)).outcome != "inconclusive" for gate in asked.gates
        )
    return not any(c.outcome == "inconclusive" for c in comparison.metrics if _is_rate_of(config, c))


def _is_rate_of(config: Config, change: MetricChange) -> bool:
    return change.config == config and change.metric == "samples_per_s"


def _rates(config: Config, trials: Sequence[Trial], side: Side) -> dict[Round, float]:
    return rates_of(trial for trial in trials if trial.config == config and trial.side == side)


def _shares(config: Config, trials: Sequence[Trial], side: Side) -> dict[int, float]:
    found = {t.round: t.data_wait_share for t in trials if t.config == config and t.side == side}
    consumed = all(t.time_slices is None and t.consumer != "none" for t in trials)
    return {number: share for number, share in found.items() if share is not None and consumed}


def _rate_change(config: Config, trials: Sequence[Trial], level: float, asked: SideBySide) -> MetricChange:
    before, after = _rates(config, trials, "before"), _rates(config, trials, "after")
    change = _with_enough_pairs(ratio_interval(after, before, level), before, after)
    missing = _missing(before, after, _why_unmeasured(config, trials, asked))
    return change_of(RATE, config, [*before.values()], [*after.values()], change, not_measured=missing, level=level)


def _share_change(config: Config, trials: Sequence[Trial], level: float, asked: SideBySide) -> MetricChange:
    before, after = _shares(config, trials, "before"), _shares(config, trials, "after")
    differences = [share - before[number] for number, share in after.items() if number in before]
    found = within_one(mean_interval(differences, level)) if differences else None
    change = _with_enough_pairs(found, before, after)
    missing = _missing(before, after, _why_unmeasured(config, trials, asked, of_completed=NO_WAIT))
    return change_of(
        DATA_WAIT, config, [*before.values()], [*after.values()], change, not_measured=missing, level=level
    )


def _why_unmeasured(
    config: Config, trials: Sequence[Trial], asked: SideBySide, of_completed: str = NO_RATE
) -> dict[str, str]:
    """Why a version has no value: it failed, it did not run, or its completed trials have none."""
    found: dict[str, str] = {}
    for side, name, failed in (("before", "earlier", EARLIER_FAILED), ("after", "later", LATER_FAILED)):
        own = [trial.status for trial in trials if trial.config == config and trial.side == side]
        not_run = f"no trial of the {name} version was completed: {asked.ended}"
        found[side] = of_completed if "completed" in own else failed if own else not_run
    return found


def _with_enough_pairs(
    found: Interval | None, before: Mapping[Any, float], after: Mapping[Any, float]
) -> Interval | None:
    """The change, without bounds if there are too few pairs."""
    if found is None or len(before.keys() & after.keys()) >= FEWEST_ROUNDS:
        return found
    return replace(found, lo=None, hi=None)


def _missing(before: Mapping[Any, float], after: Mapping[Any, float], why: Mapping[str, str]) -> dict[str, str]:
    reasons = {side: why[side] for side, found in (("before", before), ("after", after)) if not found}
    pairs = len(before.keys() & after.keys())
    if not pairs:
        return {**reasons, "change": _joint_reason([*reasons.values()])}
    return {"change": _FEW} if pairs < FEWEST_ROUNDS else {}


def _joint_reason(reasons: Sequence[str]) -> str:
    """Why there is no change, from the reasons of both versions; `NO_WAIT` is used only if it is the sole reason."""
    if reasons == [EARLIER_FAILED, LATER_FAILED]:
        return FAILED
    lacking = [why for why in dict.fromkeys(reasons) if why != NO_WAIT] or reasons[:1]
    return "; ".join(lacking) or "no pair measured both"
