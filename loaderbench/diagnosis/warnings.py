"""Reasons to distrust a run, and notes on its setup, each in one sentence with its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from loaderbench.diagnosis.failures import ran_out_of_memory
from loaderbench.diagnosis.gpu_warnings import gpu_setup_notes, gpu_warnings
from loaderbench.diagnosis.thresholds import NOTICED
from loaderbench.diagnosis.wording import in_main_process
from loaderbench.loaders import worker_count
from loaderbench.records import (
    Config,
    Configuration,
    Environment,
    Interval,
    Kind,
    Measured,
    Noise,
    OnlyRank,
    Overhead,
    Trial,
    config_name,
    in_bytes,
)
from loaderbench.records.words import count
from loaderbench.statistics.configurations import rates_by_round
from loaderbench.statistics.intervals import FEWEST_ROUNDS, excludes_one, ratio_interval

DRIFT = 1.3  # ratio of slowest to fastest reference decode; an idle machine stays within 1.1
BUSY_PERCENT = 20.0  # of all CPUs, before the first trial
FEWEST_BATCHES = 20  # for a user's own loop
UNEVEN = 2.0  # noisy neighbors were seen to halve one loader's speed within a minute
WIDE = 0.25  # half an interval, as a share of its estimate


def describe_noise(trials: Sequence[Trial], twins: Sequence[Trial]) -> Noise:
    """The spread of the reference decodes, and the A/A difference of a configuration."""
    times_s = [
        time_s
        for trial in (*trials, *twins)
        for time_s in (trial.reference_decode_before_s, trial.reference_decode_after_s)
        if time_s
    ]
    config = twins[0].config if twins else {}
    aa = ratio_interval(rates_by_round(config, twins), rates_by_round(config, trials))
    spread = max(times_s) / min(times_s) if times_s else None
    known = {
        "reference_decode_spread": (spread, "no reference image was decoded before or after a trial"),
        "aa_difference": (aa, f"it needs {FEWEST_ROUNDS} rounds in which both identical configs ran"),
    }
    return Noise(
        reference_decode_spread=spread,
        aa_difference=aa,
        not_measured={name: why for name, (value, why) in known.items() if value is None},
    )


def describe_overhead(trials: Sequence[Trial]) -> Overhead | None:
    """The overhead of recorder, tracing and monitors, each the largest of all trials.

    The share of wall time combines recorder and tracing, as if they stopped the loop.
    """
    done = [trial for trial in trials if trial.recorder_s_per_batch is not None and trial.steady_s]
    if not done:
        return None
    watched = [trial.monitor_cpu_share for trial in done if trial.monitor_cpu_share is not None]
    traced = [trial.tracing_s_per_sample for trial in done if trial.tracing_s_per_sample is not None]
    return Overhead(
        per_batch_s=max(trial.recorder_s_per_batch or 0 for trial in done),
        share_of_wall=min(1.0, max(map(_overhead_share, done))),  # calibrated separately: can exceed a fast batch
        monitor_cpu_share=max(watched, default=None),
        tracing_per_sample_s=max(traced, default=None),
        not_measured={
            **({} if watched else {"monitor_cpu_share": done[0].not_measured.get("monitor_cpu_share", "unknown")}),
            **({} if traced else {"tracing_per_sample_s": done[0].not_measured.get("tracing_s_per_sample", "unknown")}),
        },
    )


def _overhead_share(trial: Trial) -> float:
    """Overhead as a share of wall time. Workers trace in parallel: each delays the loop only by its own samples."""
    workers = 1 if in_main_process(trial) or trial.workers is None else trial.workers.count or 1
    one = trial.of_one_process
    tracing_s = (one.tracing_s_per_sample or 0) * (one.samples or 0) / workers
    return ((one.recorder_s_per_batch or 0) * (one.batches or 0) + tracing_s) / (one.steady_s or 1)


def find_warnings(
    trials: Sequence[Trial],
    configurations: Sequence[Configuration],
    noise: Noise,
    loader: Mapping[str, Any],
    kind: Kind = "sweep",
    *,
    cpu_percent_before: float | None = None,
    others: Sequence[Trial] = (),
    environment: Environment | None = None,
) -> Iterator[str]:
    """Yield the reasons to distrust the numbers, most important first.

    `loader` are the fixed arguments, `others` the trials of fixes. A profile is a single trial: if it failed, nothing
    is left to distrust, and a user's loader does not repeat samples to fill a batch.
    """
    if environment is not None:
        yield from unused_gpus(environment)
        yield from gpu_warnings(trials, environment)
    if kind != "profile":
        yield from dict.fromkeys(trial.consumer_note for trial in (*trials, *others) if trial.consumer_note)
    yield from dict.fromkeys(note for trial in trials if (note := _duplicates(trial, loader)))
    if kind == "sweep":
        yield from _failures(trials)
        yield from _barely_fitting(configurations, trials, others)
    yield from _short_supply(trials)
    if kind == "sweep":
        yield from _repeated_samples(trials, loader)
        yield from _few_rounds(trials)
        yield from _uneven_change(configurations, trials, others)
    elif kind == "profile":
        yield from _few_batches(trials)
    yield from _instability(configurations, noise, cpu_percent_before)


def find_setup_notes(trials: Sequence[Trial], measured: Measured) -> Iterator[str]:
    """Yield what to change in the configuration or the machine, although the numbers are certain, each once.

    The loader of a profile was made by the user's script, not by a suite.
    """
    if measured.kind != "profile":
        yield from dict.fromkeys(note for trial in trials if (note := _unshuffled(trial, measured.loader)))
    yield from gpu_setup_notes(trials, measured.environment)


def _unshuffled(trial: Trial, loader: Mapping[str, Any]) -> str | None:
    """A stream that a suite asks to shuffle. torch refuses to, so trials leave `shuffle` out."""
    asked, stream = trial.config.get("shuffle", loader.get("shuffle")), trial.dataset_traits.get("stream")
    if asked is not True or stream is None or "loader" in trial.dataset_traits:
        return None
    return (
        f"shuffle=true has no effect: {stream} is an IterableDataset, which a DataLoader cannot shuffle; "
        "shuffle inside it"
    )


def warn_of_only_rank(only: OnlyRank | None) -> Iterator[str]:
    """Yield a warning that an unrecorded rank may hold back the training."""
    if only is not None:
        yield f"only {only} was recorded, and another rank may hold it back; to record all: {only.command}"


def unused_gpus(environment: Environment) -> Iterator[str]:
    """Yield a warning about GPUs that the driver has but torch cannot use, since a GPU is then emulated."""
    if environment.gpus_of_driver and not environment.gpus:
        why = environment.not_measured.get("gpus", "no reason known")
        yield f"The driver has {count(environment.gpus_of_driver, 'GPU')}, but torch can use none: {why}"


def _few_batches(trials: Sequence[Trial]) -> Iterator[str]:
    counts = [trial.batches for trial in trials if trial.batches is not None and trial.batches < FEWEST_BATCHES]
    if counts:
        were = "batch was" if counts[0] == 1 else "batches were"
        yield f"Only {counts[0]} {were} measured; {FEWEST_BATCHES} or more are needed for stable figures"


def _few_rounds(trials: Sequence[Trial]) -> Iterator[str]:
    rounds = len({trial.round for trial in trials if trial.status == "completed"})
    if 0 < rounds < FEWEST_ROUNDS:
        yield f"Only {count(rounds, 'round')}: a best config needs {FEWEST_ROUNDS} or more"


def _uneven_change(
    configurations: Sequence[Configuration], trials: Sequence[Trial], others: Sequence[Trial]
) -> Iterator[str]:
    """Yield a warning if one configuration lost far more speed than another between the sweep and the trials of fixes.

    Configurations that keep up with the consumer are left out: in the sweep, its demand may have capped them.
    """
    waiting = [
        found.config for found in configurations if found.data_wait_share and found.data_wait_share.est > NOTICED
    ]
    moved = {config_name(config): share for config in waiting if (share := _speed_ratio(config, trials, others))}
    if len(moved) < 2:
        return
    slow, fast = min(moved, key=lambda name: moved[name]), max(moved, key=lambda name: moved[name])
    if moved[fast] >= UNEVEN * moved[slow]:
        rates = f"{slow} at {moved[slow]:.0%} of its sweep rate, {fast} at {moved[fast]:.0%}"
        yield f"Uneven speed while trying fixes: {rates}. A gain of one over the other may not hold on an idle machine"


def _speed_ratio(config: Config, before: Sequence[Trial], later: Sequence[Trial]) -> float | None:
    was, became = rates_by_round(config, before), rates_by_round(config, later)
    if len(became) < FEWEST_ROUNDS or not was:
        return None
    return geometric_mean(became.values()) / geometric_mean(was.values())


def _instability(configurations: Sequence[Configuration], noise: Noise, busy: float | None) -> Iterator[str]:
    if busy is not None and busy >= BUSY_PERCENT:
        yield f"Other programs used {busy:.0f}% of the CPUs before the first trial"
    spread = noise.reference_decode_spread
    if spread is not None and spread >= DRIFT:
        yield f"Machine speed was not stable: reference decode time varied by {spread:.1f}\N{MULTIPLICATION SIGN}"
    if noise.aa_difference and excludes_one(noise.aa_difference):
        yield f"A/A test: two runs of the same config differed by {_difference(noise.aa_difference)}"
    wide = [c for c in configurations if c.samples_per_s and _half_width(c.samples_per_s) > WIDE]
    if wide:
        count = f"{len(wide)} of {len(configurations)} configs"
        yield f"95% interval wider than \N{PLUS-MINUS SIGN}{WIDE * 100:.0f}%: {count}"


def _failures(trials: Sequence[Trial]) -> Iterator[str]:
    kinds = Counter(trial.failure.kind for trial in trials if trial.failure)
    if kinds:
        named = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common())
        yield f"{sum(kinds.values())} of {len(trials)} trials failed: {named}"


def _barely_fitting(
    configurations: Sequence[Configuration], trials: Sequence[Trial], others: Sequence[Trial]
) -> Iterator[str]:
    """Yield configurations that completed in the sweep, but ran out of memory in a trial of fixes."""
    for configuration in filter(lambda found: found.samples_per_s, configurations):
        runs = [trial for trial in (*trials, *others) if trial.config == configuration.config]
        short = [trial.failure for trial in runs if trial.failure and ran_out_of_memory(trial.failure)]
        if any(trial.config == configuration.config and ran_out_of_memory(trial.failure) for trial in others):
            needed, limit = short[0].needed_bytes, short[0].limit_bytes
            bytes_known = f": about {in_bytes(needed)} needed, {in_bytes(limit)} available" if needed and limit else ""
            of_runs = f"{len(short):,} of {count(len(runs), 'trial')}"
            yield f"{config_name(configuration.config)} ran out of memory in {of_runs}{bytes_known}"


def _duplicates(trial: Trial, loader: Mapping[str, Any]) -> str | None:
    """A stream whose samples each of several workers may yield: the workers seen, or else those configured."""
    seen = trial.workers.count if trial.workers else None
    count = worker_count(trial.config, loader) if seen is None else seen
    stream = trial.dataset_traits.get("undivided")
    if stream is None or count is None or count < 2:
        return None
    return (
        f"Each worker may yield every sample: {stream} is an IterableDataset that never calls get_worker_info. "
        "samples/s counts the duplicates"
    )


def _short_supply(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield the effects of a dataset that is too short for the measured time."""
    early = sum(trial.ended_early for trial in trials)
    if early:
        yield f"{count(early, 'trial')} ended early: the loader ran out of data before the steady state was long enough"
    crossing = sum((trial.epoch_ends or 0) > 0 for trial in trials)
    if crossing:
        yield f"{count(crossing, 'trial')}: samples/s includes stalls between epochs"


def _repeated_samples(trials: Sequence[Trial], loader: Mapping[str, Any]) -> Iterator[str]:
    for batch, samples in sorted({pair for trial in trials for pair in _larger_than_dataset(trial, loader)}):
        has = f"{samples} sample{'s' if samples > 1 else ''}"
        yield (
            f"batch_size={batch} exceeds an epoch ({has}). Trials repeat samples; "
            "in training, drop_last=True would yield no batch"
        )


def _larger_than_dataset(trial: Trial, loader: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    batch, samples = trial.config.get("batch_size", loader.get("batch_size")), trial.samples_per_epoch
    if isinstance(batch, int) and samples is not None and batch > samples:
        yield batch, samples


def _half_width(interval: Interval) -> float:
    if interval.lo is None or interval.hi is None:
        return 0.0
    return (interval.hi - interval.lo) / 2 / interval.est


def _difference(ratio: Interval) -> str:
    return f"{abs(ratio.est - 1):.0%}"
