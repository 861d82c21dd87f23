"""Turns a profiler's recording into the single trial of its run."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from loaderbench.consumers import LOOP
from loaderbench.consumers.device_clock import clock_of_device
from loaderbench.diagnosis.failures import classify
from loaderbench.monitors import Window, cpu_percent, gpu_series, gpu_use, over_time, series, with_looks
from loaderbench.profiler.observer import Observer
from loaderbench.profiler.other_loaders import with_other_waits
from loaderbench.profiler.user_stages import AROUND
from loaderbench.ranks import rank_of_training, this_host, this_rank
from loaderbench.recorder import completed_trial, loader_inside, spread_of, with_reasons
from loaderbench.recorder.batches import APART, STEADY, WARMUP, BatchLog
from loaderbench.recorder.inside import NOT_ASKED
from loaderbench.recorder.loop import LoopRecorder
from loaderbench.recorder.overhead import loop_s_per_batch
from loaderbench.records import (
    CodeAround,
    CodeLooks,
    Config,
    Environment,
    Epochs,
    Failure,
    LoaderInside,
    LoopTimes,
    Readings,
    ResourceUse,
    Spread,
    StageCost,
    Taking,
    TimelinePoint,
    Trial,
    WaitParts,
)
from loaderbench.records.words import NO_WORKER_PROCESSES
from loaderbench.tracing.reading import tracing_s_per_sample

TRIAL = "profile"

AT_THE_END = "measured when the loop has ended"
ONE_OF_EACH = "each batch was the first or last of its epoch; boundary_s is the wait for the first"
IN_THE_STEPS = "the loop leaves each epoch at its batch, so this time is part of the steps"
_OPENCV = re.compile(r"\bcv2?\.im(read|decode)\(")


def make_trial(
    recorder: LoopRecorder, observer: Observer, config: Config, environment: Environment, *, measures_cost: bool = True
) -> Trial:
    """The trial, with a reason for every missing value.

    `measures_cost`: also measure the cost of recording, with separate loops. They would disturb a loop that is still
    running.
    """
    log = counted(recorder)
    trial = Trial(
        id=TRIAL,
        role="profile",
        config=config,
        round=1,
        status="failed",
        consumer=LOOP,
        rank=this_rank(),
        host="" if rank_of_training() is None else this_host(),
    )
    if not log.batches or not log.samples:
        failure = classify(observer.raised) if observer.raised else _no_batches(recorder, log)
        return with_reasons(replace(trial, failure=failure), "nothing was measured")
    workers = observer.known.workers > 0
    times = _loop_times(recorder, observer, measures_cost=measures_cost)
    inside = _inside(observer, recorder.image_dtype, measures_cost=measures_cost)
    times, inside = with_code_around(times, inside, observer.code_around, workers=workers)
    use = _resource_use(recorder, observer, environment)
    trial = completed_trial(trial, times, use, inside, default="not measured in a profile")
    return with_other_waits(trial, observer.other_loaders.waited_s)


def _loop_times(recorder: LoopRecorder, observer: Observer, *, measures_cost: bool) -> LoopTimes:
    log, steady = counted(recorder), recorder.log.batches > 0
    return LoopTimes(
        samples_per_s=log.samples / log.wall_s,
        data_wait_share=min(1.0, sum(log.waits.sums_s) / log.wall_s),
        time_to_first_batch_s=recorder.first_batch_s,
        batches=log.batches,
        samples=log.samples,
        warmup_batches=recorder.warmed.batches if steady else 0,
        steady_s=log.wall_s,
        samples_per_epoch=observer.known.samples_per_epoch,
        data_wait=None if takes_no_others(recorder) else spread_of(log.waits),
        step=spread_of(log.steps),
        step_stages=stages_of_loop(recorder, observer) or None,
        step_line=observer.step_lines.busiest(),
        epochs=_epochs(recorder, observer),
        recorder_s_per_batch=_recorder_s_per_batch(recorder.events is not None) if measures_cost else None,
        not_measured={
            "data_wait": ONE_OF_EACH,
            "recorder_s_per_batch": AT_THE_END,
            "samples_per_epoch": observer.known.why_no_length,
            "step_stages": "no part of the loop is marked with Profiler.stage()",
            "step_line": observer.step_lines.why_none,
        },
    )


def stages_of_loop(recorder: LoopRecorder, observer: Observer) -> dict[str, StageCost]:
    """Seconds per counted batch of each stage, including code around the loader."""
    log = counted(recorder)
    step = spread_of(log.steps)
    return observer.user_stages.costs(kind_counted(recorder), log.batches, step.mean_s if step else None)


def _batch_traits(image_dtype: str | None) -> dict[str, str]:
    """The trait that follows from the data type of a batch's images, as `LoopRecorder` found it."""
    if image_dtype is None:
        return {}
    if not image_dtype:
        return {"no_images": "no tensor of a batch has the shape of images"}
    trait = {"uint8": "uint8_samples", "float32": "float_samples"}.get(image_dtype)
    return {trait: image_dtype} if trait else {}


