"""Time that an epoch loses outside its steady state: its startup, and slow samples that other batches wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeVar

from loaderbench.diagnosis.wording import in_percent, in_seconds
from loaderbench.loaders import backend_of
from loaderbench.records import CostName, EpochCost, Evidence, ProcessReadings, Trial

AnyReadings = TypeVar("AnyReadings", bound=ProcessReadings)


def without_epoch_starts(trial: Trial) -> Trial:
    """The trial without the first batch of each epoch, like a profile; unchanged if no epoch ended in it.

    The rate of a trial includes the boundaries between its epochs. That of a profile does not.
    """
    if trial.role == "profile":
        return trial
    return replace(_without_starts(trial, trial.processes), ranks=tuple(map(_without_starts, trial.ranks)))


def _without_starts(found: AnyReadings, processes: int = 1) -> AnyReadings:
    """The readings without first batches; `processes` is the number of processes whose batches they count."""
    epochs, ends, step, wait = found.epochs, found.epoch_ends, found.step, found.data_wait
    if epochs is None or ends is None or step is None or not (found.batches and found.steady_s):
        return found
    batches, warmup, wait_s = found.batches, found.warmup_batches or 0, 0.0
    if wait is not None:  # otherwise, each batch is the first of its epoch, and all of them count
        batches = max(1, batches - ends * processes)
        warmup, wait_s = max(0, warmup - (epochs.begun - ends)), wait.mean_s
    share, steady_s = batches / found.batches, batches / processes * (wait_s + step.mean_s)
    if steady_s <= 0:
        return found
    rate = found.samples_per_s
    return replace(
        found,
        samples_per_s=None if rate is None else rate * share * found.steady_s / steady_s,
        data_wait_share=wait_s / (wait_s + step.mean_s),
        batches=batches,
        samples=None if found.samples is None else round(found.samples * share),
        warmup_batches=warmup,
        steady_s=steady_s,
    )


def epoch_costs(trials: Sequence[Trial], loader: Mapping[str, Any]) -> tuple[EpochCost, ...]:
    """Mean seconds lost per epoch, over the completed trials of one configuration; unknown costs are left out.

    `loader` are the fixed arguments.
    """
    found: dict[CostName, list[tuple[float, float | None]]] = {}
    for trial in trials:
        if trial.status == "completed":
            for name, lost_s, epoch_s in _of_trial(trial, loader):
                found.setdefault(name, []).append((lost_s, epoch_s))
    return tuple(_cost(name, rows) for name, rows in found.items())


def costs_in_words(costs: Sequence[EpochCost]) -> tuple[Evidence, ...]:
    """One line of evidence for each cost of at least one percent of an epoch."""
    labels = {"first_batch": "Startup", "boundary": "Epoch boundary", "stragglers": "Head-of-line blocking"}
    return tuple(
        Evidence(
            "epoch",
            labels[cost.name],
            f"{in_percent(cost.share)} of epoch time ({in_seconds(cost.s_per_epoch)} per epoch)",
        )
        for cost in costs
        if cost.share is not None and cost.share >= 0.01
    )


def _of_trial(trial: Trial, loader: Mapping[str, Any]) -> Iterator[tuple[CostName, float, float | None]]:
    trial = without_epoch_starts(trial)
    wait_s, step_s = (times.mean_s if times else 0.0 for times in (trial.data_wait, trial.step))
    epoch_s = trial.samples_per_epoch / trial.samples_per_s if trial.samples_per_epoch and trial.samples_per_s else None
    if trial.epochs is not None and trial.epochs.boundary_s is not None:
        yield "boundary", max(0.0, trial.epochs.boundary_s - wait_s), epoch_s
    elif trial.time_to_first_batch_s is not None and _starts_workers({**loader, **trial.config}):
        # a batch arrives every `wait_s + step_s`; nothing computes before the first one
        yield "first_batch", max(0.0, trial.time_to_first_batch_s - wait_s - step_s), epoch_s
    if trial.wait_parts is not None and trial.samples and trial.batches and trial.samples_per_epoch:
        batches = trial.samples_per_epoch * trial.batches / trial.samples / trial.processes
        yield "stragglers", trial.wait_parts.order_s * batches, epoch_s


def _starts_workers(arguments: Mapping[str, Any]) -> bool:
    """Whether each epoch starts its workers again. Only torch's loaders do."""
    return backend_of(arguments).is_torchs and not arguments.get("persistent_workers")


def _cost(name: CostName, rows: Sequence[tuple[float, float | None]]) -> EpochCost:
    lost_s = fmean(lost_s for lost_s, _ in rows)
    known = [epoch_s for _, epoch_s in rows if epoch_s]
    share = (
        lost_s / (lost_s + fmean(known)) if known and name != "stragglers" else lost_s / fmean(known) if known else None
    )
    if share is None:
        return EpochCost(name=name, s_per_epoch=lost_s, share=None, not_measured={"share": "the loader has no length"})
    return EpochCost(name=name, s_per_epoch=lost_s, share=min(1.0, share))
