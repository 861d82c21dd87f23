"""Plan what to measure from a suite and a machine: configurations, in rounds of shuffled order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from loaderbench.consumers import NOTHING, consumer_of
from loaderbench.datasets import DatasetKind
from loaderbench.diagnosis.isolation import MOST_ROUNDS, why_not
from loaderbench.loaders import AUTO, AXIS, DEFAULT_BACKEND, LoaderBackend, backend_of, backends_of, own_arguments
from loaderbench.ranks import RANKS, process_count
from loaderbench.records import Config, IsolationName, PlannedTrial, PlanSummary, Reasons, Scalar, config_name, varying
from loaderbench.statistics.intervals import FEWEST_ROUNDS
from loaderbench.suite import Strategy, Suite
from loaderbench.suite.axes import why_unreadable

FIRST_CHILD_S = 7.0  # the fork server imports torch and torchvision once
TRIAL_START_S = 0.9  # fork, workers, first batch, end
RANKS_START_S = 1.0  # extra for ranks: torch's launcher, and their process group
DEVICE_START_S = 3.0  # extra on a GPU: CUDA, the model, its first kernels. A guess, not measured on a device
WARMUP_SHARE = 0.7  # share of the steady state, as measured on two cores with batches of 32 to 128
VERIFY_SECONDS = 0.6  # steady state of a fix's trial: more pairs are worth more than longer trials
BEFORE_SLICES_SECONDS = 0.2  # steady state of that trial alone, to time its stages, before its time slices
VERIFY_S = 65.0  # for trying fixes, if the suite has no budget
MOST_VERIFY_S = 480.0  # if each trial starts CUDA
FINAL_S = 10.0  # for the final of a sweep, if its trials are short
FINAL_TRIALS = 4  # the final has time for this many trials, however long they take
FINAL_SHARE = 0.2  # at most this share of the sweep's time
SWEEP_SHARE = 0.6  # share of a budget for an adaptive sweep; the rest is for isolation runs and fixes
ROUND_SHARE = 0.5  # share of an adaptive sweep's remaining time for a round before one that can name a winner
FREED_S = 40.0  # for trials that make one stage free each
FREED_SECONDS = 0.5  # total time slices of a free-stage trial
FREED_TRIAL_S = 1.7  # complete free-stage trial, with its start and its kept samples
FREED_ROUNDS = 3  # minimum rounds of free-stage trials
ISOLATION_SHARE = 0.5  # share of a trial's steady state; isolation runs are compared with each other, not ranked
LEAST_ISOLATION_S = 0.5
LEFT_OUT = "dataset"
"""The key in `collapsed` for why configurations are left out. It is not an axis: each axis keeps its values."""


@dataclass(frozen=True)
class Plan:
    """The configurations of a run in grid order, including the baseline."""

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
    freed_s: float = 0.0
    verify_s: float = 0.0
    verify_trial_s: float = 0.0
    verify_steady_s: float = 0.0
    start_s: float = 0.0
    strategy: Strategy = "grid"
    budget_s: float | None = None

    @property
    def estimated_s(self) -> float:
        """Estimated duration of the run, without free stages and fixes, which are unknown in advance."""
        return FIRST_CHILD_S + self.trials * self.trial_s + self.isolation_trials * self.isolation_s

    @property
    def estimated_with_fixes_s(self) -> float:
        """Estimated duration of the run, if the final, free stages and fixes take their maximum time."""
        return self.estimated_s + self.final_s + self.freed_s + self.verify_s

    def with_start(self, extra_s: float) -> Plan:
        """A plan for consumers that take `extra_s` longer to start than expected; `extra_s` can be 0.

        Each trial then takes longer, and fixes get proportionally more time, up to a limit.
        """
        longer = self.verify_trial_s + extra_s
        return replace(
            self,
            trial_s=self.trial_s + extra_s,
            isolation_s=self.isolation_s + extra_s,
            verify_trial_s=longer,
            verify_s=max(self.verify_s, min(MOST_VERIFY_S, self.verify_s * longer / self.verify_trial_s)),
            start_s=self.start_s + extra_s,
        )

    @property
    def is_adaptive(self) -> bool:
        """Whether rounds drop configurations that can no longer be best."""
        return self.strategy == "adaptive"

    @property
    def fewest_rounds(self) -> int:
        """Rounds that a configuration needs to win, or all if fewer are planned."""
        return min(self.rounds, FEWEST_ROUNDS)

    @property
    def sweep_s(self) -> float | None:
        """Seconds of the budget for an adaptive sweep; `None` without a budget, or for a grid."""
        if self.budget_s is None or not self.is_adaptive:
            return None
        return SWEEP_SHARE * self.budget_s if self.verify_s or self.isolation_runs else self.budget_s

    @property
    def first_look(self) -> int:
        """Approximate number of configurations that the first round has time for."""
        count = len(self.configurations)
        if self.sweep_s is None:
            return count
        room = (self.sweep_s - FIRST_CHILD_S) / self.trial_s
        share = ROUND_SHARE if self.fewest_rounds > 1 else 1.0
        return max(1, min(count, int(share * (room - self.with_twins))))

    @property
    def final_s(self) -> float:
        """Seconds for the final; 0 if there are too few rounds to name finalists."""
        if not self.with_twins:
            return 0.0
        return min(FINAL_SHARE * self.trials * self.trial_s, max(FINAL_S, FINAL_TRIALS * self.verify_trial_s))

    def trial(self, config: Config, round_number: int) -> PlannedTrial:
        """Name the trial of a configuration in a round."""
        name = f"r{round_number}-c{self.configurations.index(config):02d}"
        return PlannedTrial(id=name, role="sweep", config=config, round=round_number)

    def label(self, config: Config) -> str:
        """Name a configuration by the axes that vary, and by what a fix added."""
        added = {name: value for name, value in config.items() if name not in self.axes}
        return config_name({**varying(config, self.axes), **added} or config)

    def twin(self, round_number: int) -> PlannedTrial:
        """Name the trial that measures the baseline a second time, as if it were another configuration."""
        return PlannedTrial(id=f"r{round_number}-aa", role="twin", config=self.baseline, round=round_number)

    def final(self, config: Config, round_number: int) -> PlannedTrial:
        """Name the trial of a finalist in a round of the final."""
        name = f"f{round_number}-c{self.configurations.index(config):02d}"
        return PlannedTrial(id=name, role="final", config=config, round=round_number)

    def isolation(self, name: IsolationName, config: Config, round_number: int) -> PlannedTrial:
        """Name the isolation run of a configuration."""
        return PlannedTrial(
            id=f"r{round_number}-{name}", role="isolation", config=config, round=round_number, isolation=name
        )

    @property
    def isolation_rounds(self) -> int:
        """Rounds of each isolation run."""
        return min(self.rounds, MOST_ROUNDS)

    @property
    def isolation_trials(self) -> int:
        """Maximum number of isolation trials after the sweep; the configuration decides how many."""
        return self.isolation_runs * self.isolation_rounds

    @property
    def trials(self) -> int:
        """Maximum number of trials of the sweep, including twins."""
        return self.rounds * (len(self.configurations) + self.with_twins)

    @property
    def with_twins(self) -> bool:
        """Whether an A/A pair is measured: only with enough rounds for an interval."""
        return self.rounds >= FEWEST_ROUNDS

    def summary(self) -> PlanSummary:
        """The part of the plan that a run saves."""
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


def make_plan(suite: Suite, *, cpus_allotted: float, accelerator: bool, consumer: str = NOTHING) -> Plan:
    """Plan the sweep: the values of every axis, without values that torch rejects or that make no difference.

    `consumer` is a resolved kind, which determines the isolation runs.
    """
    backends = backends_of(suite.loader, suite.sweep)
    shares = [cpus_allotted / ranks for ranks in rank_counts(suite)]
    axes = {axis: _values(axis, given, backends, shares) for axis, given in suite.sweep.items()}
    if suite.sweep.get(AXIS) == AUTO:
        axes[AXIS] = [name for name, found in backends.items() if _is_automatic(found, suite.dataset)]
    collapsed: Reasons = {} if accelerator else _drop_idle(axes, backends)
    grid = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    grid = [config for config in grid if _fits_ranks(config, suite, backends, cpus_allotted)]
    apart = {why for config in grid if (why := suite.dataset.with_axes(config).why_not_together())}
    grid = [config for config in grid if not suite.dataset.with_axes(config).why_not_together()]
    configurations = _unique([_normalized(config, suite) for config in grid])
    if len(configurations) < len(grid):
        several = {axis for axis, values in axes.items() if len(values) > 1}
        collapsed |= {axis: why for axis, why in _without_effect(backends).items() if axis in several}
    if apart:
        collapsed |= {LEFT_OUT: "; ".join(sorted(apart))}
    fixed = {axis: axes[axis][0] for axis in collapsed if len(axes.get(axis, ())) == 1}
    baseline, why = _baseline(suite, axes, fixed=fixed)
    if suite.dataset.with_axes(baseline).why_not_together():
        baseline, why = configurations[0], "the first valid config"
    configurations = _unique([*configurations, baseline])
    isolation_runs = sum(not reason for reason in isolation_left_out(suite, consumer, accelerator).values())
    start_s = _start_s(suite, consumer, accelerator=accelerator) + (RANKS_START_S if RANKS in axes else 0.0)
    trial_s, isolation_s = (start_s + _trial_s(s) for s in (suite.measure.seconds, isolation_seconds(suite)))
    verify_trial_s = _trial_s(before_slices_seconds(suite)) + verify_seconds(suite)
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
        freed_s=FREED_S if suite.measure.verify and not suite.dataset.is_of_script else 0.0,
        verify_s=_fix_time_s(start_s + verify_trial_s, verify_trial_s) if suite.measure.verify else 0.0,
        verify_trial_s=start_s + verify_trial_s,
        verify_steady_s=before_slices_seconds(suite) + verify_seconds(suite),
        start_s=start_s,
        strategy=suite.measure.strategy,
        budget_s=suite.measure.budget,
    )


def _start_s(suite: Suite, consumer: str, *, accelerator: bool) -> float:
    """Seconds before the consumer's first batch, in each trial."""
    kind = consumer_of(suite.consumer, consumer)
    return (DEVICE_START_S if accelerator and kind.may_use_device else 0.0) + kind.start_s


