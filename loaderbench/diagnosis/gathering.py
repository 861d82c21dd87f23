"""Converts the trials of one configuration to its facts: means of the measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from loaderbench.diagnosis.epochs import without_epoch_starts
from loaderbench.diagnosis.facts import Facts, Seconds
from loaderbench.diagnosis.hotspots import busiest_own_line
from loaderbench.diagnosis.loading_thread import (
    NO_WORK,
    fed_by,
    mostly_in_sample,
    stages_with_thread_work,
    thread_work,
    with_thread_work,
)
from loaderbench.diagnosis.slow_steps import REST, step_shares
from loaderbench.diagnosis.thresholds import GIL_WAIT_S, LOOKS_APART, MOST, NOTICED
from loaderbench.loaders import worker_count
from loaderbench.records import Environment, Trial, WaitParts, WorkerStates
from loaderbench.records.words import NOT_READ_TWICE


def gather(trials: Sequence[Trial], environment: Environment) -> Facts | None:
    """The means over the completed trials of one configuration; `None` if none completed."""
    if not (done := _completed(trials)):
        return None
    workers = workers_of(done[0])
    idle_share = _idle_share(done, workers)
    loads, cpu_s, wall_s = _loads(done, workers, idle_share)
    return Facts(
        workers=workers,
        cpus=environment.cpus_allotted,
        cpus_online=environment.cpus_online,
        is_loader=_is_loader(done[0], workers),
        processes=int(_mean(done, "machine.processes") or 0),
        ranks=int(_mean(done, "machine.ranks") or 1),
        ranks_of_rate=done[0].processes,
        wait_share=_mean(done, "data_wait_share") or 0.0,
        samples_per_s=_mean(done, "samples_per_s") or 0.0,
        slowest_rank_samples_per_s=_mean_of(trial.of_one_process.samples_per_s for trial in done if trial.ranks),
        batch_samples=_mean_of(trial.samples / trial.batches for trial in done if trial.samples and trial.batches),
        cpu_s=cpu_s,
        wall_s=wall_s,
        sample_is_mostly=mostly_in_sample(done),
        loads=loads,
        main=_mean_record(done, "main_process"),
        idle_share=idle_share,
        ended_share=_mean_of(_ended_share(trial, workers) for trial in done) or 0.0,
        own_cpus=_own_cpus(done, environment),
        idle_cpus=_mean(done, "machine.idle_cpus"),
        others_cpus=_mean(done, "machine.others_cpus"),
        throttled_share=_mean(done, "machine.throttled_share"),
        huge_faults_per_s=_mean(done, "machine.huge_faults_per_s") or 0.0,
        swap_faults_per_s=_mean(done, "machine.swap_faults_per_s"),
        swapped_in_bytes_per_s=_mean(done, "machine.swapped_in_bytes_per_s"),
        available_bytes=_mean(done, "machine.available_bytes"),
        memory_limit_bytes=environment.memory_limit_bytes,
        parts=_mean_record(list(map(_with_first_batches, done)), "wait_parts") or _parts_by_stacks(done, workers),
        next_s=_mean(done, "taking.wall_s"),
        next_cpu_s=_mean(done, "taking.cpu_s"),
        busy_thread=_busy_thread(done),
        fed_by=fed_by(done),
        hot_line=busiest_own_line(done),
        sampler_s=_mean(done, "taking.sampler_s") or 0.0,
        around=_mean_record(done, "taking.around"),
        bytes_per_sample=_mean(done, "reads.bytes_per_sample"),
        bytes_share=_mean_of((_mean(done, "reads.bytes_share"), _mean(done, "kernel_looks.bytes_share"))),
        bytes_per_wait=_mean(done, "kernel_looks.bytes_per_wait"),
        tail_share=_mean_of(map(_tail_share, done)) or 0.0,
        startup_share=_mean_of(map(startup_share, done)) or 0.0,
        startup_s=_mean_of(map(startup_s, done)),
        first_making_s=_mean_of(map(_first_making_s, done)) or 0.0,
        sampler_start_s=_mean(done, "epochs.sampler_s") or 0.0,
        between_share=_mean_of(map(_between_share, done)) or 0.0,
        between_s=_mean(done, "epochs.between_s") or 0.0,
        between_line=_reading(done[0], "epochs.between_line"),
        rest_share=step_shares(done[0]).get(REST, 0.0),
        step_line=done[0].of_one_process.step_line,
        transfer_share=_mean_of(map(_transfer_share, done)) or 0.0,
        from_outside=done[0].is_from_outside,
        workers_persist=_workers_persist(done[0]),
    )


def _completed(trials: Sequence[Trial]) -> list[Trial]:
    """The completed trials, without the first batch of each epoch."""
    done = [trial for trial in trials if trial.status == "completed" and (trial.samples_per_s or trial.is_from_outside)]
    return [without_epoch_starts(trial) for trial in done]


def _is_loader(trial: Trial, workers: int) -> bool:
    return workers > 0 or worker_count(trial.config, {}) is not None or trial.sample_times is not None


def _loads(
    done: Sequence[Trial], workers: int, idle_share: float | None
) -> tuple[WorkerStates | None, Seconds, Seconds]:
    """The states of the processes that load, the workers or else the main process; CPU and wall seconds by stage."""
    found = _mean_record(done, "workers" if workers else "main_process")
    found = _without_polled_sockets(_without_idle_threads(found, idle_share), idle_share)
    waits = _mean(done, "data_wait_share") or 0.0
    loading = 1 - (idle_share or 0.0) if workers else waits
    own = _is_loader(done[0], workers)
    worked = thread_work(found, done, in_workers=workers > 0, loading=loading) if own else NO_WORK
    found = with_thread_work(found, worked)
    wall_s = _by_stage(done, "wall_s") or _by_stacks(done, running=False)
    cpu_s = _by_stage(done, "cpu_s") or _by_stacks(done, running=True)
    cpu_s = stages_with_thread_work(cpu_s, wall_s, worked.on_cpu_share / max(loading, NOTICED))
    return _with_children(found, idle_share) if workers else found, cpu_s, wall_s


def startup_s(trial: Trial) -> float | None:
    """Seconds of each epoch before its first batch, beyond the usual wait for a batch."""
    boundary_s = _reading(trial, "epochs.boundary_s")
    if boundary_s is None:
        return None
    return max(0.0, float(boundary_s) - (_reading(trial, "data_wait.mean_s") or 0.0))


def startup_share(trial: Trial) -> float | None:
    """The share of total time spent at epoch boundaries, if the loop crossed any; 0 if a trial crossed none."""
    if trial.stack_looks is not None:
        return trial.stack_looks.startup_share
    if trial.epochs is None and trial.epoch_ends is not None:
        return 0.0
    each_s, epochs = startup_s(trial), trial.epochs
    if each_s is None or epochs is None or not trial.steady_s or epochs.begun < 2:
        return None
    lost_s = each_s * (epochs.begun - 1)
    return lost_s / (lost_s + trial.steady_s * _with_warmup(trial))


def _workers_persist(trial: Trial) -> bool:
    """Whether workers are kept across epochs: as observed, or else as configured by an axis."""
    seen = _reading(trial, "epochs.workers_persist")
    return bool(trial.config.get("persistent_workers") if seen is None else seen)


def _between_share(trial: Trial) -> float | None:
    """The share of the time from the first batch on that passes between epochs."""
    epochs = trial.epochs
    if epochs is None or epochs.between_s is None or not trial.steady_s:
        return None
    pauses = epochs.begun - 1
    within_s = pauses * (epochs.boundary_s or 0.0) + trial.steady_s * _with_warmup(trial)
    return pauses * epochs.between_s / (pauses * epochs.between_s + within_s)


def _with_warmup(trial: Trial) -> float:
    """The batches of all epochs except their first ones, as a ratio to those that count: warm-ups have epochs, too."""
    return 1 + (trial.warmup_batches or 0) / trial.batches if trial.batches else 1.0


def _first_making_s(trial: Trial) -> float:
    """Seconds of a boundary in which a worker makes the first batch: at most those that a batch usually takes.

    A first batch that takes longer also prepares something, such as opening a file, which is part of the startup.
    """
    making_s = _reading(trial, "epochs.first_making_s")
    if making_s is None or not trial.samples or not trial.batches:
        return 0.0
    usual_s = _stages_s(trial) * trial.samples / trial.batches
    return min(float(making_s), usual_s)


def _with_first_batches(trial: Trial) -> Trial:
    """The trial with the making of first batches among the parts of its waits."""
    parts, epochs, making_s = trial.wait_parts, trial.epochs, _first_making_s(trial)
    if parts is None or epochs is None or not trial.batches or not making_s:
        return trial
    each_s = making_s * (epochs.begun - 1) / (trial.batches * _with_warmup(trial))
    return replace(trial, wait_parts=replace(parts, making_s=parts.making_s + each_s))


def workers_of(trial: Trial) -> int:
    """The number of processes or threads that load: as configured by an axis, or else as observed, or at least one."""
    configured = worker_count(trial.config, {})
    if configured is not None:
        return configured
    return int(_reading(trial, "workers.count") or (trial.not_measured.get("workers") == NOT_READ_TWICE))


def _idle_share(trials: Sequence[Trial], workers: int) -> float | None:
    """The share of the workers' time without work: their waits at the queue, or the time outside all stages.

    If the waits are much longer, the workers also poll something other than their queue, and the second share counts.
    Threads wait for work at a lock, so stack samples do not show which of them are idle.
    """
    if not workers:
        return None
    stacks = [shares for trial in trials if (shares := _reading(trial, "stack_looks.idle_share")) is not None]
    if stacks:
        return fmean(stacks)
    polling = [trial.workers for trial in trials if trial.workers and not trial.workers.are_threads]
    looks = [states.blocked_on for states in polling if states.blocked_on]
    busy = [
        _stages_s(trial) * (trial.samples_per_s or 0) / (workers * trial.processes) for trial in trials if trial.stages
    ]
    no_stage = max(0.0, 1 - fmean(busy)) if busy else None
    at_queue = fmean(shares.get("queue", 0.0) for shares in looks) if looks else None
    if at_queue is None or (no_stage is not None and at_queue > no_stage + LOOKS_APART):
        return no_stage
    return at_queue


def _without_idle_threads(states: WorkerStates | None, idle_share: float | None) -> WorkerStates | None:
    """The states with idle threads counted as such: threads wait for work at a lock, where a process would poll.

    If the idle share is unknown, waits at locks are inconclusive and dropped.
    """
    seen = _scaled_to_blocked(states) if states and states.are_threads else None
    if states is None or not seen:
        return states
    if idle_share is None:
        return replace(states, blocked_on=None)
    idle = min(idle_share, seen.get("lock", 0.0))
    return replace(states, blocked_on={**seen, "lock": seen.get("lock", 0.0) - idle, "queue": idle})


def _scaled_to_blocked(states: WorkerStates) -> dict[str, float] | None:
    """What threads were blocked on, scaled to their blocked share, which the scheduler measures.

    The thread that samples them needs the GIL too. Whether a thread waits or runs at that moment depends on the
    sampling, but what it waits for does not.
    """
    seen = states.blocked_on
    blocked = sum(share for kind, share in seen.items() if kind != "running") if seen else 0.0
    if not seen or not blocked:
        return seen
    scale = states.blocked_share / blocked
    return {**{kind: share * scale for kind, share in seen.items()}, "running": 1 - states.blocked_share}


def _without_polled_sockets(states: WorkerStates | None, idle_share: float | None) -> WorkerStates | None:
    """The states with polling inside a stage counted as waiting for a device, not for work.

    Python polls a socket that has a timeout, as torch polls a worker's queue.
    """
    seen = states.blocked_on if states else None
    if states is None or seen is None or idle_share is None or seen.get("queue", 0.0) <= idle_share + LOOKS_APART:
        return states
    polled = seen["queue"] - idle_share
    return replace(states, blocked_on={**seen, "queue": idle_share, "device": seen.get("device", 0.0) + polled})


def _with_children(states: WorkerStates | None, idle_share: float | None) -> WorkerStates | None:
    """The states of workers with waits for their own child processes counted as work on a CPU.

    A sample can be decoded by another program, such as ffmpeg, while the worker reads its output.
    """
    if states is None or not states.children_cpu_share:
        return states
    worked = min(states.children_cpu_share, max(0.0, states.blocked_share - (idle_share or 0.0)))
    return replace(states, on_cpu_share=states.on_cpu_share + worked, blocked_share=states.blocked_share - worked)


def _busy_thread(trials: Sequence[Trial]) -> str:
    """The name of a thread that uses a CPU for most of the time while others wait long for the GIL."""
    found = next((trial.busy_thread for trial in trials if trial.busy_thread), None)
    waits = found is not None and (found.gil_wait_s is None or found.gil_wait_s >= GIL_WAIT_S)
    return found.name if found and waits and found.cpu_share >= MOST else ""


def _ended_share(trial: Trial, workers: int) -> float | None:
    """The share of all workers' time after some had ended while others still worked."""
    count = _reading(trial, "workers.mean_count")
    return None if not workers or count is None or trial.processes > 1 else max(0.0, 1 - count / workers)


