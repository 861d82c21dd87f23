"""Fixes that may gain more than the result: undecided ones, and gains that there was no time to combine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loaderbench.records import Config, Interval, RunRecord, Tried, Verification
from loaderbench.report import numbers
from loaderbench.search.selection import NOTHING_LEFT
from loaderbench.statistics.configurations import PRACTICAL_TIE
from loaderbench.statistics.intervals import at_another_time


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

    @property
    def why_none(self) -> str:
        """The reason for keeping the current arguments."""
        ratio, pairs = self.ratio, pairs_of(self.pairs)
        gain = numbers.gain(ratio.est, ratio.lo, ratio.hi).main
        setting = arguments({**self.over, **self.change})
        than = f" than {arguments(self.over)}" if self.over else ""
        if self.is_gain:
            return (
                f"{setting} was faster{than} ({gain}, {pairs}), but was not compared with the current arguments often "
                "enough; use a longer budget"
            )
        return f"{setting} may be faster{than} ({gain} after {pairs}), undecided; use a longer budget"

    @property
    def in_detail(self) -> str:
        """One line about a fix that is not part of the result."""
        ratio = self.ratio
        gain = numbers.gain(ratio.est, ratio.lo, ratio.hi, f"vs {arguments(self.over) or 'current arguments'}").text
        setting = f"{arguments(self.change)}: {gain}, {pairs_of(self.pairs)}"
        if self.is_gain:
            return f"Also faster: {setting}. A longer budget may combine it with other changes"
        return f"May be faster: {setting}, undecided. Use a longer budget to find out"


def arguments(found: Config) -> str:
    """Text such as `num_workers=2, in_order=False`."""
    return ", ".join(f"{name}={value!r}" for name, value in found.items())


def pairs_of(count: int) -> str:
    """Text such as `1 pair` or `3 pairs`."""
    return "1 pair" if count == 1 else f"{count} pairs"


def open_fixes(run: RunRecord, answer: Config) -> tuple[OpenFix, ...]:
    """Fixes that this configuration does not include, largest ratio first."""
    found = run.verification
    if found is None:
        return ()
    fixes = [
        _open_fix(tried, run.plan.baseline)
        for tried in _promising_tries(found)
        if not _is_settled(tried, found, answer)
    ]
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


def _open_fix(tried: Tried, baseline: Config) -> OpenFix:
    judgement = tried.judgement
    assert judgement is not None
    assert judgement.ratio is not None
    return OpenFix(
        change=tried.change,
        over={axis: value for axis, value in tried.against.items() if baseline.get(axis) != value},
        ratio=at_another_time(judgement.ratio),
        pairs=judgement.pairs,
        is_gain=judgement.answer == "gain",
    )
