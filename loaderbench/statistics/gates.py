"""Gates: whether a run passes a threshold, by itself or compared with a reference run.

With a reference run, `samples_per_s:-5%` fails on a fall of more than 5%, and `data_wait_share:+3pp` on a rise of more
than 3 percentage points. Without one: `samples_per_s<800`, `data_wait_share>20%`. A gate is inconclusive if the
interval includes its threshold, so noise alone fails nothing. It does not pass either if trials of only the later run
or version failed, and it fails if these fail significantly more often.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from math import copysign, isclose, isfinite, log

from loaderbench.consumers import consumer_kind
from loaderbench.errors import UsageError
from loaderbench.records import (
    Comparison,
    Configuration,
    FailedTrials,
    Gate,
    GateOutcome,
    GateResult,
    Interval,
    MetricChange,
    RunRecord,
    config_name,
)
from loaderbench.statistics.comparison import AFTER_FAILED, fails_only_after
from loaderbench.statistics.failed_trials import failures_in_words, only_some_failed
from loaderbench.statistics.intervals import LEVEL
from loaderbench.statistics.target_rate import CAPPED, is_hidden

METRICS = ("samples_per_s", "data_wait_share")
LOOKS = 3
"""How often a run is compared with its reference run: after its rounds, and twice after more rounds."""

LEVEL_OF_LOOKS = 1 - (1 - LEVEL) / LOOKS
"""The level of the interval at each look; all looks together have 95%. Source: Bonferroni's inequality."""

_CHANGE = re.compile(r"(\w+):([+-])(\d+(?:\.\d+)?)(%|pp)")
_LEVEL = re.compile(r"(\w+)([<>])(\d+(?:\.\d+)?)(%?)")
_CHANGES = {"samples_per_s": "samples_per_s:-5%", "data_wait_share": "data_wait_share:+3pp"}
_LEVELS = {"samples_per_s": "samples_per_s<800", "data_wait_share": "data_wait_share>20%"}
_FORMS = ", ".join([*_CHANGES.values(), *_LEVELS.values()])
_NOT_IN_BOTH = "not measured in both runs"
_NOTHING = "no config was measured"
_ONE_PROCESS = "one process"
LATER_FAILED = "every trial of the later version failed"
_ORDER: tuple[GateOutcome, ...] = ("failed", "inconclusive", "passed")
_MINUS, _EN_DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


def parse_gate(text: str, flag: str) -> Gate:
    """Parse one expression. Raises `UsageError`, which says what is wrong and what is expected."""
    compact = "".join(text.split())
    change, level = _CHANGE.fullmatch(compact), _LEVEL.fullmatch(compact)
    found = change or level
    if found is None:
        raise UsageError(f"{flag} {text}: invalid; expected e.g. {_FORMS}")
    metric = _known(found[1], text, flag)
    share = metric == "data_wait_share"
    if change is not None:
        unit = "pp" if share else "%"
        if change[4] != unit:
            raise UsageError(f"{flag} {text}: a change of {metric} is in {unit}; expected e.g. {_CHANGES[metric]}")
        limit = _finite(f"{change[2]}{change[3]}", text, flag) / 100
        if abs(limit) >= 1 and (share or limit < 0):
            raise UsageError(f"{flag} {text}: {metric} cannot change by so much; expected e.g. {_CHANGES[metric]}")
        return Gate(text=compact, metric=metric, kind="change", limit=limit)
    assert level is not None
    if bool(level[4]) != share:
        form = "a percentage" if share else "a number without %"
        raise UsageError(f"{flag} {text}: {metric} takes {form}; expected e.g. {_LEVELS[metric]}")
    limit = _finite(level[3], text, flag) / (100 if share else 1)
    if share and limit >= 1:
        raise UsageError(f"{flag} {text}: {metric} is at most 100%; expected e.g. {_LEVELS[metric]}")
    return Gate(text=compact, metric=metric, kind="below" if level[2] == "<" else "above", limit=limit)


def _finite(number: str, text: str, flag: str) -> float:
    """Parse a number of the expression. Raises `UsageError` if it overflows to infinity."""
    if isfinite(found := float(number)):
        return found
    raise UsageError(f"{flag} {text[:40]}...: number out of range; expected e.g. {_FORMS}")


