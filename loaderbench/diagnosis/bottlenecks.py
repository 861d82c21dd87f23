"""The gain of each stage if it were free: which stages can be tried, what their trials show, and what they decide.

This is causal profiling for data loading. Coz slows down all other threads to show what a faster line would gain
(Curtsinger and Berger, "Coz: Finding Code that Counts with Causal Profiling", SOSP 2015). A loader stage is a function
of its input, so it can be made free for real, by replaying its earlier results.

Measured gains decide the stage of a cause. The rules decide its wording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import get_args

from loaderbench.diagnosis.cause import Cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.failures import failure_in_words
from loaderbench.diagnosis.limits import limit_of_cpus, limit_of_transport
from loaderbench.diagnosis.requirements import holds
from loaderbench.diagnosis.wording import in_main_process, in_percent, limit_of_work, stage_name
from loaderbench.records import Bottleneck, Evidence, FreedPart, Interval, Limit, Reasons, Stage, StageCost, Trial
from loaderbench.records.words import NO_WORKER_PROCESSES
from loaderbench.statistics.configurations import Round, rates_of
from loaderbench.statistics.intervals import (
    excludes_one,
    is_above_one,
    percent_gain,
    rate_interval,
    ratio_interval,
    times,
)

NOT_MEASURED = "no free-stage trial ran"
NOT_SIGNIFICANT, NO_GAIN = "not significant", "no gain"
NAMED_SHARE = 0.05
"""Minimum share of a sample's time for a named transform to be tried separately."""

BLOCKED_READS = 0.05
"""Share of a sample's time; if reads take more, files are not re-read, which would find them in the page cache."""

_IN_SAMPLE: tuple[Stage, ...] = ("read", "decode", "transform")
_STAGES: dict[str, Stage] = {stage: stage for stage in get_args(Stage)}
_OWN_CODE = "only functions that __getitem__ calls can be replayed"
_UNSEEN = "no call of this stage was seen"
Shares = dict[str, float]


def shares_of_sample(trials: Sequence[Trial]) -> tuple[Shares, Shares, float]:
    """Shares of a sample's wall time by stage and by stage part, and its seconds; all empty if none was timed."""
    timed = [trial for trial in trials if trial.status == "completed" and trial.stages]
    if not timed:
        return {}, {}, 0.0
    stages_s = _means_s([trial.stages or {} for trial in timed])
    parts_s = _means_s([trial.stage_parts or {} for trial in timed])
    sample_s = sum(stages_s.values())
    if sample_s <= 0:
        return {}, {}, 0.0
    shares, parts = ({name: found_s / sample_s for name, found_s in each.items()} for each in (stages_s, parts_s))
    return shares, parts, sample_s


def _means_s(costs: Sequence[Mapping[str, StageCost]]) -> dict[str, float]:
    names = {name for found in costs for name in found}
    return {name: fmean(found[name].wall_s or 0.0 for found in costs if name in found) for name in names}


def stages_to_free(trials: Sequence[Trial], workers: int | None) -> tuple[list[str], Reasons]:
    """Stages to make free, most promising first, and why others are not, from the sweep's trials of a configuration."""
    shares, parts, _ = shares_of_sample(trials)
    if not shares:
        return [], {"bottlenecks": "no stage was timed in the sweep"}
    found = [stage for stage in _IN_SAMPLE if shares.get(stage)]
    reasons = {f"bottlenecks.{stage}": _UNSEEN for stage in _IN_SAMPLE if stage not in found}
    if "decode" in found or "transform" in found:
        reasons["bottlenecks.sample"] = _OWN_CODE
    else:
        found.append("sample")
    found = sorted([*found, "collate"], key=lambda stage: -shares.get(stage, 0.0))
    if workers == 0 or (workers is None and all(map(in_main_process, trials))):
        reasons["bottlenecks.transport"] = NO_WORKER_PROCESSES
    else:
        found.insert(1, "transport")
    named = sorted((name for name, share in parts.items() if share >= NAMED_SHARE), key=lambda name: -parts[name])
    named = [name for name in named if name.startswith("transform/")]
    return [*found, *(named if len(parts) > 1 and "transform" in found else ())], reasons