def _fix_time_s(trial_s: float, without_start_s: float) -> float:
    """Time for trying fixes: enough for as many trials as without starting a consumer, up to a limit."""
    return min(MOST_VERIFY_S, VERIFY_S * trial_s / without_start_s)


def isolation_left_out(
    suite: Suite, consumer: str, accelerator: bool, too_short: str = "", config: Config | None = None
) -> dict[IsolationName, str]:
    """The reason against each isolation run of a configuration, or of any; empty if it is to be measured."""
    cache, no_files = suite.measure.cache, suite.dataset.why_no_files or _why_no_page_cache(suite, config)
    on_gpu = accelerator and consumer_of(suite.consumer, consumer).may_use_device
    return why_not(consumer=consumer, cache=cache, no_files=no_files, accelerator=on_gpu, too_short=too_short)


def _why_no_page_cache(suite: Suite, config: Config | None) -> str:
    """Why the page cache does not matter to a configuration, or to all: files come from a store; else empty."""
    given = suite.sweep.get(suite.dataset.store_axis, suite.dataset.store)
    stores = given if isinstance(given, list) else [given]
    if config is not None:
        stores = [suite.dataset.with_axes(config).store]
    return "" if None in stores else "files come from an object store, and not through the page cache"


def _is_automatic(backend: LoaderBackend, dataset: DatasetKind) -> bool:
    """Whether `auto` includes the backend: a store may lack the shards of a loader that was not named explicitly."""
    return not why_unreadable(backend, dataset) and not (backend.reads_stores and dataset.store is not None)


