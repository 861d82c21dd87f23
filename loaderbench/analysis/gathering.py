"""From the trials of one configuration to the facts of a diagnosis: means over rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from loaderbench.analysis.facts import Facts, Seconds
from loaderbench.records import Environment, Trial


def gather(
    trials: Sequence[Trial],
    environment: Environment,
    *,
    fewer_are_slower: bool = False,
    workers_are_slower: bool = False,
) -> Facts | None:
    """The means over completed trials of one configuration; `None` where there is none.

    `fewer_are_slower`: fewer workers were measured and are slower. `workers_are_slower`: so are any at all.
    """
    done = [trial for trial in trials if trial.status == "completed" and trial.samples_per_s]
    if not done:
        return None
    workers = _workers(done[0])
    return Facts(
        workers=workers,
        cpus=environment.cpus_allotted,
        cpus_online=environment.cpus_online,
        is_loader=workers > 0 or "num_workers" in done[0].config or done[0].sample_times is not None,
        processes=int(_mean(done, "machine.processes") or 0),
        wait_share=_mean(done, "data_wait_share") or 0.0,
        samples_per_s=_mean(done, "samples_per_s") or 0.0,
        batch_samples=fmean((trial.samples or 0) / (trial.batches or 1) for trial in done),
        cpu_s=_by_stage(done, "cpu_s"),
        wall_s=_by_stage(done, "wall_s"),
        loads=_typical(done, "workers" if workers else "main_process"),
        main=_typical(done, "main_process"),
        idle_share=_idle_share(done, workers),
        own_cpus=_own_cpus(done, environment),
        idle_cpus=_mean(done, "machine.idle_cpus"),
        others_cpus=_mean(done, "machine.others_cpus"),
        throttled_share=_mean(done, "machine.throttled_share"),
        parts=_typical(done, "wait_parts"),
        next_s=_mean(done, "taking.wall_s"),
        next_cpu_s=_mean(done, "taking.cpu_s"),
        sampler_s=_mean(done, "taking.sampler_s") or 0.0,
        bytes_per_sample=_mean(done, "reads.bytes_per_sample"),
        bytes_share=_mean(done, "reads.bytes_share"),
        tail_share=_mean_of(map(_tail_share, done)) or 0.0,
        startup_share=_mean_of(map(startup_share, done)) or 0.0,
        startup_s=_mean_of(map(startup_s, done)),
        transfer_share=_mean_of(map(_transfer_share, done)) or 0.0,
        fewer_are_slower=fewer_are_slower,
        workers_are_slower=workers_are_slower,
    )


def startup_s(trial: Trial) -> float | None:
    """Seconds of each epoch that pass before its first batch, beyond what a batch waits anyway."""
    boundary_s = _told(trial, "epochs.boundary_s")
    if boundary_s is None:
        return None
    return max(0.0, float(boundary_s) - (_told(trial, "data_wait.mean_s") or 0.0))


def startup_share(trial: Trial) -> float | None:
    """The share of the whole time that passes at epoch boundaries, where the loop was seen to cross some."""
    each_s, epochs = startup_s(trial), trial.epochs
    if each_s is None or epochs is None or not trial.steady_s or epochs.begun < 2:
        return None
    lost_s = each_s * (epochs.begun - 1)
    return lost_s / (lost_s + trial.steady_s)


def _workers(trial: Trial) -> int:
    told = trial.config.get("num_workers")
    return told if isinstance(told, int) else int(_told(trial, "workers.count") or 0)


def _idle_share(trials: Sequence[Trial], workers: int) -> float | None:
    """Time of the workers without work: what they were seen to stand at their queue, or what no stage took."""
    if not workers:
        return None
    looks = [shares for trial in trials if (shares := _told(trial, "workers.blocked_on"))]
    if looks:
        return fmean(shares.get("queue", 0.0) for shares in looks)
    busy = [_stages_s(trial) * (trial.samples_per_s or 0) / workers for trial in trials if trial.stages]
    return max(0.0, 1 - fmean(busy)) if busy else None


def _stages_s(trial: Trial) -> float:
    return sum(cost.wall_s or 0.0 for cost in (trial.stages or {}).values())


def _own_cpus(trials: Sequence[Trial], environment: Environment) -> float | None:
    told, percent = _mean(trials, "machine.own_cpus"), _mean(trials, "cpu_percent_of_allotted")
    return told if told is not None or percent is None else percent / 100 * environment.cpus_allotted


def _tail_share(trial: Trial) -> float | None:
    """What slow samples cost, as a share of all the work: samples may be the least of it."""
    share, whole_s = _told(trial, "sample_times.tail_share"), _stages_s(trial)
    if share is None or whole_s <= 0:
        return None
    collating_s = trial.stages["collate"].wall_s if trial.stages and "collate" in trial.stages else 0.0
    return float(share) * (1 - (collating_s or 0.0) / whole_s)


def _transfer_share(trial: Trial) -> float | None:
    cost = (trial.step_stages or {}).get("transfer")
    if cost is None or cost.wall_s is None or not trial.steady_s:
        return None
    return cost.wall_s * (trial.batches or 0) / trial.steady_s


def _by_stage(trials: Sequence[Trial], what: str) -> Seconds:
    names = {name: None for trial in trials for name in trial.stages or {}}
    costs = {name: [getattr((trial.stages or {}).get(name), what, None) for trial in trials] for name in names}
    means = {name: _mean_of(found) for name, found in costs.items()}
    return {name: mean_s for name, mean_s in means.items() if mean_s is not None}


def _told(trial: Trial, path: str) -> Any:
    """What stands at `field.field`; `None` where any of it does."""
    found: Any = trial
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _mean(trials: Iterable[Trial], path: str) -> float | None:
    return _mean_of(_told(trial, path) for trial in trials)


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _typical(trials: Iterable[Trial], path: str) -> Any:
    """One record with the mean of every number of theirs; what is no number is the first's."""
    known = [found for trial in trials if (found := _told(trial, path)) is not None]
    if len(known) < 2:
        return known[0] if known else None
    return replace(known[0], **{name: _typical_value([vars(one)[name] for one in known]) for name in vars(known[0])})


def _typical_value(values: Sequence[Any]) -> Any:
    if isinstance(values[0], dict):
        same = [value for value in values if isinstance(value, dict)]
        names = sorted({name for value in same for name in value})
        return {name: _typical_value([value.get(name, 0.0) for value in same]) for name in names}
    numbers = [value for value in values if isinstance(value, int | float)]
    return fmean(numbers) if numbers else values[0]