def describe_bottlenecks(trials: Sequence[Trial], left_out: Reasons) -> tuple[tuple[Bottleneck, ...], Reasons]:
    """The gain of each stage that was made free, largest first, and why other stages have none."""
    own = {name: why for name, why in left_out.items() if name.partition(".")[0] == "bottlenecks"}
    if not trials:
        return (), {"bottlenecks": own.get("bottlenecks", NOT_MEASURED)}
    gains = {name: _gain(name, trials) for name in dict.fromkeys(trial.freed for trial in trials if trial.freed)}
    measured = {name: found for name, found in gains.items() if found is not None}
    reasons = {f"bottlenecks.{name}": _why_not(name, trials) for name in gains if name not in measured}
    found = [
        Bottleneck(
            stage=_STAGES[name],
            samples_per_s_if_free=rate,
            gain_if_free=gain,
            parts=_parts(name, measured, trials),
            trials=_ids(name, trials),
        )
        for name, (rate, gain) in measured.items()
        if name in _STAGES
    ]
    whole = own.pop("bottlenecks", NOT_MEASURED)
    reasons = {**own, **reasons, **({} if found else {"bottlenecks": whole})}
    return tuple(sorted(found, key=lambda one: -one.gain_if_free.est)), reasons


def _parts(
    stage: str, measured: Mapping[str, tuple[Interval, Interval]], trials: Sequence[Trial]
) -> tuple[FreedPart, ...]:
    found = [
        FreedPart(name=name.partition("/")[2], samples_per_s_if_free=rate, gain_if_free=gain, trials=_ids(name, trials))
        for name, (rate, gain) in measured.items()
        if name.startswith(f"{stage}/")
    ]
    return tuple(sorted(found, key=lambda one: -one.gain_if_free.est))


def _gain(name: str, trials: Sequence[Trial]) -> tuple[Interval, Interval] | None:
    """The stage's rate and its ratio to the unchanged loader; `None` if no round has both."""
    freed, unchanged = _rates(name, trials), _rates(None, trials)
    ratio = ratio_interval(freed, unchanged)
    paired = [rate for found, rate in freed.items() if found in unchanged]
    return (rate_interval(paired), ratio) if ratio is not None else None


def _rates(name: str | None, trials: Iterable[Trial]) -> dict[Round, float]:
    return rates_of(trial for trial in trials if trial.freed == name)


def _ids(name: str, trials: Iterable[Trial]) -> tuple[str, ...]:
    return tuple(trial.id for trial in trials if trial.freed == name)


def _why_not(name: str, trials: Sequence[Trial]) -> str:
    failure = next((trial.failure for trial in trials if trial.freed == name and trial.failure), None)
    if failure is None:
        return "never measured in the same round as the unmodified loader"
    return failure_in_words(failure)


def gain_in_words(ratio: Interval) -> str:
    """`+84% (76-93%)` with an en dash, `2.3x (2.1-2.4x)` from twofold on, `not significant` or `no gain`.

    No stage has a negative cost, so a loss is the cost of replaying it.
    """
    if ratio.lo is None or ratio.hi is None:
        return f"{percent_gain(ratio)} (1 round)"
    if not excludes_one(ratio):
        return NOT_SIGNIFICANT
    if ratio.est < 1:
        return NO_GAIN
    return times(ratio) if ratio.est >= 2 else percent_gain(ratio)