def _decoder_traits(looks: CodeLooks | None) -> dict[str, str]:
    """The trait `opencv`, if a line of the user's code decodes with it."""
    lines = (frame.text for frame in looks.frames) if looks else ()
    found = next((line for line in lines if _OPENCV.search(line)), None)
    return {"opencv": found} if found else {}


@cache
def _recorder_s_per_batch(with_events: bool) -> float:
    """Cost of recording per batch, in seconds.

    Cached, because the recording of a script is saved repeatedly while the script runs.
    """
    return loop_s_per_batch(clock_of_device) if with_events else loop_s_per_batch()


def _inside(observer: Observer, image_dtype: str | None, *, measures_cost: bool) -> LoaderInside:
    """What was traced inside the loader, and the states of the processes that load."""
    known, traced = observer.known, observer.traced()
    with_workers = known.workers > 0
    found = loader_inside(traced, known.path_of, stalls=observer.stalls if with_workers else None)
    resources, looks = observer.resources, observer.blocked_on()
    workers, main_process = resources.workers.states(), resources.main_process.states()
    return replace(
        found,
        tracing_s_per_sample=tracing_s_per_sample(traced) if traced and measures_cost else None,
        workers=with_looks(workers, looks),
        main_process=main_process if with_workers else with_looks(main_process, looks),
        busy_thread=observer.busy_thread,
        machine=resources.machine.use(),
        dataset_traits={
            **known.traits(),
            **_batch_traits(image_dtype),
            **_decoder_traits(found.code_looks),
            **({"new_loader": "a later epoch has another DataLoader"} if observer.is_renewed else {}),
        },
        not_measured={
            **found.not_measured,
            "workers": _why_no_workers(observer),
            "main_process": resources.main_process.why_not(),
            "machine": resources.machine.why_not(),
            "tracing_s_per_sample": NOT_ASKED if measures_cost else AT_THE_END,
        },
    )


def _resource_use(recorder: LoopRecorder, observer: Observer, environment: Environment) -> ResourceUse:
    resources, readings = observer.resources, observer.gpu_thread.readings
    why_not, log = observer.gpu_monitor.why_not, counted(recorder)
    window = Window(*observer.window, log.wall_s / log.samples, tuple(observer.gpu_thread.pauses))
    return ResourceUse(
        cpu_percent_of_allotted=cpu_percent(resources.taken, environment.cpus_allotted, resources.pauses_s),
        rss_bytes=max((size for one in resources.taken if (size := one.tree.rss_bytes) is not None), default=None),
        pss_bytes=resources.pss_bytes,
        gpus=tuple(
            gpu_use(gpu, readings, window, why_not(gpu.index), observer.peak_memory) for gpu in observer.gpus_in_use
        ),
        metrics=over_time([sample.gauges for sample in resources.taken]),
        not_measured={
            "cpu_percent_of_allotted": "the steady state was shorter than two monitor readings",
            "rss_bytes": "the steady state was shorter than one monitor reading",
            "pss_bytes": "this system does not report proportional memory (PSS)",
        },
    )


def _no_batches(recorder: LoopRecorder, log: BatchLog) -> Failure:
    """Why nothing could be counted, with what to do about it."""
    if log.batches:
        message, hint = "empty batches: their first dimension is 0", "look at what the collate function returns"
    elif recorder.first_batch_s is not None:
        message = "no batch could be counted: each was the first or last of a single epoch"
        hint = "let an epoch run for at least three batches; next(iter(loader)) begins a new one each time"
    elif recorder.begun:
        message = "the loader gave no batch"
        hint = "check the dataset's length; with drop_last=True, it has to fill one batch"
    else:
        message = "no batch was taken through Profiler.iter()"
        hint = "iterate over prof.iter(loader) while the profiler is running"
    return Failure(kind="no_batches", message=message, hint=hint)


def counted(recorder: LoopRecorder) -> BatchLog:
    """The batches that count: those of the steady state, or of the warm-up if the loop was not longer.

    In a loop that takes one or two batches of each epoch, these are all batches.
    """
    if takes_no_others(recorder):
        return recorder.apart.log()
    return recorder.log if recorder.log.batches else recorder.warmed


