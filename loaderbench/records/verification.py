"""Tried fixes: the change, the configuration it was applied to, and the trials that measure its gain."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Answer, Config, Interval, Reasons

NOTHING_LEFT = "no more fixes for the remaining cause"
"""Why trying fixes ended, if each one that the last cause called for was tried."""


@dataclass(frozen=True)
class Candidate:
    """A fix to try. `estimate` is the expected ratio of samples/s, changed over unchanged.

    `effort` for the user: 0 is an argument, 1 code, 2 other samples or another order, 3 a copy of the data. Candidates
    with `first` are tried before all others, regardless of their estimate.
    """

    id: str
    change: Config
    estimate: float | None = None
    effort: int = 1
    first: bool = False


@dataclass(frozen=True)
class Judgement:
    """The result of paired trials. `ratio` is samples/s, changed over unchanged, with its 95% interval.

    `ratio` is `None` if no round measured both.
    """

    answer: Answer
    ratio: Interval | None
    pairs: int
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class PixelChange:
    """How much the samples of two configurations differ: their PSNR in dB, or why there is none."""

    psnr_db: float | None
    why_not: str = ""

    @property
    def not_measured(self) -> Reasons:
        """The reason for a missing PSNR, for the `not_measured` of a record with `psnr_db`."""
        return {"psnr_db": self.why_not} if self.why_not else {}

    @property
    def psnr_in_words(self) -> str:
        """`PSNR 34 dB`, or `PSNR not measured`."""
        return "PSNR not measured" if self.psnr_db is None else f"PSNR {self.psnr_db:.0f} dB"


IDENTICAL = PixelChange(None, "identical")


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One fix, tried on top of the configuration `against`. `accepted` is true if the final configuration includes it.

    `judgement` is the result of its paired trials, `None` only while the run is in progress. `psnr_db` compares the
    samples with those of `against`. It is `None` if they are identical, or if `not_measured` gives a reason.
    """

    id: str
    change: Config
    against: Config
    accepted: bool
    estimate: float | None = None
    judgement: Judgement | None = None
    psnr_db: float | None = None
    not_measured: Reasons = field(default_factory=dict)

    @property
    def config(self) -> Config:
        """The changed configuration."""
        return {**self.against, **self.change}


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The tried fixes in order, from the `present` configuration to `config`, which has all accepted fixes.

    Its trials have the role `remedy` and are paired by round. `whole` compares `config` with the baseline, and
    `psnr_db` their samples. `ended` says why no more fixes were tried.
    """

    present: Config
    config: Config
    tried: tuple[Tried, ...]
    ended: str
    whole: Judgement | None = None
    psnr_db: float | None = None
    not_measured: Reasons = field(default_factory=dict)

    @property
    def accepted(self) -> tuple[Tried, ...]:
        """The accepted fixes."""
        return tuple(tried for tried in self.tried if tried.accepted)
