"""Guards a loader: whether a run may pass, by itself or beside an earlier one.

A gate reads `samples_per_s:-5%` (it may not fall by more than 5%), `data_wait_share:+3pp` (it may not rise by more
than 3 percentage points), or without an earlier run `samples_per_s<800` and `data_wait_share>20%`. What an interval
leaves open is inconclusive, and no gate turns noise into a failure.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from math import copysign

from loaderbench.errors import UsageError
from loaderbench.records import Comparison, Config, Gate, GateOutcome, GateResult, Interval, RunRecord, config_name

METRICS = ("samples_per_s", "data_wait_share")
_CHANGE = re.compile(r"(\w+):([+-])(\d+(?:\.\d+)?)(%|pp)")
_LEVEL = re.compile(r"(\w+)([<>])(\d+(?:\.\d+)?)(%?)")
_FORMS = "samples_per_s:-5%, data_wait_share:+3pp, samples_per_s<800 or data_wait_share>20%"


def parse_gate(text: str, flag: str) -> Gate:
    """Read one expression. Raises `UsageError`, which says what is wrong and what it could have been."""
    compact = "".join(text.split())
    change, level = _CHANGE.fullmatch(compact), _LEVEL.fullmatch(compact)
    found = change or level
    if found is None:
        raise UsageError(f"{flag} {text}: is no gate; write {_FORMS}")
    metric = _known(found[1], text, flag)
    share = metric == "data_wait_share"
    if change is not None:
        unit = "pp" if share else "%"
        if change[4] != unit:
            raise UsageError(f"{flag} {text}: a change of {metric} is given in {unit}, such as {metric}:+3{unit}")
        return Gate(text=compact, metric=metric, kind="change", limit=float(f"{change[2]}{change[3]}") / 100)
    assert level is not None
    if bool(level[4]) != share:
        raise UsageError(f"{flag} {text}: {metric} is {'a percentage: 20%' if share else 'a plain number: 800'}")
    limit = float(level[3]) / (100 if share else 1)
    return Gate(text=compact, metric=metric, kind="below" if level[2] == "<" else "above", limit=limit)


def _known(metric: str, text: str, flag: str) -> str:
    if metric in METRICS:
        return metric
    near = get_close_matches(metric, METRICS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {' and '.join(METRICS)}"
    raise UsageError(f"{flag} {text}: {metric} is no metric of a gate; {hint}")


def judge_gate(gate: Gate, run: RunRecord, comparison: Comparison | None) -> GateResult:
    """Hold a run to a gate; `comparison` is with the earlier run, where there is one."""
    if gate.kind == "change":
        return _judge_change(gate, comparison)
    config, found = _level_of(gate.metric, run)
    if config is None or found is None:
        return GateResult(gate=gate, outcome="inconclusive", said="no configuration was measured")
    where = config_name(config)
    said = f"{_shown(gate.metric, found)} with {where}"
    return GateResult(gate=gate, outcome=_side(found, gate.limit, fails_below=gate.kind == "below"), said=said)


def _judge_change(gate: Gate, comparison: Comparison | None) -> GateResult:
    if comparison is None:
        said = "there is no run to compare with: give --baseline"
        return GateResult(gate=gate, outcome="inconclusive", said=said)
    if comparison.outcome == "incomparable":
        return GateResult(gate=gate, outcome="inconclusive", said=comparison.headline)
    own = [c for c in comparison.metrics if c.metric == gate.metric and c.config == comparison.config]
    if not own or own[0].change is None:
        reason = own[0].not_measured.get("change") if own else "it was not measured in both"
        return GateResult(gate=gate, outcome="inconclusive", said=reason or "it was not measured in both")
    none = 1.0 if gate.metric == "samples_per_s" else 0.0
    falls = copysign(1, gate.limit) < 0  # -0% forbids every fall: the sign of its zero counts
    outcome = _side(own[0].change, none + gate.limit, fails_below=falls)
    return GateResult(gate=gate, outcome=outcome, said=_changed(gate.metric, own[0].change))


def _side(found: Interval, limit: float, *, fails_below: bool) -> GateOutcome:
    """On which side of the limit the whole interval lies; without an interval nothing is sure."""
    if found.lo is None or found.hi is None:
        return "inconclusive"
    if fails_below:
        return "failed" if found.hi < limit else "passed" if found.lo >= limit else "inconclusive"
    return "failed" if found.lo > limit else "passed" if found.hi <= limit else "inconclusive"


def _level_of(metric: str, run: RunRecord) -> tuple[Config | None, Interval | None]:
    """The metric of the best configuration, or of the one that looked fastest."""
    ranked = sorted((c for c in run.configurations if c.rank and c.samples_per_s), key=lambda c: c.rank or 0)
    named = [c for c in ranked if run.best is not None and c.config == run.best.config] or ranked
    if not named:
        return None, None
    return named[0].config, named[0].samples_per_s if metric == "samples_per_s" else named[0].data_wait_share


def _shown(metric: str, found: Interval) -> str:
    if metric == "samples_per_s":
        return f"{found.est:,.0f}{_between(found, ',.0f')} samples/s"
    return f"data wait share {found.est:.1%}{_between(found, '.1%')}"


def _changed(metric: str, change: Interval) -> str:
    """The change as it is judged, with its interval."""
    if metric == "samples_per_s":
        found = _scaled(change, 1, -1)
        return f"samples/s changed by {found.est:+.1%}{_between(found, '+.1%')}"
    points = _scaled(change, 100, 0)
    return f"data wait share changed by {points.est:+.1f}{_between(points, '+.1f')} percentage points"


def _between(found: Interval, form: str) -> str:
    if found.lo is None or found.hi is None:
        return " (no interval: one process)"
    return f" ({found.lo:{form}} to {found.hi:{form}})"


def _scaled(found: Interval, factor: float, added: float) -> Interval:
    low, high = (None if bound is None else bound * factor + added for bound in (found.lo, found.hi))
    return Interval(found.est * factor + added, low, high)
