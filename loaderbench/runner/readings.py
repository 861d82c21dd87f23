"""Converts what the recorder and the monitors saw into a trial's record: its steady state, except for disk reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise

from loaderbench.monitors import (
    SLOW_EVERY,
    GpuMonitor,
    Sample,
    Sampling,
    Window,
    cpu_percent,
    gpu_series,
    gpu_use,
    over_time,
    series,
    with_copy_speed,
    with_looks,
)
from loaderbench.recorder import Measurement, completed_rank, spread_of
from loaderbench.records import (
    Environment,
    Gpu,
    GpuUse,
    LoaderInside,
    LoopTimes,
    RankReadings,
    ResourceUse,
    TimelinePoint,
)
from loaderbench.runner.protocol import Result
from loaderbench.runner.rank_results import rank_waits

MAX_WAIT_POINTS = 1_000
_SHARED_READINGS = tuple(one.name for one in fields(ResourceUse) if one.name != "not_measured")
_ALL_FIRST = "each batch was the first of its epoch; boundary_s is the wait for it"
_HIDDEN = "the system hides its processes (no /proc)"


def loop_times(result: Result) -> LoopTimes:
    """The loader's rate over the steady state, and how long the consumer waited for batches.

    For several ranks, the rate is their sum, and the waits are those of the slowest.
    """
    times = _single_loop_times(result)
    if result.slowest_rank is None:
        return times
    slowest = result.ranks[result.slowest_rank].measurement
    return replace(
        times,
        samples_per_s=sum(rank.measurement.samples_per_s for rank in result.ranks),
        data_wait_share=slowest.data_wait_share,
        step=spread_of(_steps_s(slowest)),
    )


def rank_readings(
    result: Result, sampling: Sampling, environment: Environment, gpu_monitor: GpuMonitor
) -> tuple[RankReadings, ...]:
    """The readings of each rank: its own GPUs; other resources were read for all ranks together."""
    waits, why_not = rank_waits(result.ranks)
    together = dict.fromkeys(_SHARED_READINGS, "read of all ranks together")
    return tuple(
        completed_rank(
            RankReadings(rank=rank, rank_wait_share=waits.get(rank)),
            _single_loop_times(found),
            inside_with_blocked(found, sampling),
            ResourceUse(
                gpus=gpus_in_use(found, sampling, environment, gpu_monitor, result.ranks),
                not_measured=together | ({} if rank in waits else {"rank_wait_share": why_not}),
            ),
        )
        for rank, found in enumerate(result.ranks)
    )


def _single_loop_times(result: Result) -> LoopTimes:
    measurement = result.measurement
    return LoopTimes(
        samples_per_s=measurement.samples_per_s,
        data_wait_share=measurement.data_wait_share,
        time_to_first_batch_s=measurement.time_to_first_batch_s,
        batches=measurement.batches,
        samples=measurement.samples,
        warmup_batches=measurement.warmup_batches,
        steady_s=measurement.steady_s,
        epoch_ends=measurement.epoch_ends,
        ended_early=measurement.ended_early,
        samples_per_epoch=result.samples_per_epoch,
        data_wait=spread_of(measurement.waits_within_epochs_s),
        step=spread_of(_steps_s(measurement)),
        epochs=result.epochs,
        recorder_s_per_batch=result.recorder_s_per_batch,
        consumer_note=result.consumer_note or None,
        computed_in=result.computed_in or None,
        not_measured={
            "samples_per_epoch": "the dataset has no length",
            "data_wait": _ALL_FIRST,
            "epochs": "no epoch ended in the trial",
        },
    )


def resource_use(result: Result, sampling: Sampling, environment: Environment, gpu_monitor: GpuMonitor) -> ResourceUse:
    """What the monitors saw over the steady state; a value that was not seen is `None`, with a reason."""
    measurement = result.measurement
    steady = [sample for sample in sampling.samples if measurement.began_s <= sample.at_s <= measurement.ended_s]
    hidden = bool(sampling.samples) and all(sample.tree.rss_bytes is None for sample in sampling.samples)
    return ResourceUse(
        cpu_percent_of_allotted=cpu_percent(steady, environment.cpus_allotted),
        rss_bytes=max((sample.tree.rss_bytes for sample in steady if sample.tree.rss_bytes is not None), default=None),
        pss_bytes=sampling.pss_bytes,
        shm_peak_bytes=max((sample.shm_bytes for sample in steady if sample.shm_bytes is not None), default=None),
        disk_read_bytes_per_s=_disk_rate(sampling.samples),
        monitor_cpu_share=sampling.cpu_share,
        gpus=gpus_in_use(result, sampling, environment, gpu_monitor, result.ranks),
        metrics=over_time([sample.gauges for sample in steady]),
        not_measured={
            "cpu_percent_of_allotted": _HIDDEN if hidden else "the steady state was shorter than two monitor readings",
            "rss_bytes": _HIDDEN if hidden else "the steady state was shorter than one monitor reading",
            "pss_bytes": "this system does not report proportional memory (PSS)",
            "shm_peak_bytes": "no /dev/shm, or the steady state was shorter than one monitor reading",
            "disk_read_bytes_per_s": "the trial was shorter than two disk readings, or disk reads are hidden",
        },
    )


def gpus_in_use(
    result: Result, sampling: Sampling, environment: Environment, monitor: GpuMonitor, ranks: Sequence[Result] = ()
) -> tuple[GpuUse, ...]:
    """The GPUs that the trial or rank used; others may work for other programs. `ranks` are all ranks of the trial.

    The energy per sample of a GPU counts the samples of the ranks that use this GPU.
    """
    return tuple(
        _gpu_use(gpu, result, sampling, _s_per_sample([one for one in ranks if _uses(one, gpu)] or [result]), monitor)
        for gpu in environment.gpus
        if _uses(result, gpu)
    )


def _uses(result: Result, gpu: Gpu) -> bool:
    return gpu.index in result.cuda_devices


def _s_per_sample(results: Sequence[Result]) -> float | None:
    """Seconds per sample that these processes take together; `None` if they took none."""
    samples_per_s = sum(one.measurement.samples_per_s for one in results if one.measurement.samples)
    return 1 / samples_per_s if samples_per_s else None


def _gpu_use(gpu: Gpu, result: Result, sampling: Sampling, s_per_sample: float | None, monitor: GpuMonitor) -> GpuUse:
    window = Window(result.measurement.began_s, result.measurement.ended_s, s_per_sample)
    found = gpu_use(gpu, sampling.gpus, window, monitor.why_not(gpu.index), result.cuda_memory)
    copying = result.copy_speed
    return with_copy_speed(found, copying if copying and copying.index == gpu.index else None)


def inside_with_blocked(result: Result, sampling: Sampling) -> LoaderInside:
    """The readings inside the trial, plus what the loading processes were blocked on, as seen from outside."""
    inside, workers = result.inside, result.worker_pids or result.loading_threads
    steady = result.measurement.began_s, result.measurement.ended_s
    shares = sampling.blocked_on(workers or [sampling.root], *steady)
    if workers:
        return replace(inside, workers=with_looks(inside.workers, shares))
    return replace(inside, main_process=with_looks(inside.main_process, shares))


def _steps_s(measurement: Measurement) -> Iterator[float]:
    """Seconds from each batch until the next was asked for."""
    moments_s = (measurement.began_s, *measurement.waits_at_s)
    for (before_s, at_s), wait_s in zip(pairwise(moments_s), measurement.waits_s, strict=False):
        yield max(0.0, at_s - before_s - wait_s)


def timeline_of(
    trial: str, began_s: float, result: Result, sampling: Sampling, environment: Environment
) -> list[TimelinePoint]:
    """Every reading of the monitors and every data wait, in seconds since the trial began."""
    measurement = result.measurement
    own = [reading for reading in sampling.gpus if reading.index in result.cuda_devices]
    points = [
        TimelinePoint(trial, round(at_s - began_s, 4), metric, value)
        for at_s, metric, value in (*series(sampling.samples, environment.cpus_allotted), *gpu_series(own))
        if at_s >= began_s
    ]
    waits = list(zip(measurement.waits_at_s, measurement.waits_s, strict=False))
    step = max(1, -(-len(waits) // MAX_WAIT_POINTS))
    groups = [waits[start : start + step] for start in range(0, len(waits), step)]
    longest = [max(group, key=lambda wait: wait[1]) for group in groups]
    return points + [TimelinePoint(trial, round(at_s - began_s, 4), "data_wait_s", wait_s) for at_s, wait_s in longest]


def _disk_rate(samples: Sequence[Sample]) -> float | None:
    """Bytes per second read from disk over the complete trial; the disk counters are read once per second."""
    known = [sample for sample in samples[::SLOW_EVERY] if sample.tree.read_bytes is not None]
    if len(known) < 2:
        return None
    read_bytes = (known[-1].tree.read_bytes or 0) - (known[0].tree.read_bytes or 0)
    return read_bytes / (known[-1].at_s - known[0].at_s)