def takes_no_others(recorder: LoopRecorder) -> bool:
    """Whether all batches so far are kept apart: each was the first or last of its epoch."""
    return not (recorder.log.batches or recorder.warmed.batches)


def kind_counted(recorder: LoopRecorder) -> int:
    """The kind of the batches that count."""
    return APART if takes_no_others(recorder) else STEADY if recorder.log.batches else WARMUP


def readings_of(recorder: LoopRecorder, observer: Observer, environment: Environment) -> Readings:
    """Waits, readings and a selection of batches, in seconds since the steady state began."""
    log = counted(recorder)
    began_s = log.began_s or 0.0
    points = [(at_s, "data_wait_s", wait_s) for at_s, wait_s in log.timeline.shown()]
    points += series(observer.resources.taken, environment.cpus_allotted)
    points += (point for point in gpu_series(observer.gpu_thread.readings) if point[0] >= observer.window[0])
    found = Readings(TimelinePoint(TRIAL, round(at_s - began_s, 4), name, value) for at_s, name, value in points)
    found.keep_batches(TRIAL, (batch.since(began_s) for batch in recorder.batches()))
    return found


def _epochs(recorder: LoopRecorder, observer: Observer) -> Epochs:
    between_line, has_boundary = observer.between_lines.busiest(), recorder.begun > 1
    between_s = recorder.between_s / (recorder.begun - 1) if has_boundary else None
    if takes_no_others(recorder) and recorder.apart.has_left:
        between_s = None
    persist = observer.known.config.get("persistent_workers")
    return recorder.boundaries.record(
        recorder.begun,
        observer.trace.taking.start_s if observer.trace is not None else None,
        workers_persist=None if persist is None else bool(persist),
        between_s=between_s,
        between_line=between_line,
        not_measured={
            **({} if between_s is not None else {"between_s": IN_THE_STEPS if has_boundary else "there was one epoch"}),
            **({} if between_line else {"between_line": observer.between_lines.why_none}),
        },
    )


def _why_no_workers(observer: Observer) -> str:
    if observer.known.workers:
        return observer.resources.workers.why_not()
    return NO_WORKER_PROCESSES


def with_code_around(
    times: LoopTimes, inside: LoaderInside, place: str, *, workers: bool
) -> tuple[LoopTimes, LoaderInside]:
    """Move the time of code around the loader from the steps to the waits.

    The outermost iterator, at `place`, is treated as the loader. Only its mean time per batch is known, so spreads are
    shifted by that mean.
    """
    stages = dict(times.step_stages or {})
    cost = stages.pop(AROUND, None)
    if cost is None or not cost.wall_s:
        return times, inside
    around_s, steady_s = cost.wall_s, times.steady_s or 0.0
    share = (times.data_wait_share or 0.0) + (around_s * (times.batches or 0) / steady_s if steady_s else 0.0)
    times = replace(
        times,
        data_wait_share=min(1.0, share),
        data_wait=_shifted(times.data_wait, around_s),
        step=_shifted(times.step, -around_s),
        step_stages=stages or None,
    )
    return times, replace(
        inside,
        taking=_taking(inside.taking, cost, place, workers=workers),
        wait_parts=_parts(inside.wait_parts, around_s, times.batches or 0) if workers else inside.wait_parts,
    )


def _taking(taking: Taking | None, cost: StageCost, place: str, *, workers: bool) -> Taking | None:
    if taking is None:
        return None
    wall_s = cost.wall_s or 0.0
    return Taking(
        wall_s=taking.wall_s + wall_s,
        cpu_s=taking.cpu_s + (cost.cpu_s or 0.0),
        sampler_s=taking.sampler_s + (wall_s if workers else 0.0),
        around=CodeAround(place=place, wall_s=wall_s),
    )


def _parts(parts: WaitParts | None, around_s: float, batches: int) -> WaitParts:
    """Wait parts with the code's time added. Without other parts, the loop never waited in the loader itself."""
    known = parts or WaitParts(
        batches=batches, not_begun_s=0.0, making_s=0.0, order_s=0.0, transport_s=0.0, main_process_s=0.0
    )
    return replace(known, main_process_s=known.main_process_s + around_s)


def _shifted(times: Spread | None, by_s: float) -> Spread | None:
    if times is None:
        return None
    seconds = {name: max(0.0, value + by_s) for name, value in vars(times).items() if name != "count"}
    return replace(times, **seconds)
