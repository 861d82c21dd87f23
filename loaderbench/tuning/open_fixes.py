"""Fixes that may gain more than an answer holds: undecided ones, and gains that there was no time to combine."""

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
    """The ratio that `change` has shown on top of `over`, the arguments that differ from the present ones, if any.

    `is_gain`: it was measured. Else it is undecided after so many pairs.
    """

    change: Config
    over: Config
    ratio: Interval
    pairs: int
    is_gain: bool

    @property
    def why_none(self) -> str:
        """The reason for keeping the present arguments."""
        ratio, pairs = self.ratio, pairs_of(self.pairs)
        gain = numbers.gain(ratio.est, ratio.lo, ratio.hi).main
        said = arguments({**self.over, **self.change})
        than = f" than {arguments(self.over)}" if self.over else ""
        if self.is_gain:
            return (
                f"{said} was faster{than} ({gain}, {pairs}), but was not compared with the current arguments often "
                "enough; use a longer budget"
            )
        return f"{said} may be faster{than} ({gain} after {pairs}), undecided; use a longer budget"

    @property
    def in_detail(self) -> str:
        """One line for what is not in the answer."""
        ratio = self.ratio
        gain = numbers.gain(ratio.est, ratio.lo, ratio.hi, f"vs {arguments(self.over) or 'current arguments'}").text
        said = f"{arguments(self.change)}: {gain}, {pairs_of(self.pairs)}"
        if self.is_gain:
            return f"Also faster: {said}. A longer budget may combine it with other changes"
        return f"May be faster: {said}, undecided. Use a longer budget to find out"


def arguments(found: Config) -> str:
    """`num_workers=2, in_order=False`."""
    return ", ".join(f"{name}={value!r}" for name, value in found.items())


def pairs_of(count: int) -> str:
    """`1 pair`, `3 pairs`."""
    return "1 pair" if count == 1 else f"{count} pairs"


def open_fixes(run: RunRecord, answer: Config) -> tuple[OpenFix, ...]:
    """Those that this configuration does not hold, the largest ratio first."""
    found = run.verification
    if found is None:
        return ()
    fixes = [_open(tried, run.plan.baseline) for tried in _hopeful(found) if not _is_settled(tried, found, answer)]
    return tuple(sorted(fixes, key=lambda fix: -fix.ratio.est))


def _hopeful(found: Verification) -> Iterator[Tried]:
    """The last try of each fix, on top of the most others, where that was a gain or may be one."""
    last = {tried.id: tried for tried in found.tried if tried.judgement and tried.judgement.ratio}
    for tried in last.values():
        judgement = tried.judgement
        assert judgement is not None
        assert judgement.ratio is not None
        may_gain = judgement.answer == "undecided" and judgement.ratio.est > 1 + PRACTICAL_TIE
        if judgement.answer == "gain" or may_gain:
            yield tried


def _is_settled(tried: Tried, found: Verification, answer: Config) -> bool:
    """Whether the answer holds it, or another value of it, or the cause that called for it is gone."""
    held = [other.change for other in found.accepted if other.change.items() <= answer.items()]
    axes = {axis for change in held for axis in change}
    is_gone = bool(held) and found.ended == NOTHING_LEFT and tried.against != found.config
    return is_gone or bool(axes & tried.change.keys()) or tried.change.items() <= answer.items()


def _open(tried: Tried, baseline: Config) -> OpenFix:
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