def _stages_s(trial: Trial) -> float:
    return sum(cost.wall_s or 0.0 for cost in (trial.stages or {}).values())


def _own_cpus(trials: Sequence[Trial], environment: Environment) -> float | None:
    own_cpus, percent = _mean(trials, "machine.own_cpus"), _mean(trials, "cpu_percent_of_allotted")
    return own_cpus if own_cpus is not None or percent is None else percent / 100 * environment.cpus_allotted


def _tail_share(trial: Trial) -> float | None:
    """The cost of slow samples as a share of all work, which also includes collating.

    0 for a stream: one call of its iterator can make many samples, such as a row group.
    """
    if "stream" in trial.dataset_traits:
        return 0.0
    share, whole_s = _reading(trial, "sample_times.tail_share"), _stages_s(trial)
    if share is None or whole_s <= 0:
        return None
    collating_s = trial.stages["collate"].wall_s if trial.stages and "collate" in trial.stages else 0.0
    return float(share) * (1 - (collating_s or 0.0) / whole_s)


def _transfer_share(trial: Trial) -> float | None:
    cost, one = (trial.step_stages or {}).get("transfer"), trial.of_one_process
    if cost is None or cost.wall_s is None or not one.steady_s:
        return None
    return cost.wall_s * (one.batches or 0) / one.steady_s


