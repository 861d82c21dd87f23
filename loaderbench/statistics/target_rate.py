"""The target rate of an emulated GPU; samples/s that reach it are the GPU's, and hide changes of the loader."""

from __future__ import annotations

from loaderbench.consumers import consumer_kind, demand_of
from loaderbench.loaders import prefetch_of
from loaderbench.ranks import process_count
from loaderbench.records import Config, Measured, MetricChange

AT_THE_CAP = 0.97
"""Minimum share of the target at which the emulated GPU, not the loader, may limit the rate."""

CAPPED = "both runs reach the target of the emulated GPU, which would hide a slower loader; use consumer.kind: none"


def target_rate(run: Measured, config: Config) -> float | None:
    """Samples/s at which emulated GPUs, one per rank, take this configuration's batches; `None` without any."""
    assumed = demand_of(run)
    if assumed is None:
        return None
    return process_count(config) * assumed.rate_at(prefetch_of(run.loader, config).batch_size)


def is_hidden(change: MetricChange, run: Measured) -> bool:
    """Whether this change of samples/s is meaningless because both rates reach the target of the later `run`."""
    if change.metric != "samples_per_s" or change.before is None or change.after is None:
        return False
    target = target_rate(run, change.config) if consumer_kind(run.consumer).capped else None
    return target is not None and min(change.before.est, change.after.est) >= AT_THE_CAP * target
