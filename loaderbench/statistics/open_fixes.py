"""Fixes that may gain more than the result: undecided ones, and gains that there was no time to combine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loaderbench.records import NOTHING_LEFT, Config, Interval, RunRecord, Tried, Verification
from loaderbench.statistics.configurations import PRACTICAL_TIE
from loaderbench.statistics.intervals import at_another_time, sd_between_times


@dataclass(frozen=True, kw_only=True)
class OpenFix:
    """The ratio that `change` reached on top of `over`, the arguments that differ from the current ones.

    `is_gain`: the ratio is a measured gain; otherwise, it is undecided after `pairs` pairs.
    """

    change: Config
    over: Config
    ratio: Interval
    pairs: int
    is_gain: bool


def open_fixes(run: RunRecord, answer: Config) -> tuple[OpenFix, ...]:
    """Fixes that this configuration does not include, largest ratio first."""
    found = run.verification
    if found is None:
        return ()
    fixes = [_open_fix(tried, run) for tried in _promising_tries(found) if not _is_settled(tried, found, answer)]
    return tuple(sorted(fixes, key=lambda fix: -fix.ratio.est))


def _promising_tries(found: Verification) -> Iterator[Tried]:
    """The last try of each fix, on top of most others, if it was a gain or may be one."""
    last = {tried.id: tried for tried in found.tried if tried.judgement and tried.judgement.ratio}
    for tried in last.values():
        judgement = tried.judgement
        assert judgement is not None
        assert judgement.ratio is not None
        may_gain = judgement.answer == "undecided" and judgement.ratio.est > 1 + PRACTICAL_TIE
        if judgement.answer == "gain" or may_gain:
            yield tried


def _is_settled(tried: Tried, found: Verification, answer: Config) -> bool:
    """Whether the result includes the fix or another value of it, or the cause that the fix addresses is gone."""
    held = [other.change for other in found.accepted if other.change.items() <= answer.items()]
    axes = {axis for change in held for axis in change}
    is_gone = bool(held) and found.ended == NOTHING_LEFT and tried.against != found.config
    return is_gone or bool(axes & tried.change.keys()) or tried.change.items() <= answer.items()


def _open_fix(tried: Tried, run: RunRecord) -> OpenFix:
    judgement = tried.judgement
    assert judgement is not None
    assert judgement.ratio is not None
    return OpenFix(
        change=tried.change,
        over={axis: value for axis, value in tried.against.items() if run.plan.baseline.get(axis) != value},
        ratio=at_another_time(judgement.ratio, judgement.pairs, sd_between_times(run.trials)),
        pairs=judgement.pairs,
        is_gain=judgement.answer == "gain",
    )
