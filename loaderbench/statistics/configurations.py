"""From trials to configurations: intervals over rounds, ranks, and ties with the fastest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from loaderbench.records import Config, Configuration, GpuUse, Interval, Trial
from loaderbench.statistics.intervals import (
    FEWEST_ROUNDS,
    excludes_one,
    rate_interval,
    ratio_interval,
    share_interval,
)

PRACTICAL_TIE = 0.05
"""A configuration that looks more than this slower is no tie, however noisy the rounds: it is merely not decided."""


def summarise(configs: Sequence[Config], trials: Sequence[Trial]) -> tuple[Configuration, ...]:
    """One record per configuration, in the order given.

    Ranks count from 1 for what looks fastest, on however few rounds; to win or to tie takes `FEWEST_ROUNDS`.
    """
    found = [_one(config, [trial for trial in trials if trial.config == config]) for config in configs]
    order = sorted((c for c in found if c.samples_per_s), key=_rate, reverse=True)
    ranks = {id(configuration): rank for rank, configuration in enumerate(order, 1)}
    top = next((c for c in order if len(rates_by_round(c.config, trials)) >= FEWEST_ROUNDS), None)
    return tuple(
        replace(c, rank=ranks.get(id(c)), tied_with_best=top is not None and ties(c.config, top.config, trials))
        for c in found
    )  # fmt: skip


def rates_by_round(config: Config, trials: Iterable[Trial]) -> dict[int, float]:
    """Round number to samples/s of the completed trials of a configuration."""
    rates = {trial.round: rate_of(trial) for trial in trials if trial.config == config}
    return {number: rate for number, rate in rates.items() if rate is not None}


def rate_of(trial: Trial) -> float | None:
    """Samples/s of a completed trial; `None` where no sample was delivered, which has no logarithm either."""
    rate = trial.samples_per_s
    return rate if trial.status == "completed" and rate is not None and rate > 0 else None


def ratio_of(changed: Config, unchanged: Config, trials: Sequence[Trial]) -> Interval | None:
    """Samples/s of one configuration over another's, paired by round."""
    return ratio_interval(rates_by_round(changed, trials), rates_by_round(unchanged, trials))


def ties(config: Config, top: Config, trials: Sequence[Trial]) -> bool:
    """Whether a configuration cannot be told from the other, and looks no slower than `PRACTICAL_TIE` either."""
    rounds = rates_by_round(config, trials).keys() & rates_by_round(top, trials).keys()
    ratio = ratio_of(config, top, trials)
    if ratio is None or len(rounds) < FEWEST_ROUNDS:
        return False
    return not excludes_one(ratio) and ratio.est >= 1 - PRACTICAL_TIE


def _rate(configuration: Configuration) -> float:
    return configuration.samples_per_s.est if configuration.samples_per_s else 0.0


def _one(config: Config, trials: Sequence[Trial]) -> Configuration:
    completed = [trial for trial in trials if trial.status == "completed"]
    gpus = [_device(trial) for trial in completed if trial.gpus]
    fields = {
        "cpu_percent_of_allotted": _mean(trial.cpu_percent_of_allotted for trial in completed),
        "rss_bytes": _largest(trial.rss_bytes for trial in completed),
        "pss_bytes": _largest(trial.pss_bytes for trial in completed),
        "shm_peak_bytes": _largest(trial.shm_peak_bytes for trial in completed),
        "gpu_utilization_percent": _mean(gpu.utilization_percent for gpu in gpus),
        "gpu_memory_used_bytes": _largest(gpu.memory_used_bytes for gpu in gpus),
    }
    rates = [rate for trial in completed if (rate := rate_of(trial)) is not None]
    waits = [trial.data_wait_share for trial in completed if trial.data_wait_share is not None]
    firsts = [first for trial in completed if (first := trial.time_to_first_batch_s) is not None and first > 0]
    return Configuration(
        config=config,
        samples_per_s=rate_interval(rates) if rates else None,
        data_wait_share=share_interval(waits) if waits else None,
        time_to_first_batch_s=rate_interval(firsts) if firsts else None,
        trials=tuple(trial.id for trial in trials),
        rank=None,
        tied_with_best=False,
        not_measured=_reasons({"data_wait_share": waits or None, **fields}, trials, completed),
        **fields,  # type: ignore[arg-type]
    )


def _reasons(fields: Mapping[str, object], trials: Sequence[Trial], completed: Sequence[Trial]) -> dict[str, str]:
    missing = [name for name, value in fields.items() if value is None]
    if not completed:
        why = "not run" if not trials else "every trial of it failed"
        return dict.fromkeys(["samples_per_s", "data_wait_share", "time_to_first_batch_s", *missing], why)
    reasons = dict.fromkeys(missing, "no trial could read it")
    if not any(rate_of(trial) for trial in completed):
        reasons["samples_per_s"] = "no sample was delivered"
    if not any(trial.time_to_first_batch_s for trial in completed):
        reasons["time_to_first_batch_s"] = "no trial could read it"
    for name in ("gpu_utilization_percent", "gpu_memory_used_bytes"):
        if name in reasons and not any(trial.gpus for trial in completed):
            reasons[name] = "no accelerator"
    return reasons


def _device(trial: Trial) -> GpuUse:
    """The device that did the work: the one whose memory was used most."""
    return max(trial.gpus, key=lambda gpu: (gpu.memory_used_bytes or 0, gpu.utilization_percent or 0))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
