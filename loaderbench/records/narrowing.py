"""How a sweep was narrowed down to its best: configurations that got no more rounds, and the final of those left."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Config, Interval, Reasons


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A configuration that an adaptive sweep measured in no further round, and why, in a clause.

    `rounds` is how many rounds hold it, 0 for one that was not measured. `ratio` is its samples/s over those of
    `than`, the fastest at that time, with the interval that excludes 1. It is wider than 95%, because each look
    and each competitor takes its share of the error. Both are `None` where another reason decided.
    """

    config: Config
    rounds: int
    why: str
    than: Config | None = None
    ratio: Interval | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Final:
    """Further rounds of the finalists, in time slices: those that the sweep did not exclude as best at 95%.

    Its trials are those of the run with the role `final`. `ended` says why there were no more rounds, in a clause.
    """

    finalists: tuple[Config, ...]
    rounds: int
    ended: str
