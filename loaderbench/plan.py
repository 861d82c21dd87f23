"""From a suite and a machine to what will be measured: the configurations, in rounds of shuffled order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from loaderbench.diagnosis.isolation import MOST_ROUNDS, why_not
from loaderbench.records import Config, IsolationName, PlannedTrial, PlanSummary, Reasons, Scalar, config_label, varying
from loaderbench.statistics.intervals import FEWEST_ROUNDS
from loaderbench.suite import ImageFolder, Suite
from loaderbench.suite.arguments import NEEDS_WORKERS

FIRST_CHILD_S = 7.0  # the fork server imports torch and torchvision once
TRIAL_START_S = 0.9  # fork, workers, first batch, end
WARMUP_SHARE = 0.7  # of the steady state, seen on two cores with batches of 32 to 128
VERIFY_SECONDS = 1.0  # of a trial that tries a remedy: pairs say more than long trials do
BEFORE_SLICES_SECONDS = 0.2  # of it alone, in which its stages are timed, before its time slices
VERIFY_S = 120.0  # for trying remedies, where the suite has no budget
ISOLATION_SHARE = 0.5  # of a trial's steady state; an isolation run is compared with others of its kind, not ranked
LEAST_ISOLATION_S = 0.5

_NO_ACCELERATOR = "there is no accelerator, so that pinning memory does nothing; only false was measured"
_NO_WORKERS = "without workers torch refuses it, so that its values are one configuration where num_workers is 0"


@dataclass(frozen=True)
class Plan:
    """The configurations of a run in the order of the grid, the baseline among them."""

    axes: dict[str, list[Scalar]]
    configurations: tuple[Config, ...]
    baseline: Config
    baseline_why: str
    collapsed: Reasons
    rounds: int
    seed: int
    trial_s: float
    isolation_s: float = 0.0
    isolation_runs: int = 0
    verify_s: float = 0.0
    verify_trial_s: float = 0.0
    verify_steady_s: float = 0.0

    @property
    def estimated_s(self) -> float:
        """About how long the run will take, remedies aside: which are tried is not known before."""
        return FIRST_CHILD_S + self.trials * self.trial_s + self.isolation_trials * self.isolation_s

    def trial(self, config: Config, round_number: int) -> PlannedTrial:
        """Name the trial of a configuration in a round."""
        name = f"r{round_number}-c{self.configurations.index(config):02d}"
        return PlannedTrial(id=name, role="sweep", config=config, round=round_number)

    def label(self, config: Config) -> str:
        """Write a configuration by the axes that vary, and what a remedy has added."""
        added = {name: value for name, value in config.items() if name not in self.axes}
        return config_label({**varying(config, self.axes), **added} or config) or "the loader as it is"

    def twin(self, round_number: int) -> PlannedTrial:
        """Name the trial that measures the baseline again, as if it were another configuration."""
        return PlannedTrial(id=f"r{round_number}-aa", role="twin", config=self.baseline, round=round_number)

    def isolation(self, name: IsolationName, config: Config, round_number: int) -> PlannedTrial:
        """Name the trial of a configuration with parts of it taken away."""
        return PlannedTrial(
            id=f"r{round_number}-{name}", role="isolation", config=config, round=round_number, isolation=name
        )

    @property
    def isolation_rounds(self) -> int:
        """How often each isolation run is measured."""
        return min(self.rounds, MOST_ROUNDS)

    @property
    def isolation_trials(self) -> int:
        """How many isolation trials may follow those of the sweep; the configuration they are of decides."""
        return self.isolation_runs * self.isolation_rounds

    @property
    def trials(self) -> int:
        """How many trials the sweep has, twins included."""
        return self.rounds * (len(self.configurations) + self.with_twins)

    @property
    def with_twins(self) -> bool:
        """An A/A pair is measured when there are rounds enough for an interval."""
        return self.rounds >= FEWEST_ROUNDS

    def summary(self) -> PlanSummary:
        """What a run keeps of its plan."""
        count = len(self.configurations)
        return PlanSummary(
            self.axes,
            count,
            self.rounds,
            count * self.rounds,
            self.configurations,
            self.baseline,
            self.baseline_why,
            self.collapsed,
        )


def make_plan(suite: Suite, *, cpus_allotted: float, accelerator: bool, consumer: str = "none") -> Plan:
    """Lay out the sweep: values of every axis, what torch refuses normalised, what cannot differ collapsed.

    `consumer` is a resolved kind: it decides which isolation runs there are.
    """
    collapsed: Reasons = {}
    axes = {axis: _values(axis, given, cpus_allotted) for axis, given in suite.sweep.items()}
    if not accelerator and axes.get("pin_memory", [False]) != [False]:
        axes["pin_memory"] = [False]
        collapsed["pin_memory"] = _NO_ACCELERATOR
    grid = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    configurations = _unique([_without_workers(config, suite) for config in grid])
    if len(configurations) < len(grid):
        collapsed |= {axis: _NO_WORKERS for axis in axes if axis in NEEDS_WORKERS and len(axes[axis]) > 1}
    baseline, why = _baseline(suite, axes, fixed={axis: axes[axis][0] for axis in collapsed if len(axes[axis]) == 1})
    configurations = _unique([*configurations, baseline])
    isolation_runs = sum(not reason for reason in isolation_left_out(suite, consumer, accelerator).values())
    trial_s, isolation_s = _trial_s(suite.measure.seconds), _trial_s(isolation_seconds(suite))
    rounds, seed = suite.measure.rounds, suite.measure.seed
    return Plan(
        axes,
        configurations,
        baseline,
        why,
        collapsed,
        rounds,
        seed,
        trial_s,
        isolation_s,
        isolation_runs,
        verify_s=VERIFY_S if suite.measure.verify else 0.0,
        verify_trial_s=_trial_s(before_slices_seconds(suite)) + verify_seconds(suite),
        verify_steady_s=before_slices_seconds(suite) + verify_seconds(suite),
    )


def isolation_left_out(suite: Suite, consumer: str, accelerator: bool) -> dict[IsolationName, str]:
    """The reason against each isolation run, empty for those to be measured."""
    files = isinstance(suite.dataset, ImageFolder)
    return why_not(consumer=consumer, cache=suite.measure.cache, files=files, accelerator=accelerator)


def isolation_seconds(suite: Suite) -> float:
    """The steady state of an isolation run."""
    return max(LEAST_ISOLATION_S, ISOLATION_SHARE * suite.measure.seconds)


def verify_seconds(suite: Suite) -> float:
    """The steady state of a trial that tries a remedy."""
    return min(VERIFY_SECONDS, suite.measure.seconds)


def before_slices_seconds(suite: Suite) -> float:
    """The steady state of such a trial before it is measured in time slices with the others of its round."""
    return min(BEFORE_SLICES_SECONDS, verify_seconds(suite))


def _trial_s(seconds: float) -> float:
    return TRIAL_START_S + seconds * (1 + WARMUP_SHARE)


def worker_ladder(cpus_allotted: float) -> list[Scalar]:
    """Worker counts worth trying on so many CPUs: none, one, a quarter, half, all, and half as many again."""
    cpus = max(1, math.ceil(cpus_allotted))
    return [*sorted({0, 1, cpus // 4, cpus // 2, cpus, cpus + math.ceil(cpus / 2)})]


def _values(axis: str, given: object, cpus_allotted: float) -> list[Scalar]:
    if axis == "num_workers" and given == "auto":
        return worker_ladder(cpus_allotted)
    values: list[Scalar] = given if isinstance(given, list) else [given]  # type: ignore[list-item]
    return [value for index, value in enumerate(values) if value not in values[:index]]


def _without_workers(config: Config, suite: Suite) -> Config:
    if config.get("num_workers", suite.loader.get("num_workers", 0)) != 0:
        return config
    return {axis: NEEDS_WORKERS.get(axis, value) for axis, value in config.items()}


def _baseline(suite: Suite, axes: dict[str, list[Scalar]], fixed: Config) -> tuple[Config, str]:
    today: dict[str, Scalar] = {"num_workers": 0, "pin_memory": False}
    config: Config = {}
    for axis, values in axes.items():
        if axis in fixed:
            config[axis] = fixed[axis]
        elif axis in suite.baseline:
            config[axis] = suite.baseline[axis]
        elif axis == "batch_size":
            config[axis] = min(values, key=lambda value: (isinstance(value, str), value))
        else:
            config[axis] = today[axis] if today.get(axis, values[0]) in values and axis in today else values[0]
    why = "named by the suite" if suite.baseline else "torch's defaults with the smallest batch size of the sweep"
    return _without_workers(config, suite), why


def _unique(configs: list[Config]) -> tuple[Config, ...]:
    return tuple({tuple(config.items()): config for config in configs}.values())