def isolation_seconds(suite: Suite) -> float:
    """Seconds of steady state of an isolation run."""
    return max(LEAST_ISOLATION_S, ISOLATION_SHARE * suite.measure.seconds)


def verify_seconds(suite: Suite) -> float:
    """Seconds of steady state of a fix's trial."""
    return min(VERIFY_SECONDS, suite.measure.seconds)


def before_slices_seconds(suite: Suite) -> float:
    """Seconds of steady state of a fix's trial before it shares time slices with the others of its round."""
    return min(BEFORE_SLICES_SECONDS, verify_seconds(suite))


def _trial_s(seconds: float) -> float:
    return TRIAL_START_S + seconds * (1 + WARMUP_SHARE)


def rank_counts(suite: Suite) -> list[int]:
    """The numbers of ranks that trials have; 1 without that axis."""
    given = suite.sweep.get(RANKS, 1)
    return [int(ranks) for ranks in (given if isinstance(given, list) else [given])]


def _fits_ranks(config: Config, suite: Suite, backends: Mapping[str, LoaderBackend], cpus_allotted: float) -> bool:
    """Whether each `auto` value is meant for this number of ranks, since ranks share the CPUs."""
    cpus = cpus_allotted / process_count(config)
    automatic = [axis for axis in config if axis != AXIS and suite.sweep.get(axis) == "auto"]
    return all(config[axis] in _values(axis, "auto", backends, [cpus]) for axis in automatic)


