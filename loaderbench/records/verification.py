"""Fixes that were tried: what was changed, on top of what, and the trials that show what it gave."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Answer, Config, Interval, Reasons


@dataclass(frozen=True)
class Candidate:
    """A fix as a changed trial. `estimate` is the ratio of samples/s that is expected, changed over unchanged.

    `effort` for the user: 0 is an argument, 1 code, 2 other samples or another order, 3 a copy of the data.
    Those with `first` are tried before all others, and an estimate does not matter then.
    """

    id: str
    change: Config
    estimate: float | None = None
    effort: int = 1
    first: bool = False


@dataclass(frozen=True)
class Judgement:
    """`ratio`: samples/s, changed over unchanged, with its 95% interval; `None` if never measured in one round."""

    answer: Answer
    ratio: Interval | None
    pairs: int


@dataclass(frozen=True)
class PixelChange:
    """How much the samples of two configurations differ: their PSNR in dB, or why there is none."""

    psnr_db: float | None
    why_not: str = ""

    @property
    def not_measured(self) -> Reasons:
        """The reason, for a record that keeps `psnr_db`."""
        return {"psnr_db": self.why_not} if self.why_not else {}

    @property
    def psnr_in_words(self) -> str:
        """`PSNR 34 dB`, or `PSNR not measured`."""
        return "PSNR not measured" if self.psnr_db is None else f"PSNR {self.psnr_db:.0f} dB"


IDENTICAL = PixelChange(None, "identical")


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One fix on top of one configuration. `accepted`: it is part of the result.

    `judgement` is what its pairs of trials show; `None` only while the run is under way. `psnr_db` compares the
    samples with those of `against`; `None` where they are identical, or where `not_measured` says why it is unknown.
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
    """What was tried, in that order, from the `present` configuration to `config`, which holds all that was accepted.

    Its trials are those of the run with the role `remedy`, paired by their round. `whole` compares `config` with the
    baseline, `psnr_db` its samples with the baseline's. `ended` says why no more was tried.
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
        """Those that the last configuration holds."""
        return tuple(tried for tried in self.tried if tried.accepted)
