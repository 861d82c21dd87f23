"""Turns a profiler's recording into a run without conclusions: one trial of one configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version

from loaderbench.consumers import LOOP
from loaderbench.environment import describe_machine
from loaderbench.errors import printable
from loaderbench.profiler.known_loader import KnownLoader
from loaderbench.profiler.observer import Observer
from loaderbench.profiler.readings import (
    counted,
    kind_counted,
    make_trial,
    readings_of,
    stages_of_loop,
    takes_no_others,
)
from loaderbench.profiler.user_stages import AROUND
from loaderbench.recorder.loop import LoopRecorder
from loaderbench.records import DatasetSummary, Measured, PlanSummary, Readings
from loaderbench.records.words import count, utc_now

WAIT_OF_HOST = "data wait: host time in next(), since the loop used no CUDA device"
WAIT_OF_DEVICE = "data wait: time the CUDA device was idle, by events around next()"
FEW_OF_EACH = (
    "the loop takes one or two batches of each epoch: throughput and data wait exclude the waits for first batches. "
    "If it calls next(iter(loader)) in each step, create the iterator once and keep it"
)
STAGES_OF_DEVICE = "stages of the loop: time on the CUDA device's stream, by events"


@dataclass(frozen=True)
class Script:
    """A script that ran unchanged: its command, where it iterates over the loader, and whether it has ended."""

    command: str
    place: str
    has_ended: bool = False


def measured_so_far(
    name: str, warmup: int, recorder: LoopRecorder, observer: Observer, script: Script | None = None
) -> tuple[Measured, Readings]:
    """The recording so far, as a run without conclusions. `script` is the script that ran unchanged, if any."""
    config = observer.known.config
    environment = describe_machine(observer.known.start_method, observer.described_gpus, observer.no_gpu)
    has_ended = observer.loop_has_ended and (script is None or script.has_ended)
    trial = make_trial(recorder, observer, config, environment, measures_cost=has_ended)
    axes = {axis: [value] for axis, value in config.items()}
    own = {} if script is None else {"script": script.command}
    measured = Measured(
        name=name,
        suite={"name": name, "warmup": warmup, **own},
        environment=environment,
        dataset=_describe(observer.known, script.place if script else None),
        plan=PlanSummary(axes, 1, 1, 1, (config,), config, "the profiled config"),
        started_at=observer.began_at,
        finished_at=observer.ended_at or utc_now(),
        complete=not observer.raised,
        consumer=LOOP,
        trials=(trial,),
        kind="profile",
        notes=tuple(_notes(recorder, observer, warmup)),
        loaderbench_version=version("loaderbench"),
    )
    return measured, readings_of(recorder, observer, environment)


def _describe(known: KnownLoader, place: str | None) -> DatasetSummary:
    """A summary of the loader's dataset, preceded by the place where a script iterates over it."""
    samples, kind = known.samples, f"{place}, {known.kind}" if place else known.kind
    missing = dict.fromkeys(("classes", "total_files", "bad_files", "root"), "unknown in a profile")
    if samples is None:
        return DatasetSummary(kind, not_measured={"files": known.why_no_length, **missing})
    return DatasetSummary(f"{kind}, {samples:,} samples", files=samples, not_measured=missing)


def _notes(recorder: LoopRecorder, observer: Observer, warmup: int) -> Iterator[str]:
    """Yield notes on how the loop was recorded."""
    log = counted(recorder)
    if recorder.events is None:
        yield WAIT_OF_HOST
    else:
        yield WAIT_OF_DEVICE
        if observer.user_stages.marked:
            yield STAGES_OF_DEVICE
    divided = observer.user_stages.divided(kind_counted(recorder))
    if divided:
        yield f"stages of the loop: measured in {divided:,} of {log.batches:,} steps"
    around = stages_of_loop(recorder, observer).get(AROUND) if log.batches else None
    if around is not None and around.wall_s:
        cost = f"{1000 * around.wall_s:.3g} ms per batch"
        yield f"data wait: includes {cost} of code around the loader: {observer.code_around}"
    if takes_no_others(recorder) and log.batches:
        yield FEW_OF_EACH
    elif log is not recorder.log and log.batches:
        yield f"the loop ended within its warm-up of {warmup} batches; all but the first of each epoch are counted"
    if observer.passed:
        yield f"not recorded: {count(observer.passed, 'epoch')} of other loaders or nested loops"
    if log.timeline.batches_per_point > 1:
        yield f"the timeline shows the longest wait of every {log.timeline.batches_per_point} batches"
    if observer.raised:
        yield f"the loop raised {printable(observer.raised)}; results up to that point"