def _by_stage(trials: Sequence[Trial], what: str) -> Seconds:
    names = {name: None for trial in trials for name in trial.stages or {}}
    costs = {name: [getattr((trial.stages or {}).get(name), what, None) for trial in trials] for name in names}
    means = {name: _mean_of(found) for name, found in costs.items()}
    return {name: mean_s for name, mean_s in means.items() if mean_s is not None}


def _by_stacks(trials: Sequence[Trial], *, running: bool) -> Seconds:
    """Like `_by_stage`, from sampled stacks: shares of the working time instead of seconds."""
    found = next((trial.stack_looks.stages for trial in trials if trial.stack_looks), {})
    return {stage: looks.share * (looks.running_share if running else 1) for stage, looks in found.items()}


def _parts_by_stacks(trials: Sequence[Trial], workers: int) -> WaitParts | None:
    """The parts of a wait as shares, from sampled stacks: the main process's own, and the kernel's for other processes.

    While no worker has work, the awaited batch was made before. While one has work, the hand-over waits for that
    worker, whose Python code delays the thread that sends a batch.
    """
    stacks = next((trial.stack_looks for trial in trials if trial.stack_looks), None)
    kept_by = next((trial.kernel_looks.waits for trial in trials if trial.kernel_looks), None)
    waits = stacks.waits if stacks else {"waiting": 1.0} if kept_by else {}
    if not waits:
        return None
    none_works = ((stacks.idle_share if stacks else None) or 0.0) ** max(1, workers)
    handing_over, waiting = waits.get("transport", 0.0), waits.get("waiting", 0.0)
    kept_by = kept_by or {"making": 1 - none_works, "transport": none_works}
    return WaitParts(
        batches=0,
        not_begun_s=0.0,
        making_s=waiting * kept_by.get("making", 0.0) + handing_over * (1 - none_works),
        order_s=waiting * kept_by.get("order", 0.0),
        transport_s=waiting * kept_by.get("transport", 0.0) + handing_over * none_works,
        main_process_s=waits.get("main_process", 0.0),
    )


def _reading(trial: Trial, path: str) -> Any:
    """The value at `field.field`; `None` if any part of the path is `None`."""
    found: Any = trial
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _mean(trials: Iterable[Trial], path: str) -> float | None:
    return _mean_of(_reading(trial, path) for trial in trials)


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _mean_record(trials: Iterable[Trial], path: str) -> Any:
    """The mean of the records: of every number, and of dicts by key; other values are the first record's."""
    known = [found for trial in trials if (found := _reading(trial, path)) is not None]
    if len(known) < 2:
        return known[0] if known else None
    return replace(known[0], **{name: _mean_value([vars(one)[name] for one in known]) for name in vars(known[0])})


def _mean_value(values: Sequence[Any]) -> Any:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers:
        return fmean(numbers)
    shares = [value for value in values if isinstance(value, dict)]
    names = {name for found in shares for name, share in found.items() if isinstance(share, int | float)}
    return {name: fmean(found.get(name, 0.0) for found in shares) for name in sorted(names)} if names else values[0]
