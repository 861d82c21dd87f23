"""Conclusions about a run: configurations, the best one, the verdict, and fixes with their gains."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.comparison import Comparison, GateResult
from loaderbench.records.costs import (
    Bottleneck,
    Contention,
    EpochCost,
    GpuMemory,
    Isolation,
    Noise,
    Overhead,
    WorkerSetting,
)
from loaderbench.records.verdict import HostUse, Hotspot, Rank, Verdict
from loaderbench.records.verification import PixelChange
from loaderbench.records.words import Basis, Config, Interval, Reasons, Standing, config_label, config_name


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One point of the sweep, summarized over all its rounds as `records/metrics.py` defines.

    `metrics` holds the metrics without a field in this record, by id.
    """

    config: Config
    samples_per_s: Interval | None
    data_wait_share: Interval | None
    trials: tuple[str, ...]
    rank: int | None
    tied_with_best: bool
    time_to_first_batch_s: Interval | None = None
    cpu_percent_of_allotted: float | None = None
    rss_bytes: int | None = None
    pss_bytes: int | None = None
    shm_peak_bytes: int | None = None
    gpu_utilization_percent: float | None = None
    gpu_memory_used_bytes: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Best:
    """The cheapest of the configurations tied with the fastest.

    `gain` is the ratio of its samples/s to the baseline's.
    """

    config: Config
    samples_per_s: Interval
    data_wait_share: Interval | None
    ties: tuple[Config, ...]
    why_this_one: str
    gain: Interval | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The starting configuration of the sweep, the reference for gains.

    `ties` are the other fastest configurations, if the baseline is one of the fastest.
    """

    config: Config
    samples_per_s: Interval | None
    data_wait_share: Interval | None
    why_this_one: str
    ties: tuple[Config, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Samples/s if loading were free.

    `headspace` is the share of the time per batch that free loading would save (0 to 1). `samples_per_s_interval` is
    `None` unless the ceiling was measured in several rounds.
    """

    samples_per_s: float
    headspace: float
    basis: str
    samples_per_s_interval: Interval | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class Gain:
    """The ratio of a metric after a change to before it, with a 95% interval: 1.25 is 25% more.

    The interval covers a repeat of the comparison at another time. It is the prediction interval for the average of
    three other rounds, wider the more the machine's speed varied in this run. `metric` is `samples_per_s`. `lo` and
    `hi` are `None` if only one round was measured. `is_floor` is true if the consumer's target capped the rate after
    the change, so the gain is at least `est`.
    """

    metric: str
    est: float
    lo: float | None
    hi: float | None
    is_floor: bool = False


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A fix: a change of the loader, the code or the data, with its gain and its costs.

    `id` is the name of its page in docs/reference/fixes, and `title` is the action. `change` holds the axes that the
    fix sets; it is empty for a change of your own code.

    `status` is `open` (do it), `already_ok` (in place, not needed or no faster) or `not_checked` (undecided or not
    tried). `reason` says why the status is not `open`, or why the fix was not measured. `basis` is `measured`,
    `heuristic` (advice for this cause, without a gain) or `None`. `gain` is `None` if it was not measured. For both,
    `not_measured` has the reason.

    `against` is the configuration that the fix was tried on. If it is `None`, the gain is relative to the baseline.
    `before` and `after` are the two rates of a measured gain, in samples/s. `meets_target` is true if all of the
    interval of `after` is at or above the target, and `None` without a target. `evidence` has these rates in words, and
    `trials` the ids of the trials.

    `costs` are the costs of the fix, such as memory, and `caveat` is what the gain does not show. `pixels` says how
    much the change alters the pixels of samples; `None` if it is not known to alter any. `snippet` is a program with
    the change, and `snippet_yaml` is the change of a suite; each is `None` if there is none.
    """

    id: str
    title: str
    change: Config
    basis: Basis | None
    gain: Gain | None
    status: Standing
    costs: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    caveat: str | None = None
    snippet: str | None = None
    snippet_yaml: str | None = None
    reason: str | None = None
    against: Config | None = None
    before: Interval | None = None
    after: Interval | None = None
    meets_target: bool | None = None
    pixels: PixelChange | None = None
    not_measured: Reasons = field(default_factory=dict)

    @property
    def changes_pixels(self) -> str | None:
        """`changes pixels, PSNR 34 dB`, as a terminal prints it; `None` if the fix is not known to change any."""
        return None if self.pixels is None else f"changes pixels, {self.pixels.psnr_in_words}"


@dataclass(frozen=True, kw_only=True)
class TunedArguments:
    """Arguments that `tune` found to be faster than a script's current ones.

    `change` has the arguments of the `DataLoader` to set, and `worker_options` those that a function for its workers
    sets. `config` is the whole configuration. `gain` is the ratio of samples/s over `pairs` pairs of trials, and covers
    the same comparison at another time. `by_fixes`: fixes are part of it, measured without the emulated step.
    """

    change: Config
    worker_options: Config
    config: Config
    gain: Interval
    pairs: int
    by_fixes: bool


@dataclass(frozen=True, kw_only=True)
class Conclusions:
    """All conclusions that this version's rules draw from a run. They can be drawn again from the saved measurements.

    `warnings` are reasons to distrust the run, and lower the confidence of the verdict. `setup_notes` name what to
    change in the configuration or the machine, and leave the numbers as certain. `remarks` are notes about the results.

    `comparison` compares two versions, measured in interleaved pairs. `gates` are the results of `--fail-if` and
    `--warn-if`. `prediction` is reserved: this version predicts nothing.

    `tuned` are the arguments to use in a script that `tune` measured.

    `hotspots` are lines of code of the verdict's configuration, sorted by share of loading time, the largest first.
    `bottlenecks` are stages of the verdict's configuration, sorted by gain, the largest first. For a stage that is not
    among them, `not_measured` has the reason under a key such as `bottlenecks.decode`.

    `worker_settings` are other numbers of workers or threads for that configuration, measured in the same rounds. The
    list can be empty if the sweep covers all settings that matter. For settings that were not measured, `not_measured`
    has the reason under a key such as `worker_settings.num_workers=1`.

    In distributed training, `ranks` has one entry for each rank, and `verdict` is about the whole job. If the job uses
    several machines, `hosts` has one entry for each machine and `all_hosts` has the totals.
    """

    configurations: tuple[Configuration, ...]
    best: Best | None
    baseline: Baseline
    ceiling: Ceiling | None
    verdict: Verdict
    recommendations: tuple[Recommendation, ...]
    overhead: Overhead | None
    noise: Noise
    warnings: tuple[str, ...]
    setup_notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    epoch_costs: tuple[EpochCost, ...] = ()
    isolation: Isolation | None = None
    contention: tuple[Contention, ...] = ()
    gpu_memory: GpuMemory | None = None
    hotspots: tuple[Hotspot, ...] = ()
    ranks: tuple[Rank, ...] = ()
    comparison: Comparison | None = None
    gates: tuple[GateResult, ...] = ()
    hosts: tuple[HostUse, ...] = ()
    all_hosts: HostUse | None = None
    prediction: None = None
    tuned: TunedArguments | None = None
    bottlenecks: tuple[Bottleneck, ...] = ()
    worker_settings: tuple[WorkerSetting, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


def gain_reference(fix: Recommendation, baseline: Config, best: Config | None) -> str | None:
    """The reference of a gain: `vs baseline`, `vs best config` or `vs num_workers=2`; `None` without a gain.

    `best` is the best configuration of the sweep, or `None` if there is none.
    """
    if fix.gain is None:
        return None
    return f"vs {config_reference(baseline if fix.against is None else fix.against, baseline, best)}"


def config_reference(config: Config, baseline: Config, best: Config | None) -> str:
    """A configuration by its known name, or by how it differs from the best one or from the baseline.

    A configuration that only adds to the best one is written `best config + normalize=device`.
    """
    if config == baseline:
        return "baseline"
    if best is not None and best != baseline and best.items() <= config.items():
        return " + ".join(filter(None, ("best config", config_label(_beyond(best, config)))))
    return config_label(_beyond(baseline, config)) or config_name(config)


def _beyond(known: Config, config: Config) -> Config:
    """The values in `config` that are missing from `known` or differ from it."""
    return {axis: value for axis, value in config.items() if axis not in known or known[axis] != value}