def _values(axis: str, given: object, backends: Mapping[str, LoaderBackend], shares: Sequence[float]) -> list[Scalar]:
    """The values of an axis; `shares` are the CPUs per rank, one for each number of ranks."""
    if given == "auto":
        for backend in backends.values():
            if axis in backend.auto:
                found = {value: None for cpus in shares for value in backend.auto[axis](cpus)}
                return sorted(found, key=lambda value: float(value or 0))
    values: list[Scalar] = given if isinstance(given, list) else [given]  # type: ignore[list-item]
    return [value for index, value in enumerate(values) if value not in values[:index]]


def _drop_idle(axes: dict[str, list[Scalar]], backends: Mapping[str, LoaderBackend]) -> Reasons:
    """Keep a single value of each axis that has no effect without a GPU, and return the reasons."""
    reasons: Reasons = {}
    for backend in backends.values():
        for axis, (value, why) in backend.idle_without_accelerator.items():
            if axes.get(axis, [value]) != [value]:
                axes[axis], reasons[axis] = [value], why
    return reasons


def _without_effect(backends: Mapping[str, LoaderBackend]) -> Reasons:
    """Axes whose values sometimes make no difference, with the reasons: of one backend, or of several."""
    reasons: dict[str, list[str]] = {}
    for backend in backends.values():
        for axis, why in backend.without_effect.items():
            reasons.setdefault(axis, []).append(why)
    for axis in {axis for backend in backends.values() for axis in backend.axes}:
        without = [name for name, backend in backends.items() if axis not in backend.axes]
        if without:
            why = f"no effect with {AXIS}={' or '.join(without)}: measured once"
            reasons.setdefault(axis, []).append(why)
    return {axis: "; ".join(why) for axis, why in reasons.items()}


def _normalized(config: Config, suite: Suite) -> Config:
    """Map configurations that are equal to their backend to one; arguments of other backends are null."""
    arguments = {**suite.loader, **config}
    own = own_arguments(arguments, backends_of(suite.loader, suite.sweep).values()).keys() | {AXIS}
    config = {axis: value if axis in own else None for axis, value in config.items()}
    backend, dataset = backend_of(arguments), suite.dataset
    ignored = dataset.decoding_axes if backend.decodes else dataset.storing_axes if backend.format else ()
    read = {dataset.store_axis} if backend.reads_stores and suite.sweep.get(AXIS) != AUTO else set()
    config |= {axis: getattr(dataset, axis) for axis in ignored if axis in config.keys() - read}
    is_known = not dataset.takes_any_axis or "num_workers" in arguments  # otherwise the target can choose the workers
    return backend.normalized(config, suite.loader) if is_known else config


def _baseline(suite: Suite, axes: dict[str, list[Scalar]], fixed: Config) -> tuple[Config, str]:
    today: Config = {AXIS: DEFAULT_BACKEND}
    for backend in backends_of(suite.loader, suite.sweep).values():
        today = {**backend.library_defaults, **today}
    config: Config = {}
    for axis, values in axes.items():
        if axis in fixed:
            config[axis] = fixed[axis]
        elif axis in suite.baseline:
            config[axis] = suite.baseline[axis]
        elif axis == RANKS:
            config[axis] = max(values, key=lambda value: int(value or 0))
        elif axis == "batch_size":
            config[axis] = min(values, key=lambda value: (value is None, isinstance(value, str), value or 0))
        else:
            config[axis] = today[axis] if today.get(axis, values[0]) in values and axis in today else values[0]
    config = _normalized(config, suite)
    return config, _why_baseline(suite, config)


def _why_baseline(suite: Suite, config: Config) -> str:
    if suite.dataset.is_of_script:
        return "the script's current arguments"
    if suite.baseline:
        return "set in the suite"
    smallest = "the smallest batch size of the sweep" if "batch_size" in config else ""
    named = _whose_values(suite, config)
    return f"{named} with {smallest}" if named and smallest else named or smallest or "the only config"


def _whose_values(suite: Suite, config: Config) -> str:
    """Which axes have the library's defaults; empty if the suite fixes all arguments of its loader."""
    backend = backend_of({**suite.loader, **config})
    apart = (AXIS, RANKS, "batch_size")
    own = {axis: value for axis, value in config.items() if axis not in apart and value is not None}
    others = [axis for axis, value in own.items() if backend.library_defaults.get(axis) != value]
    defaults = f"{backend.display_name}'s defaults" if backend.display_name else "the loader's defaults"
    if not others:
        return defaults if own or not suite.loader.keys() - {AXIS, "batch_size"} else ""
    if len(others) == len(own):
        return "the first value of each axis"
    return f"{defaults}, and the first value of each other axis"


def _unique(configs: list[Config]) -> tuple[Config, ...]:
    return tuple({tuple(config.items()): config for config in configs}.values())
