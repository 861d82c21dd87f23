"""A whole run: its trials and what else was measured, and what is concluded. `RunRecord` is `run.json`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from loaderbench.records.comparison import SideBySide
from loaderbench.records.conclusions import Conclusions
from loaderbench.records.demand import AssumedDemand
from loaderbench.records.environment import DatasetSummary, Environment, PlanSummary
from loaderbench.records.trial import Trial
from loaderbench.records.verification import Verification
from loaderbench.records.words import SCHEMA_VERSION, Config, Interval, Kind, Reasons, Role


@dataclass(frozen=True, kw_only=True)
class FormatCopy:
    """A complete copy of `samples` files, which hold `source_bytes`.

    It has `files` with `stored_bytes`, and took `write_s` to write, over all runs that wrote a part of it. `checksum`
    is BLAKE2b over the names and the bytes of its files.
    """

    format: str
    samples: int
    source_bytes: int
    files: int
    stored_bytes: int
    write_s: float
    checksum: str


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


@dataclass(frozen=True, kw_only=True)
class OnlyRank:
    """Which of how many `ranks` it is, and the `command` that records all of them."""

    rank: int
    ranks: int
    command: str

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.ranks}"


@dataclass(frozen=True, kw_only=True)
class Parity:
    """The first samples of a loader, compared with those of another over the same files in the same order.

    `refused` says what differs so much that their rates cannot be compared; empty where nothing does. `difference` is
    the mean absolute difference of values, as a share of their standard deviation. It is `None` where a random
    transform draws others each time.
    """

    loader: str
    against: str
    samples: int | None = None
    difference: float | None = None
    refused: str = ""
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run as it was measured: one list of trials, each with its role, and what they were made under.

    `consumer` is the kind that `auto` became; `loop` is a user's own. `kind`: a sweep of a suite, a profile of a
    user's own loop, or `ab`. The last has two versions in turns (`side_by_side`) and describes the later.
    `suite_file` is the suite as it was named to the command, and `overrides` what its flags set in it, such as
    `measure.rounds`.
    `cpu_percent_before` is what other programs used of all CPUs before the first trial.
    `assumed_demand` is `None` where no GPU was emulated, and in runs of earlier versions (`consumers.demand_of`).
    `in_progress`: the run is not finished, and its conclusions are provisional.
    `dropped` are the configurations that an adaptive sweep measured in no further round. `parity` holds the batches of
    each value of the axis `loader` against those of the first. `copies` are the formats that trials read.
    `left_out` says why isolation runs (by name, or under `isolation` all of them), `final` or `verification` were not
    measured.
    It has stages that are not free under `bottlenecks.decode`, or under `bottlenecks` all of them, and other workers
    under `worker_settings.num_workers=1`. `only_rank`: of a distributed training, this rank alone was recorded.
    """

    name: str
    suite: dict[str, Any]
    environment: Environment
    dataset: DatasetSummary
    plan: PlanSummary
    started_at: str
    finished_at: str
    complete: bool
    consumer: str
    trials: tuple[Trial, ...]
    kind: Kind = "sweep"
    cpu_percent_before: float | None = None
    verification: Verification | None = None
    left_out: Reasons = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    loaderbench_version: str = ""
    suite_file: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    assumed_demand: AssumedDemand | None = None
    in_progress: bool = False
    dropped: tuple[Dropped, ...] = ()
    final: Final | None = None
    side_by_side: SideBySide | None = None
    parity: tuple[Parity, ...] = ()
    copies: tuple[FormatCopy, ...] = ()
    only_rank: OnlyRank | None = None

    @property
    def sweep(self) -> tuple[Trial, ...]:
        """The trials that configurations are made of: of the sweep, of the later version, or the one of a profile."""
        later = (trial for trial in self._of("sweep", "profile", "ab") if trial.role != "ab" or trial.side == "after")
        return tuple(later)

    @property
    def ab_trials(self) -> tuple[Trial, ...]:
        """Those of two versions, measured in interleaved pairs."""
        return self._of("ab")

    @property
    def twins(self) -> tuple[Trial, ...]:
        """The second half of the A/A pair."""
        return self._of("twin")

    @property
    def finals(self) -> tuple[Trial, ...]:
        """Trials of the final: the best is chosen by them and by the sweep."""
        return self._of("final")

    @property
    def isolation_trials(self) -> tuple[Trial, ...]:
        """Those with parts of a configuration taken away."""
        return self._of("isolation")

    @property
    def remedy_trials(self) -> tuple[Trial, ...]:
        """Trials of remedies, including those of the unchanged configuration and the baseline they are paired with."""
        return self._of("remedy")

    @property
    def freed_trials(self) -> tuple[Trial, ...]:
        """Those with a stage that costs nothing, and those they are compared with."""
        return self._of("freed")

    @property
    def rank_trials(self) -> tuple[Trial, ...]:
        """One trial for each rank of a distributed job, by rank; empty for anything else."""
        found = [trial for trial in self._of("profile", "rank") if trial.rank is not None]
        return tuple(sorted(found, key=lambda trial: trial.rank or 0)) if len(found) > 1 else ()

    def _of(self, *roles: Role) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.role in roles)

    @property
    def loader(self) -> dict[str, Any]:
        """The fixed arguments of the loader."""
        return self.section("loader")

    def section(self, name: str) -> dict[str, Any]:
        """A section of the suite; empty where there is none, as in runs of earlier versions."""
        found = self.suite.get(name)
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, kw_only=True)
class RunRecord(Conclusions, Measured):
    """`run.json`: everything a run measured and everything concluded from it. The report is a drawing of it."""

    schema_version: int = SCHEMA_VERSION

    @classmethod
    def of(cls, measured: Measured, conclusions: Conclusions) -> RunRecord:
        """Put the two together."""
        own = {one.name: getattr(measured, one.name) for one in fields(Measured)}
        return cls(**own, **{one.name: getattr(conclusions, one.name) for one in fields(Conclusions)})
