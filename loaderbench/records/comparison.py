"""What changed from one run or version to another, and the limits of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loaderbench.records.words import Config, Interval, Outcome, Reasons, Side


@dataclass(frozen=True, kw_only=True)
class MetricChange:
    """One metric of one configuration in two runs.

    `change` is the ratio after/before for `samples_per_s`, and the difference after - before for `data_wait_share`.
    Where it has an estimate without an interval, `not_measured` has the reason under its name.
    """

    config: Config
    metric: str
    before: Interval | None
    after: Interval | None
    change: Interval | None
    outcome: Outcome
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What changed from one run to another. `reasons` say why there is no clear outcome, and what casts doubt on one.

    The outcome and the headline are those of `samples_per_s` in the best configuration that both runs measured, which
    is `config`.
    """

    outcome: Outcome
    headline: str
    metrics: tuple[MetricChange, ...]
    reasons: tuple[str, ...]
    config: Config | None = None


GateOutcome = Literal["passed", "failed", "inconclusive"]


@dataclass(frozen=True)
class Gate:
    """One expression of `--fail-if` or `--warn-if`.

    `limit` of a `change` is a share of the earlier samples/s (-0.05 is -5%), or a difference of shares (0.03 is +3
    percentage points). Of `below` and `above`, it is the level itself, in samples/s or as a share.
    """

    text: str
    metric: str
    kind: Literal["change", "below", "above"]
    limit: float
    warns_only: bool = False


@dataclass(frozen=True)
class GateResult:
    """Whether the run passed; `said` is what was measured, with its interval, or why it is inconclusive."""

    gate: Gate
    outcome: GateOutcome
    said: str


@dataclass(frozen=True, kw_only=True)
class Version:
    """One of two versions of a user's code or suite.

    `name` is as the user wrote it, or `working tree`. `commit` is the revision it is of, and `None` outside of git.
    `has_changes`: there are changes that no commit holds. `suite_file` is relative to the version's folder.
    """

    side: Side
    name: str
    suite_file: str
    commit: str | None = None
    has_changes: bool = False

    def __str__(self) -> str:
        of_commit = self.commit is not None and not self.commit.startswith(self.name)
        return f"{self.name} ({(self.commit or '')[:7]}{'+' * self.has_changes})" if of_commit else self.name


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """Two versions that were measured in interleaved pairs, and when they were compared.

    `looks` are the numbers of pairs at which they were, planned without regard to measured rates. The last one
    may come sooner or later, when the budget ends. `configs` were measured of both, in pairs of one round.
    `ended` says why no further pair was measured.
    """

    versions: tuple[Version, Version]
    configs: tuple[Config, ...]
    gates: tuple[Gate, ...]
    looks: tuple[int, ...]
    budget_s: float
    ended: str
