"""A complete run: its trials, its other measurements and its conclusions. `RunRecord` is `run.json`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from loaderbench.records.comparison import SideBySide
from loaderbench.records.conclusions import Conclusions
from loaderbench.records.demand import AssumedDemand
from loaderbench.records.environment import DatasetSummary, Environment, PlanSummary
from loaderbench.records.trial import Trial
from loaderbench.records.verification import Verification
from loaderbench.records.words import OWN_LOADER, SCHEMA_VERSION, Config, Interval, Kind, Reasons, Role


@dataclass(frozen=True, kw_only=True)
class FormatCopy:
    """A complete copy of a dataset in another format.

    The copy holds `samples` files of `source_bytes` in `files` files of `stored_bytes`. `write_s` is the time to write
    it, over all runs that wrote a part. `checksum` is BLAKE2b over the names and contents of its files.
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
    """A configuration that an adaptive sweep stopped measuring, and why, in a clause.

    `rounds` is the number of rounds that include it, 0 if it was never measured. `ratio` is its samples/s divided by
    that of `than`, the fastest at that time, with the interval that excludes 1. The interval is wider than 95%, because
    the error rate is divided among all looks and competitors. `ratio` and `than` are `None` if the reason was another
    one.
    """

    config: Config
    rounds: int
    why: str
    than: Config | None = None
    ratio: Interval | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Final:
    """Further rounds in time slices of the finalists: configurations that the sweep did not exclude as best at 95%.

    Their trials have the role `final`. `ended` says why there were no more rounds, in a clause.
    """

    finalists: tuple[Config, ...]
    rounds: int
    ended: str


@dataclass(frozen=True, kw_only=True)
class OnlyRank:
    """The only recorded rank out of `ranks`, and the `command` that records all of them."""

    rank: int
    ranks: int
    command: str

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.ranks}"


@dataclass(frozen=True, kw_only=True)
class Parity:
    """The first samples of a loader, compared with those of another loader over the same files in the same order.

    `refused` names a difference too large to compare their rates, and is empty if there is none. `difference` is the
    mean absolute difference of values, as a share of their standard deviation. It is `None` if a random transform draws
    new values each time.
    """

    loader: str
    against: str
    samples: int | None = None
    difference: float | None = None
    refused: str = ""
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The measurements of a run: one list of trials, each with its role, and the conditions they ran under.

    `kind` is a sweep of a suite, a profile of a user's own loop, or `ab`. An `ab` run has two interleaved versions
    (`side_by_side`), and its other fields describe the later version. `consumer` is the kind that `auto` resolved to,
    or `loop` for a user's own loop. `suite_file` is the path that the command received, and `overrides` the suite keys
    that its flags set, such as `measure.rounds`.

    `cpu_percent_before` is the CPU use of other programs before the first trial, in percent of the available CPUs.
    `assumed_demand` is `None` if no GPU was emulated, and in runs of earlier versions (`consumers.demand_of`).
    `in_progress` is true while the run is not finished and its conclusions are provisional.

    `dropped` are the configurations that an adaptive sweep stopped measuring. `parity` compares the batches of each
    value of the axis `loader` with the batches of the first value. `copies` are the dataset copies in other formats
    that trials read. `only_rank` is set if just one rank of a distributed training was recorded.

    `left_out` gives the reason for each measurement that was skipped. Its keys are `final`, `verification`, `isolation`
    (all isolation runs) or the name of one isolation run. The key `bottlenecks` covers all freed stages, and
    `bottlenecks.decode` one of them. `worker_settings.num_workers=1` is one setting of workers.
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
        """The trials that configurations are computed from: of the sweep, of the later version, or of a profile."""
        later = (trial for trial in self._of("sweep", "profile", "ab") if trial.role != "ab" or trial.side == "after")
        return tuple(later)

    @property
    def ab_trials(self) -> tuple[Trial, ...]:
        """Trials of two versions, measured in interleaved pairs."""
        return self._of("ab")

    @property
    def sweep_or_ab_trials(self) -> tuple[Trial, ...]:
        """The trials of `sweep`, with those of the earlier version of `ab`, in the order of measurement."""
        return self.ab_trials or self.sweep

    @property
    def twins(self) -> tuple[Trial, ...]:
        """Trials of the second half of the A/A pair."""
        return self._of("twin")

    @property
    def finals(self) -> tuple[Trial, ...]:
        """Trials of the final. They choose the best configuration together with the sweep."""
        return self._of("final")

    @property
    def isolation_trials(self) -> tuple[Trial, ...]:
        """Trials with parts of a configuration removed."""
        return self._of("isolation")

    @property
    def remedy_trials(self) -> tuple[Trial, ...]:
        """Trials of remedies, and of the unchanged configuration and the baseline that they are paired with."""
        return self._of("remedy")

    @property
    def freed_trials(self) -> tuple[Trial, ...]:
        """Trials with a free stage or other workers, and the trials that they are compared with."""
        return self._of("freed")

    @property
    def rank_trials(self) -> tuple[Trial, ...]:
        """One trial for each rank of a distributed job, by rank; empty for other runs."""
        trials = [trial for trial in self._of("profile", "rank") if trial.rank is not None]
        return tuple(sorted(trials, key=lambda trial: trial.rank or 0)) if len(trials) > 1 else ()

    def _of(self, *roles: Role) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.role in roles)

    @property
    def loader(self) -> dict[str, Any]:
        """The fixed arguments of the loader, from the suite."""
        return self.section("loader")

    @property
    def is_of_script(self) -> bool:
        """Whether `tune` measured a script's loader, which `run` cannot do."""
        return self.section("dataset").get("target") == OWN_LOADER

    def section(self, name: str) -> dict[str, Any]:
        """A section of the suite; empty if it is missing, as in runs of earlier versions."""
        section = self.suite.get(name)
        return section if isinstance(section, dict) else {}


@dataclass(frozen=True, kw_only=True)
class RunRecord(Conclusions, Measured):
    """`run.json`: everything that a run measured and concluded. The report is generated from it."""

    schema_version: int = SCHEMA_VERSION

    @classmethod
    def of(cls, measured: Measured, conclusions: Conclusions) -> RunRecord:
        """Combine measurements and conclusions."""
        own = {one.name: getattr(measured, one.name) for one in fields(Measured)}
        return cls(**own, **{one.name: getattr(conclusions, one.name) for one in fields(Conclusions)})
