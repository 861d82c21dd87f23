"""Differences between two runs or two versions, and `--fail-if` gates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loaderbench.records.words import Config, Interval, Outcome, Reasons, Side


@dataclass(frozen=True, kw_only=True)
class MetricChange:
    """One metric of one configuration in two runs.

    `change` is the ratio after/before for `samples_per_s`, and the difference after - before for `data_wait_share`. If
    `change` has an estimate without an interval, `not_measured` gives the reason under `change`.
    """

    config: Config
    metric: str
    before: Interval | None
    after: Interval | None
    change: Interval | None
    outcome: Outcome
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FailureCount:
    """How many of a configuration's trials failed in one run or version, and the kinds of failure."""

    failed: int
    trials: int
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FailedTrials:
    """The failed trials of one configuration in two runs or versions.

    `more_often` is true if trials fail significantly more often in the later one.
    """

    config: Config
    before: FailureCount
    after: FailureCount
    more_often: bool


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The differences between two runs.

    `outcome` and `headline` describe `samples_per_s` of `config`, the best configuration that both runs measured.
    `reasons` say why there is no clear outcome, or what casts doubt on the outcome. `failed_trials` has the
    configurations with a failed trial.
    """

    outcome: Outcome
    headline: str
    metrics: tuple[MetricChange, ...]
    reasons: tuple[str, ...]
    config: Config | None = None
    failed_trials: tuple[FailedTrials, ...] = ()


GateOutcome = Literal["passed", "failed", "inconclusive"]


@dataclass(frozen=True)
class Gate:
    """One expression of `--fail-if` or `--warn-if`.

    `limit` depends on `kind`. For `change`, it is a share of the earlier samples/s (-0.05 is -5%), or a difference of
    shares (0.03 is +3 percentage points). For `below` and `above`, it is the level itself, in samples/s or as a share.
    """

    text: str
    metric: str
    kind: Literal["change", "below", "above"]
    limit: float
    warns_only: bool = False


@dataclass(frozen=True)
class GateResult:
    """The outcome of one gate.

    `said` is the measured value with its interval, or the reason why the gate is inconclusive.
    """

    gate: Gate
    outcome: GateOutcome
    said: str


@dataclass(frozen=True, kw_only=True)
class Version:
    """One of two versions of a user's code or suite.

    `name` is as the user wrote it, or `working tree`. `commit` is the git revision, or `None` outside of git.
    `has_changes` is true if the working tree has uncommitted changes. `suite_file` is relative to the version's folder.
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
    """Two versions measured in interleaved pairs, and the points at which they were compared.

    `looks` are the numbers of pairs at which each configuration is compared. They follow from the budget and the time
    of a pair, never from rates. If the budget ends between two of them, the pairs by then take the place of the next
    one. `configs` are the configurations measured for both versions, in pairs of one round. `ended` says why no further
    pair was measured.
    """

    versions: tuple[Version, Version]
    configs: tuple[Config, ...]
    gates: tuple[Gate, ...]
    looks: tuple[int, ...]
    budget_s: float
    ended: str
