"""What is concluded of a run: configurations, the best, the verdict, what to change, and what gains are over."""

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
    """One point of the sweep over all its rounds, put together as `records/metrics.py` says.

    `metrics` are those of them that have no field here, by id.
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
    """The cheapest of the configurations tied with the fastest. `gain` is a ratio of samples/s over the baseline."""

    config: Config
    samples_per_s: Interval
    data_wait_share: Interval | None
    ties: tuple[Config, ...]
    why_this_one: str
    gain: Interval | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The starting configuration of the sweep, which gains are compared with."""

    config: Config
    samples_per_s: Interval | None
    data_wait_share: Interval | None
    why_this_one: str
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Samples/s with free loading. `headspace` is the share of the time per batch that it would save (0 to 1).

    `samples_per_s_interval` is there if it was measured in several rounds.
    """

    samples_per_s: float
    headspace: float
    basis: str
    samples_per_s_interval: Interval | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class Gain:
    """A ratio of a metric with its 95% interval, changed over unchanged: 1.25 is 25% more.

    The interval is for the same comparison at another time, so it is wider than that of its rounds alone. `metric` is
    `samples_per_s`. `lo` and `hi` are `None` if one round alone was measured. `is_floor`: the target of the consumer
    capped the changed rate, so the gain is at least this.
    """

    metric: str
    est: float
    lo: float | None
    hi: float | None
    is_floor: bool = False


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A fix: a change of the loader, the code or the data, with its gain and its costs.

    `id` is the name of its page in docs/reference/fixes, and `title` the action. `change` holds the axes that it sets,
    empty for a change of your own code.

    `status` is `open` (do it), `already_ok` (in place, not needed or no faster) or `not_checked` (undecided or not
    tried). `reason` says why it is not `open`, or why it was not measured. `basis` is `measured`, `heuristic` (advice
    for this cause, without a gain) or `None`. `gain` is `None` if it was not measured.

    `against` is the configuration that a fix was tried on; if it is `None`, the gain is over the baseline. `before` and
    `after` are the two rates of a measured gain, in samples/s. `meets_target`: whether all of the interval of `after`
    is at the target or above; `None` without a target. `evidence` has these rates in words, and `trials` the ids of the
    trials.

    `costs` are what the fix takes, such as memory, and `caveat` is what the gain does not show. `pixels` says how much
    the change alters the pixels of samples; `None` if it is not known to alter any. `snippet` is a program with the
    change, and `snippet_yaml` is the change of a suite; `None` if there is none.
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

    @property
    def changes_pixels(self) -> str | None:
        """`changes pixels, PSNR 34 dB`, as a terminal prints it; `None` if it is not known to change any."""
        return None if self.pixels is None else f"changes pixels, {self.pixels.psnr_in_words}"


@dataclass(frozen=True, kw_only=True)
class Conclusions:
    """All that this version's rules say of a run. They can be drawn again from what was measured, at any time.

    `warnings` are reasons to distrust the run, and `remarks` are notes about its results. `hotspots` are lines of code
    of the verdict's configuration, those with the largest share of loading time first. `ranks` are those of a
    distributed training, whose `verdict` is that of the whole. `hosts` are its machines and `all_hosts` their sums,
    where there are several. `comparison` is that of two versions, measured in interleaved pairs, and `gates` are the
    results of `--fail-if` and `--warn-if`. `prediction` is reserved: this version predicts nothing.
    `bottlenecks` are stages of the verdict's configuration, the largest gain first; why others are not among them,
    `not_measured` says under `bottlenecks.decode`. `worker_settings` are other workers for that configuration which
    were measured in the same rounds; the sweep may have all that matter. Others have their reason under
    `worker_settings.num_workers=1`.
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
    bottlenecks: tuple[Bottleneck, ...] = ()
    worker_settings: tuple[WorkerSetting, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


def gain_reference(found: Recommendation, baseline: Config, best: Config | None) -> str | None:
    """`vs baseline`, `vs best config`, `vs num_workers=2`: what the gain is over; `None` for one without a gain.

    `best` is the best configuration of the sweep, `None` if there is none.
    """
    if found.gain is None:
        return None
    return f"vs {config_reference(baseline if found.against is None else found.against, baseline, best)}"


def config_reference(config: Config, baseline: Config, best: Config | None) -> str:
    """A configuration by the name a reader knows, else by how it differs from the best one or from the baseline.

    One that only adds to the best is written `best config + normalize=device`.
    """
    if config == baseline:
        return "baseline"
    if best is not None and best != baseline and best.items() <= config.items():
        return " + ".join(filter(None, ("best config", config_label(_beyond(best, config)))))
    return config_label(_beyond(baseline, config)) or config_name(config)


def _beyond(known: Config, config: Config) -> Config:
    """What `config` sets and `known` does not, or sets otherwise."""
    return {axis: value for axis, value in config.items() if axis not in known or known[axis] != value}
