"""The target rate of an emulated GPU: samples/s that reach it are its own, and hide what changed in the loader."""

from __future__ import annotations

from loaderbench.consumers import consumer_kind, demand_of
from loaderbench.loaders import backend_of
from loaderbench.ranks import process_count
from loaderbench.records import Config, MetricChange, RunRecord

AT_THE_CAP = 0.97
"""From this share of the target on, the emulated GPU and not the loader may set the rate."""

CAPPED = "both runs reach the target of the emulated GPU, which would hide a slower loader; use consumer.kind: none"


def target_rate(run: RunRecord, config: Config) -> float | None:
    """Samples/s of all ranks, with batches of this configuration; `None` where nothing caps the rate."""
    assumed = demand_of(run) if consumer_kind(run.consumer).capped else None
    if assumed is None:
        return None
    arguments = {**run.loader, **config}
    return process_count(config) * assumed.rate_at(backend_of(arguments).prefetch(arguments).batch_size)


def is_hidden(change: MetricChange, run: RunRecord) -> bool:
    """Whether this change of samples/s says nothing, since both rates reach the target of the later `run`."""
    if change.metric != "samples_per_s" or change.before is None or change.after is None:
        return False
    target = target_rate(run, change.config)
    return target is not None and min(change.before.est, change.after.est) >= AT_THE_CAP * target
