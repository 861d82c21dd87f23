"""Combines free-stage trials with the rules: measured gains decide the stage of a cause, the rules its wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loaderbench.diagnosis.bottlenecks import gain_in_words
from loaderbench.diagnosis.cause import Cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import limit_of_cpus, limit_of_transport
from loaderbench.diagnosis.requirements import holds
from loaderbench.diagnosis.wording import in_percent, limit_of_work, stage_name
from loaderbench.records import Bottleneck, Evidence, Limit, Stage
from loaderbench.statistics.intervals import is_above_one

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
