"""Compares two versions measured in interleaved pairs of processes, one pair per round.

The unit is the pair, whose two processes alternated in time slices or ran sequentially. All intervals are those
of `sequential`: they hold at all planned looks together, and for all configurations together (Bonferroni's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from loaderbench.consumers import consumer_kind
from loaderbench.records import (
    Comparison,
    Config,
    FailedTrials,
    GateResult,
    Interval,
    Measured,
    MetricChange,
    Side,
    SideBySide,
    Trial,
    config_name,
)
from loaderbench.statistics.comparison import DATA_WAIT, RATE, SAME_SHARE, change_of, headline_of, within_one
from loaderbench.statistics.configurations import Round, rates_of
from loaderbench.statistics.failed_trials import failed_trials, failures_in_words
from loaderbench.statistics.gates import LATER_FAILED, judge_one, judge_sides
from loaderbench.statistics.intervals import (
    FEWEST_ROUNDS,
    LEVEL,
    mean_interval,
    ratio_interval,
)
from loaderbench.statistics.sequential import level_at_looks
from loaderbench.statistics.target_rate import is_hidden

FAILED = "every trial failed"
EARLIER_FAILED = "every trial of the earlier version failed"
NO_RATE = "no trial delivered a sample"
NO_WAIT = "not measured without a gate on data_wait_share"
Pair = tuple[int, float, float]
"""The number of a round, and samples/s of both versions."""

DECIDED = "decided"
"""Why measuring ended if every gate was decided; without gates, if every change was."""

TARGET_HIDES = (
    "both versions reach the target of the emulated GPU, which would hide a slower loader; "
    "leave out the gate on data_wait_share to compare samples/s"
)
STEP_HIDES = (
    f"data wait is below {SAME_SHARE:.0%} in both versions: the training step limits samples/s, "
    "which would hide a slower loader; use consumer.kind: none"
)
_WIDE = "the interval includes both no change and a change that matters"
_FEW = f"fewer than {FEWEST_ROUNDS} pairs"


def budget_used_up(budget_s: float) -> str:
    """Why measuring ended if there was no time for another pair."""
    return f"the budget of {budget_s:g} s was used up"


def pairs_used_up(looks: Sequence[int]) -> str:
    """Why measuring ended if the last planned look decided nothing."""
    return f"{looks[-1]} pairs were planned for the budget, and all were measured"


def compare_sides(measured: Measured) -> tuple[Comparison | None, tuple[GateResult, ...]]:
    """Compare the two versions of a run over all its pairs, and judge its gates; empty for any other run."""
    asked = measured.side_by_side
    if asked is None:
        return None, ()
    found = comparison_of(asked, measured.ab_trials)
    hidden = {config_name(config): why for config in asked.configs if (why := _why_hidden(config, found, measured))}
    gates = tuple(_with_hidden(judge_sides(gate, found), next(iter(hidden.values()), "")) for gate in asked.gates)
    of_headline = hidden.get(config_name(found.config or {}))
    return (replace(found, reasons=(of_headline, *found.reasons)) if of_headline else found), gates


def _why_hidden(config: Config, comparison: Comparison, measured: Measured) -> str:
    """Why samples/s of a configuration would hide a slower loader; empty if they show it."""
    rate, wait = (change for change in comparison.metrics if change.config == config)
    if is_hidden(rate, measured):
        return TARGET_HIDES
    kind, shares = consumer_kind(measured.consumer), (wait.before, wait.after)
    waits = kind.capped or not kind.consumes or any(share is None or share.est >= SAME_SHARE for share in shares)
    return "" if waits else STEP_HIDES


def _with_hidden(result: GateResult, why: str) -> GateResult:
    """The result; a gate that passed on a change of samples/s says if a slower loader would be hidden."""
    is_meant = why and result.outcome == "passed" and (result.gate.metric, result.gate.kind) == (RATE.name, "change")
    return replace(result, said=f"{result.said}; {why}") if is_meant else result


def comparison_of(asked: SideBySide, trials: Sequence[Trial]) -> Comparison:
    """Compare every configuration; the outcome is that of the one with the largest loss or smallest gain."""
    level = level_at_looks(asked.looks, 1 - (1 - LEVEL) / len(asked.configs))
    failed = [found for config in asked.configs if (found := _failed(config, trials, level))]
    each = ((_rate_change(c, trials, level, asked), _share_change(c, trials, level, asked)) for c in asked.configs)
    changes = [change for both in each for change in both]
    rates = [change for change in changes if change.metric == RATE.name]
    worst = min(rates, key=partial(_gain_of, trials=trials))
    reasons = [worst.not_measured.get("change", _why_wide(asked))] if worst.outcome == "inconclusive" else []
    return Comparison(
        outcome=worst.outcome,
        headline=headline_of(worst, worst.config if len(asked.configs) > 1 else {}),
        metrics=tuple(changes),
        reasons=(*reasons, *_partly_failed(failed, asked, reasons)),
        config=worst.config,
        failed_trials=tuple(failed),
    )


def _partly_failed(failed: Sequence[FailedTrials], asked: SideBySide, said: Sequence[str]) -> Iterator[str]:
    """Yield the failed trials of each configuration that also has completed ones, unless they are already `said`."""
    for found in failed:
        words = failures_in_words(found)
        if words and not any(words in one for one in said):
            yield f"{words} with {config_name(found.config)}" if len(asked.configs) > 1 else words


def _why_wide(asked: SideBySide) -> str:
    """Why a change is inconclusive, by the reason for which measuring ended."""
    if asked.gates and asked.ended == DECIDED:
        return f"{_WIDE}; measuring ended because the gates were decided"
    return f"{_WIDE}; {'a longer --budget narrows it' if _had_time(asked) else asked.ended}"


def _had_time(asked: SideBySide) -> bool:
    """Whether the comparison used its whole time, or was decided; false if something cut it short."""
    ends = [DECIDED, budget_used_up(asked.budget_s), *([pairs_used_up(asked.looks)] if asked.looks else [])]
    return asked.ended in ends


def _gain_of(found: MetricChange, trials: Sequence[Trial]) -> float:
    """The gain to rank a configuration by; minus infinity if only the later version fails to load."""
    if found.change is not None:
        return found.change.est
    fails = any(one.failure for one in trials if one.config == found.config and one.side == "after")
    return -math.inf if found.before is not None and found.after is None and fails else math.inf


def pairs_of(config: Config, trials: Sequence[Trial]) -> int:
    """The number of rounds that measured both versions of a configuration."""
    return len(rates_of_pairs(config, trials))


def rates_of_pairs(config: Config, trials: Sequence[Trial]) -> list[Pair]:
    """The pairs that a comparison of a configuration counts, by round."""
    before, after = _rates(config, trials, "before"), _rates(config, trials, "after")
    both = sorted(before.keys() & after.keys(), key=lambda found: found[-1])
    return [(found[-1], before[found], after[found]) for found in both]


def is_decided(config: Config, asked: SideBySide, comparison: Comparison) -> bool:
    """Whether every gate is decided for a configuration; without gates, whether its change is."""
    if asked.gates:
        return all(
            judge_one(gate, replace(comparison, config=config)).outcome != "inconclusive" for gate in asked.gates
        )
    return not any(c.outcome == "inconclusive" for c in comparison.metrics if _is_rate_of(config, c))


def _is_rate_of(config: Config, change: MetricChange) -> bool:
    return change.config == config and change.metric == "samples_per_s"


def _of_side(config: Config, trials: Sequence[Trial], side: Side) -> list[Trial]:
    return [trial for trial in trials if trial.config == config and trial.side == side]


def _failed(config: Config, trials: Sequence[Trial], level: float) -> FailedTrials | None:
    return failed_trials(config, _of_side(config, trials, "before"), _of_side(config, trials, "after"), level)


def _rates(config: Config, trials: Sequence[Trial], side: Side) -> dict[Round, float]:
    return rates_of(_of_side(config, trials, side))


def _shares(config: Config, trials: Sequence[Trial], side: Side) -> dict[int, float]:
    found = {trial.round: trial.data_wait_share for trial in _of_side(config, trials, side)}
    consumed = all(t.time_slices is None and t.consumer != "none" for t in trials)
    return {number: share for number, share in found.items() if share is not None and consumed}


def _rate_change(config: Config, trials: Sequence[Trial], level: float, asked: SideBySide) -> MetricChange:
    before, after = _rates(config, trials, "before"), _rates(config, trials, "after")
    change = _with_enough_pairs(ratio_interval(after, before, level), before, after)
    missing = _missing(before, after, _why_unmeasured(config, trials, asked), _why_few(config, trials, asked))
    return change_of(RATE, config, [*before.values()], [*after.values()], change, not_measured=missing, level=level)


def _share_change(config: Config, trials: Sequence[Trial], level: float, asked: SideBySide) -> MetricChange:
    before, after = _shares(config, trials, "before"), _shares(config, trials, "after")
    differences = [share - before[number] for number, share in after.items() if number in before]
    found = within_one(mean_interval(differences, level)) if differences else None
    change = _with_enough_pairs(found, before, after)
    why = _why_unmeasured(config, trials, asked, of_completed=NO_WAIT)
    missing = _missing(before, after, why, _why_few(config, trials, asked))
    return change_of(
        DATA_WAIT, config, [*before.values()], [*after.values()], change, not_measured=missing, level=level
    )


def _why_unmeasured(
    config: Config, trials: Sequence[Trial], asked: SideBySide, of_completed: str = NO_RATE
) -> dict[Side, str]:
    """Why a version has no value: it failed, it did not run, or its completed trials have none."""
    found: dict[Side, str] = {}
    sides: tuple[tuple[Side, str, str], ...] = (
        ("before", "earlier", EARLIER_FAILED),
        ("after", "later", LATER_FAILED),
    )
    for side, name, failed in sides:
        own = [trial.status for trial in _of_side(config, trials, side)]
        not_run = f"no trial of the {name} version was completed: {asked.ended}"
        found[side] = of_completed if "completed" in own else failed if own else not_run
    return found


def _why_few(config: Config, trials: Sequence[Trial], asked: SideBySide) -> str:
    """Why a configuration has fewer pairs than an interval needs."""
    failed = _failed(config, trials, LEVEL)
    words = failures_in_words(failed) if failed else ""
    return f"{_FEW}; {words or ('set a longer --budget' if _had_time(asked) else asked.ended)}"


def _with_enough_pairs(
    found: Interval | None, before: Mapping[Any, float], after: Mapping[Any, float]
) -> Interval | None:
    """The change, without bounds if there are too few pairs."""
    if found is None or len(before.keys() & after.keys()) >= FEWEST_ROUNDS:
        return found
    return replace(found, lo=None, hi=None)


def _missing(
    before: Mapping[Any, float], after: Mapping[Any, float], why: Mapping[Side, str], why_few: str
) -> dict[str, str]:
    both: tuple[tuple[Side, Mapping[Any, float]], ...] = (("before", before), ("after", after))
    reasons: dict[str, str] = {side: why[side] for side, found in both if not found}
    pairs = len(before.keys() & after.keys())
    if not pairs:
        return {**reasons, "change": _joint_reason([*reasons.values()])}
    return {"change": why_few} if pairs < FEWEST_ROUNDS else {}


def _joint_reason(reasons: Sequence[str]) -> str:
    """Why there is no change, from the reasons of both versions; `NO_WAIT` is used only if it is the sole reason."""
    if reasons == [EARLIER_FAILED, LATER_FAILED]:
        return FAILED
    lacking = [why for why in dict.fromkeys(reasons) if why != NO_WAIT] or reasons[:1]
    return "; ".join(lacking) or "no pair measured both"