def bottlenecks_in_words(found: Sequence[Bottleneck]) -> tuple[Evidence, ...]:
    """A line for each stage with a gain: `If decode were free: +84% (76 to 93%)`, and one line for all others.

    Stages measured in one round are left out if others have more rounds. If none has, only the largest gain is shown:
    all gains share the noise of that round, and a small one may be nothing else.
    """
    if not found:
        return ()
    shown = [one for one in found if one.gain_if_free.lo is not None] or found[:1]
    gains = {stage_name(one.stage): gain_in_words(one.gain_if_free) for one in shown}
    others = [name for name, gain in gains.items() if gain in (NOT_SIGNIFICANT, NO_GAIN)]
    lines = [Evidence("free", f"If {name} were free", gain) for name, gain in gains.items() if name not in others]
    return (*lines, *([Evidence("free", "No clear gain if free", ", ".join(others))] if others else []))


_STAGE_INDEPENDENT: tuple[Limit, ...] = ("cpu", "workers", "quota", "oversubscription", "neighbors")
"""Limits that do not depend on the stage."""

_SAMPLE: Stage = "sample"
"""Free as a unit, `sample` includes every stage of a sample, so its gain cannot be less than any of theirs."""


def with_measured(cause: Cause | None, facts: Facts | None, found: Sequence[Bottleneck]) -> Cause | None:
    """The cause, or one about the stage that gains significantly more if free."""
    if cause is None or facts is None or not found:
        return cause
    named = cause.read_inside or cause.stage
    own = next((one for one in found if one.stage == named), None)
    rivals = [one for one in found if _may_replace(one.stage, named, cause.limit)]
    if own is None:
        return cause
    top = next((one for one in rivals if _gains(one) and _gains_more(one, own)), None)
    if top is not None:
        return _measured_cause(top, own, cause, facts)
    return replace(cause, is_measured=_gains(own) and all(_gains_more(own, one) for one in rivals if one is not own))


def _gains(one: Bottleneck) -> bool:
    return is_above_one(one.gain_if_free)


def _may_replace(stage: Stage, named: Stage, limit: Limit) -> bool:
    """Whether a stage can replace the named one. Shared memory pages are filled during collate: one cause, not two."""
    if stage == _SAMPLE and named in ("read", "decode", "transform"):
        return False
    return not (stage == "collate" and named == "transport" and limit == "memory")


def _gains_more(one: Bottleneck, other: Bottleneck) -> bool:
    """Whether the gain's interval is entirely above that of the other stage."""
    lo, hi = one.gain_if_free.lo, other.gain_if_free.hi
    return lo is not None and hi is not None and lo > hi


def _measured_cause(top: Bottleneck, own: Bottleneck, cause: Cause, facts: Facts) -> Cause:
    """The cause for the measured stage; the rules' finding for another stage becomes evidence against it."""
    limit = _limit_of(top.stage, cause, facts)
    gained, instead = (gain_in_words(one.gain_if_free) for one in (top, own))
    measured = f"gain if free: {stage_name(top.stage)} {gained}, {stage_name(own.stage)} {instead}"
    held = limit_of_work(limit, facts) if limit in ("cpu", "workers", "neighbors") else _in_words(limit)
    return replace(
        cause,
        stage=top.stage,
        limit=limit,
        why=Evidence("cause", "Measured", f"{measured}; measurement takes precedence over the rules"),
        clause=f"{held}; {stage_name(top.stage)} gains most if free (+{in_percent(top.gain_if_free.est - 1)})",
        named=None,
        read_inside=None,
        is_measured=True,
        overruled=f"the rules alone name {stage_name(own.stage)} ({cause.why})",
    )


def _limit_of(stage: Stage, cause: Cause, facts: Facts) -> Limit:
    """The rules' limit if it applies to all stages, or else this stage's; the rules' if the facts exclude both."""
    own = limit_of_transport(facts) if stage == "transport" else limit_of_cpus(facts)
    asked = (cause.limit, own) if cause.limit in _STAGE_INDEPENDENT else (own,)
    return next((limit for limit in asked if holds(limit, stage, facts)), cause.limit)


def _in_words(limit: Limit) -> str:
    words = {"quota": "CPU quota limits the loader", "oversubscription": "threads compete for CPUs"}
    return words.get(limit, limit.replace("_", " "))