def _known(metric: str, text: str, flag: str) -> str:
    if metric in METRICS:
        return metric
    near = get_close_matches(metric, METRICS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"expected {' or '.join(METRICS)}"
    raise UsageError(f"{flag} {text}: unknown metric {metric}; {hint}")


def check_waits(gates: Sequence[Gate], consumer: str) -> None:
    """Raise `UsageError` for a gate on data wait without a consumer, since only an empty loop would wait."""
    for gate in gates:
        if gate.metric == "data_wait_share" and not consumer_kind(consumer).consumes:
            flag = "--warn-if" if gate.warns_only else "--fail-if"
            do = "set consumer.kind to auto, or use a gate on samples_per_s"
            raise UsageError(f"{flag} {gate.text}: data wait needs a consumer, and consumer.kind is {consumer}; {do}")


def judge_gate(gate: Gate, run: RunRecord, comparison: Comparison | None) -> GateResult:
    """Judge a run by a gate; `comparison` is with the reference run, `None` without one."""
    if gate.kind == "change":
        return _judge_change(gate, comparison, run)
    own = _level_of(run)
    if own is None:
        return GateResult(gate=gate, outcome="inconclusive", said=_NOTHING)
    found = own.samples_per_s if gate.metric == "samples_per_s" else own.data_wait_share
    if found is None:
        return GateResult(gate=gate, outcome="inconclusive", said=_no_wait(own))
    judged = _judge_level(gate, found)
    if comparison is not None:
        judged = _with_failures(judged, replace(comparison, config=own.config))
    return replace(judged, said=f"{judged.said} with {config_name(own.config)}")


def _no_wait(found: Configuration) -> str:
    why = found.not_measured.get("data_wait_share")
    return f"data wait of {config_name(found.config)} was not measured{f': {why}' if why else ''}"


def may_be_decided(gate: Gate, comparison: Comparison) -> bool:
    """Whether more rounds of the later run could decide the gate; not if the earlier run alone is too noisy.

    More rounds move the estimate by at most the uncertainty of the later run. They do not undo a failed trial.
    """
    own = _own_change(gate, comparison)
    if own is None or own.change is None or _fails_only_later(_failed_of(comparison)):
        return False
    before, after = (_half_width(found, gate.metric) for found in (own.before, own.after))
    if before is None or after is None:
        return before is not None and own.after is not None  # one process has no interval, two have
    rate = gate.metric == "samples_per_s"
    distance = log(own.change.est / (1 + gate.limit)) if rate else own.change.est - gate.limit
    return abs(distance) + after > before


def _half_width(found: Interval | None, metric: str) -> float | None:
    """Half the width of an interval; for a rate, of its logarithm."""
    if found is None or found.lo is None or found.hi is None:
        return None
    return (log(found.hi / found.lo) if metric == "samples_per_s" else found.hi - found.lo) / 2


def judge_sides(gate: Gate, comparison: Comparison) -> GateResult:
    """Judge two versions in each configuration: one failure fails the gate, and all must pass for it to pass."""
    configs = list({tuple(change.config.items()): change.config for change in comparison.metrics}.values())
    found = [judge_one(gate, replace(comparison, config=config)) for config in configs]
    if not found:
        return GateResult(gate=gate, outcome="inconclusive", said=_NOTHING)
    if len(found) > 1:
        broken = [change.config for change in comparison.metrics if _is_broken(change)]
        failed = GateResult(gate=gate, outcome="failed", said=LATER_FAILED)
        found = [failed if config in broken else one for config, one in zip(configs, found, strict=True)]
    place, worst = min(enumerate(found), key=lambda one: _ORDER.index(one[1].outcome))
    return replace(worst, said=f"{worst.said} with {config_name(configs[place])}") if len(found) > 1 else worst


def _is_broken(change: MetricChange) -> bool:
    """Whether only the later version fails to load."""
    return change.before is not None and change.not_measured.get("after") == LATER_FAILED


def fails(gate: Gate, comparison: Comparison) -> bool:
    """Whether the gate makes the command fail."""
    return not gate.warns_only and judge_sides(gate, comparison).outcome == "failed"


def judge_one(gate: Gate, comparison: Comparison) -> GateResult:
    """Judge two versions in the configuration of their comparison; a level gate applies to the later version."""
    if gate.kind == "change":
        return _judge_change(gate, comparison)
    own = _own_change(gate, comparison)
    if own is None or own.after is None:
        return GateResult(gate=gate, outcome="inconclusive", said=own.not_measured["after"] if own else _NOTHING)
    return _with_failures(_judge_level(gate, own.after), comparison)


def _with_failures(result: GateResult, comparison: Comparison) -> GateResult:
    """The result, corrected if trials of the later run or version failed next to completed ones."""
    found = _failed_of(comparison)
    if found is None or result.outcome == "failed" or not only_some_failed(found.after):
        return result
    if not found.more_often and not _fails_only_later(found):
        return result
    words = failures_in_words(found)
    said = result.said if words in result.said else f"{result.said}; {words}"
    return replace(result, outcome="failed" if found.more_often else "inconclusive", said=said)


def _failed_of(comparison: Comparison) -> FailedTrials | None:
    """The failed trials of the configuration of the comparison."""
    return next((found for found in comparison.failed_trials if found.config == comparison.config), None)


def _fails_only_later(found: FailedTrials | None) -> bool:
    return found is not None and only_some_failed(found.after) and not found.before.failed


def _own_change(gate: Gate, comparison: Comparison) -> MetricChange | None:
    """The change of the gate's metric in the configuration of the comparison."""
    own = (c for c in comparison.metrics if c.metric == gate.metric and c.config == comparison.config)
    return next(own, None)


def _judge_level(gate: Gate, found: Interval) -> GateResult:
    outcome = _side(found, gate.limit, fails_below=gate.kind == "below")
    return GateResult(gate=gate, outcome=outcome, said=_level_in_words(gate, found))


def _judge_change(gate: Gate, comparison: Comparison | None, run: RunRecord | None = None) -> GateResult:
    """Judge a gate on a change; `run` is the later one of two saved runs."""
    if comparison is None:
        return GateResult(gate=gate, outcome="inconclusive", said="no reference run; add --baseline RUN")
    if comparison.outcome == "incomparable":
        return GateResult(gate=gate, outcome="inconclusive", said=comparison.headline)
    own = _own_change(gate, comparison)
    if own is not None and fails_only_after(own):
        return GateResult(gate=gate, outcome="failed", said=f"{AFTER_FAILED} with {config_name(own.config)}")
    if own is None or own.change is None:
        reason = own.not_measured.get("change") if own else None
        return GateResult(gate=gate, outcome="inconclusive", said=reason or _NOT_IN_BOTH)
    none = 1.0 if gate.metric == "samples_per_s" else 0.0
    falls = copysign(1, gate.limit) < 0  # -0% forbids every fall, so the sign of zero counts
    outcome = _side(own.change, none + gate.limit, fails_below=falls)
    hidden = f"; {CAPPED}" if outcome == "passed" and run is not None and is_hidden(own, run) else ""
    said = f"{_change_in_words(gate, own.change, own.not_measured.get('change', _ONE_PROCESS))}{hidden}"
    return _with_failures(GateResult(gate=gate, outcome=outcome, said=said), comparison)


def _side(found: Interval, limit: float, *, fails_below: bool) -> GateOutcome:
    """The side of the threshold on which the entire interval lies; inconclusive without an interval."""
    if found.lo is None or found.hi is None:
        return "inconclusive"
    if fails_below:
        return "failed" if found.hi < limit else "passed" if found.lo >= limit else "inconclusive"
    return "failed" if found.lo > limit else "passed" if found.hi <= limit else "inconclusive"


def _level_of(run: RunRecord) -> Configuration | None:
    """The best configuration, or else the one with the highest estimate."""
    ranked = sorted((c for c in run.configurations if c.rank and c.samples_per_s), key=lambda c: c.rank or 0)
    named = [c for c in ranked if run.best is not None and c.config == run.best.config] or ranked
    return next(iter(named), None)


def _level_in_words(gate: Gate, found: Interval) -> str:
    if gate.metric == "samples_per_s":
        est, between = _figures(found, gate.limit, places=0)
        return f"{est} samples/s{between}"
    est, between = _figures(found.scaled(100), gate.limit * 100, unit="%")
    return f"data wait {est}%{between}"


def _change_in_words(gate: Gate, change: Interval, why_no_interval: str) -> str:
    """The change as it is judged, with its interval."""
    limit = gate.limit * 100
    if gate.metric == "samples_per_s":
        percent = change.scaled(100, -100)
        est, between = _figures(percent, limit, signed=True, unit="%", why_no_interval=why_no_interval)
        return f"samples/s changed by {est}%{between}"
    est, between = _figures(change.scaled(100), limit, signed=True, why_no_interval=why_no_interval)
    return f"data wait changed by {est} percentage points{between}"


def _figures(
    found: Interval,
    limit: float,
    *,
    places: int | None = None,
    signed: bool = False,
    unit: str = "",
    why_no_interval: str = _ONE_PROCESS,
) -> tuple[str, str]:
    """The estimate, and its bounds in parentheses: `-10`, ` (-12 to -8%)`, with a minus sign.

    Uses two digits, or more while rounding would print a bound equal to the threshold.
    """
    bounds = [bound for bound in (found.lo, found.hi) if bound is not None]
    fewest = places if places is not None else 0 if abs(found.est) >= 10 else 1
    hidden = [bound for bound in bounds if not isclose(bound, limit, rel_tol=1e-9)]
    digits = next((n for n in range(fewest, 3) if all(round(b, n) != round(limit, n) for b in hidden)), 3)
    est = f"{found.est:{'+' if signed else ''},.{digits}f}".replace("-", _MINUS)
    if len(bounds) < 2:
        return est, f" (no interval: {why_no_interval})"
    low, high = (f"{bound:,.{digits}f}".replace("-", _MINUS) for bound in bounds)
    return est, f" ({low}{' to ' if bounds[0] < 0 else _EN_DASH}{high}{unit})"
