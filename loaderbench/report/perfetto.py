"""A trial as a Chrome trace for ui.perfetto.dev and chrome://tracing, with the lanes of the report.

Source: Trace Event Format (Google), https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsNchNAySU;
times are microseconds, and the first is 0.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path

from loaderbench.errors import UsageError
from loaderbench.records import Readings, RunRecord, Trial, config_name
from loaderbench.records.metrics import BY_ID
from loaderbench.records.timeline import Series
from loaderbench.report.lanes import MOST_BATCHES, Lanes, Made, Piece, key_of, lanes_of
from loaderbench.report.metrics import WAIT
from loaderbench.report.model import Json
from loaderbench.report.view import View, has_data_wait

PROCESS = 1
CALLS, STEPS, FIRST_WORKER = 1, 2, 10
"""Thread IDs of the trace: the calls of `next()`, the training step, and the first worker."""

NOTHING_KEPT = "no batches of its trials were saved: the run was killed, or an older version made it; measure again"
NOT_OF_AB = (
    "a run of ab keeps no batches; export its trials with --to csv or --to parquet, "
    "or measure one version with loaderbench run"
)
_KEEPING = ("sweep", "profile")
_EDGE_US = 0.5  # places the ends of an arrow inside the slices that it connects


def chrome_trace(run: RunRecord, readings: Readings, trial: str | None = None) -> Json:
    """The trace of a trial, by default the median trial of the verdict's configuration.

    Without a consumer, it has the calls of `next()`, but no waits and steps.
    Raises `UsageError` for a trial without recorded batches.
    """
    shown, lanes = _chosen(View(run, readings), trial)
    waits = has_data_wait(shown.consumer or run.consumer)
    read = [(name, own) for name, own in readings.of(shown.id).items() if waits or name != WAIT.strip.series]
    moments = [made.began_s for own in lanes.makers.values() for made in own]
    moments += [call.began_s for call in lanes.calls]
    moments += [at_s for _, (seconds, _) in read for at_s in seconds if isfinite(at_s)]
    zero_s = min(moments, default=0.0)
    events = [
        *_names(lanes, f"{run.name}, trial {shown.id}: {config_name(shown.config)}", with_steps=waits),
        *(event for worker, own in lanes.makers.items() for made in own for event in _batch(made, worker)),
        *(_slice(CALLS, f"next() for batch {call.batch.batch}", call, "next") for call in lanes.calls),
        *(_slice(STEPS, _NAMES[piece.what], piece, piece.what) for piece in sorted(lanes.loop, key=_begin) if waits),
        *_arrows(lanes),
        *(_counter("ready batches", one.at_s, one.count) for one in lanes.ready),
        *(event for name, own in read for event in _readings(_metric(name), own)),
    ]
    return {
        "traceEvents": [_shifted(event, zero_s) for event in events],
        "displayTimeUnit": "ms",
        "otherData": {"made by": f"loaderbench {run.loaderbench_version}", "run": run.name, "trial": shown.id},
    }


def write_trace(path: Path, trace: Json) -> None:
    """Write the trace as JSON, compressed if the name ends in `.gz`. Raises `OSError`."""
    data = json.dumps(trace, allow_nan=False, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


_NAMES = {"wait": "waiting for data", "step": "training step", "between": "between epochs"}


def _chosen(view: View, trial: str | None) -> tuple[Trial, Lanes]:
    if trial is None:
        lanes = lanes_of(view)
        if lanes is None:
            raise UsageError(f"no trace can be drawn: {_why_none(view)}")
        return lanes
    recorded = view.readings.batches
    if trial not in view.trials or trial not in recorded:
        raise UsageError(f"trial {trial}: {_why_not(view, trial)}")
    return view.trials[trial], Lanes(recorded[trial][:MOST_BATCHES])


def _why_none(view: View) -> str:
    if view.run.kind == "ab":
        return NOT_OF_AB
    known = _known(view)
    choose = "choose another trial with export --to perfetto --trial"
    return f"no batch of the verdict's config was kept; {choose}: {known}" if known else NOTHING_KEPT


def _why_not(view: View, trial: str) -> str:
    """Why a trial has no trace: it does not exist, its role keeps no batches, or its batches were lost."""
    known = _known(view)
    if not known:
        return _why_none(view)
    known_trial = next((one for one in view.run.trials if one.id == trial), None)
    if known_trial is None:
        return known
    if known_trial.role not in _KEEPING:
        return f"only trials of the sweep keep batches; {known}"
    if known_trial.status != "completed":
        return f"it was not completed, so it has no batches; {known}"
    return f"its batches were lost: the run was killed before it wrote them, and resumed; {known}"


def _known(view: View) -> str:
    """The trials that can be drawn, as a hint; empty if there are none."""
    names = [name for name in view.readings.batches if name in view.trials]
    return f"expected one of {', '.join(names)}" if names else ""


def _begin(piece: Piece) -> float:
    return piece.began_s


def _names(lanes: Lanes, process: str, *, with_steps: bool) -> Iterator[Json]:
    yield _named("process_name", None, process)
    threads = {CALLS: "main process: next()"} | ({STEPS: "training step"} if with_steps else {})
    threads |= {_thread(worker): f"worker {worker}" for worker in lanes.makers if worker is not None}
    for thread, name in threads.items():
        yield _named("thread_name", thread, name)
        yield {"ph": "M", "name": "thread_sort_index", "pid": PROCESS, "tid": thread, "args": {"sort_index": thread}}


def _named(what: str, thread: int | None, name: str) -> Json:
    return {"ph": "M", "name": what, "pid": PROCESS, "args": {"name": name}} | ({"tid": thread} if thread else {})


def _thread(worker: int | None) -> int:
    """The thread ID of a worker. The main process loads inside `next()`."""
    return CALLS if worker is None else FIRST_WORKER + worker


def _batch(made: Made, worker: int | None) -> Iterator[Json]:
    """A slice for a batch, with nested slices for its stages."""
    batch = made.batch
    whole = Piece("batch", batch, made.began_s, made.ended_s)
    more = {"samples": batch.samples, "seconds by stage": batch.stages_s}
    yield _slice(_thread(worker), f"batch {batch.batch}", whole, "batch", more)
    for piece in made.stages():
        yield _slice(_thread(worker), piece.what, piece, "stage")


def _slice(thread: int, name: str, piece: Piece, category: str, more: Json | None = None) -> Json:
    args = {"epoch": piece.batch.epoch, "batch": piece.batch.batch} | (more or {})
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": PROCESS,
        "tid": thread,
        "ts": piece.began_s * 1e6,
        "dur": max(0.0, piece.seconds) * 1e6,
        "args": args,
    }


def _arrows(lanes: Lanes) -> Iterator[Json]:
    """Arrows from each batch of a worker to the call that received it."""
    made_by_key = {key_of(one.batch): one for own in lanes.makers.values() for one in own}
    for number, call in enumerate(lanes.calls):
        source = made_by_key.get(key_of(call.batch))
        if source is not None and source.batch.worker is not None:
            start = max(source.began_s * 1e6, source.ended_s * 1e6 - _EDGE_US)
            end = max(call.began_s * 1e6, call.ended_s * 1e6 - _EDGE_US)
            same = {"name": "hand-over", "cat": "hand-over", "id": number, "pid": PROCESS}
            yield same | {"ph": "s", "tid": _thread(source.batch.worker), "ts": start}
            yield same | {"ph": "f", "bp": "e", "tid": CALLS, "ts": end}


def _counter(name: str, at_s: float, value: float) -> Json:
    return {"ph": "C", "name": name, "pid": PROCESS, "ts": at_s * 1e6, "args": {"value": value}}


def _readings(name: str, series: Series) -> Iterator[Json]:
    """A counter for one metric, without values that are not finite."""
    for at_s, value in zip(*series, strict=True):
        if isfinite(at_s) and isfinite(value):
            yield _counter(name, at_s, value)


def _metric(name: str) -> str:
    """The label of a reading as in tables, with the unit it is stored in."""
    metric = BY_ID.get(name)
    return f"{metric.label} ({metric.unit})" if metric else name


def _shifted(event: Json, zero_s: float) -> Json:
    """The event with times relative to the trace's first one, rounded to nanoseconds."""
    if "ts" not in event:
        return event
    begin = round(event["ts"] - zero_s * 1e6, 3)
    end = round(event["ts"] + event.get("dur", 0.0) - zero_s * 1e6, 3)
    return event | {"ts": begin} | ({"dur": round(end - begin, 3)} if "dur" in event else {})
