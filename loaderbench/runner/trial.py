"""Runs one trial: starts its process, watches it, ends it with all its children, and makes the record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from loaderbench.analysis.failures import classify, classify_exit, hang
from loaderbench.environment import oom_kills
from loaderbench.monitors import GpuMonitor, Sampler, Sampling
from loaderbench.plan import PlannedTrial
from loaderbench.recorder import why_missing
from loaderbench.records import Environment, Failure, TimelinePoint, Trial
from loaderbench.runner.child import trial_main
from loaderbench.runner.explaining import explained, with_clue
from loaderbench.runner.orders import Clue, Message, Phase, Raised, Result, TrialOrder
from loaderbench.runner.processes import GRACE_S, end_session
from loaderbench.runner.readings import readings_of, timeline_of, with_blocked
from loaderbench.runner.reference import ReferenceDecode
from loaderbench.runner.server import TrialServer
from loaderbench.runner.stacks import dump_stacks

LOG_END_BYTES = 4_000
CLUE_S = 5.0
FAILED_GRACE_S = 2.0  # for Python's own end of what has raised: semaphores, queues, workers
NO_LOOP = "a trial takes its batches without end, and its consumer in one piece"


@dataclass(frozen=True)
class Outcome:
    """A trial's record and what the monitors saw meanwhile."""

    trial: Trial
    timeline: Sequence[TimelinePoint]


def not_tried(planned: PlannedTrial, why: str) -> Trial:
    """The record of a trial that was pruned: nothing of it was run."""
    failure = Failure("pruned", f"not tried: {why}", "lower the other, or take this value out of the sweep")
    record = Trial(
        id=planned.id, config=planned.config, round=planned.round, rung=planned.rung, status="unavailable",
        failure=failure,
    )  # fmt: skip
    record.not_measured.update(why_missing(record, {}, "it was not tried"))
    return record


class TrialRunner:
    """Measures orders one after another on one machine."""

    def __init__(self, server: TrialServer, environment: Environment) -> None:
        self._server = server
        self._environment = environment
        self._gpu_monitor = GpuMonitor(environment.gpus)
        self._reference = ReferenceDecode()

    def run(self, order: TrialOrder) -> Outcome:
        """Measure one trial. Never raises for what happens inside it: a failure is a record too."""
        started_at, began_s = datetime.now(timezone.utc), time.monotonic()
        before_s, kills = self._reference.time_s(), oom_kills()
        watched = self._watch(order)
        record = Trial(
            id=order.planned.id,
            config=order.planned.config,
            round=order.planned.round,
            rung=order.planned.rung,
            status="failed",
            started_at=started_at.isoformat(timespec="seconds"),
            reference_decode_before_s=before_s,
            reference_decode_after_s=self._reference.time_s(),
            duration_s=time.monotonic() - began_s,
            log=f"logs/{order.log.name}",
        )
        if isinstance(watched.end, Failure):
            status: Any = "timed_out" if watched.end.kind == "hang" else "failed"
            failure = explained(watched.end, order, kills)
            gone = why_missing(record, {}, "the trial failed")
            return Outcome(replace(record, status=status, failure=failure, not_measured=gone), [])
        result, sampling = watched.end, watched.sampling
        inside = with_blocked(result.inside, sampling)
        readings = readings_of(result.measurement, sampling, self._environment, self._gpu_monitor.why_not)
        trial = replace(
            record,
            status="completed",
            recorder_s_per_batch=result.recorder_s_per_batch,
            samples_per_epoch=result.samples_per_epoch,
            **{**readings, **inside, "not_measured": {}},
        )
        known = {**readings["not_measured"], **inside["not_measured"]}
        trial.not_measured.update(why_missing(trial, known, NO_LOOP))
        return Outcome(trial, timeline_of(trial.id, watched.began_s, result.measurement, sampling, self._environment))

    def _watch(self, order: TrialOrder) -> _Watched:
        ours, theirs = self._server.pipe()
        began_s = time.monotonic()
        process = self._server.start(trial_main, order, theirs)
        theirs.close()
        sampler = Sampler(process.pid or -1, self._gpu_monitor)
        sampler.start()
        grace_s = 0.0
        try:
            end = _follow(process, ours, order, began_s)
            grace_s = 0.0 if isinstance(end, Failure) and end.kind == "hang" else FAILED_GRACE_S
            if isinstance(end, Result):
                sampler.read_memory()
                grace_s = GRACE_S
        finally:
            sampling = sampler.stop()
            end_session(process, ours if grace_s else None, grace_s)
            ours.close()
        return _Watched(end, sampling, began_s)


@dataclass(frozen=True)
class _Watched:
    end: Result | Failure
    sampling: Sampling
    began_s: float


def _follow(process: BaseProcess, pipe: Any, order: TrialOrder, began_s: float) -> Result | Failure:
    """Listen until the trial has a result, has raised, has died or has taken too long."""
    timeout_s, phase = order.suite.measure.timeout_s, "its start"
    while True:
        left_s = began_s + timeout_s - time.monotonic()
        if left_s <= 0 or not wait([pipe, process.sentinel], left_s):
            said = _end_of(order.log)
            return hang(timeout_s, phase, dump_stacks(process.pid, order.log), said)
        message = _receive(pipe)
        if isinstance(message, Phase):
            phase = message.name
        elif isinstance(message, Result):
            return message
        elif isinstance(message, Raised):
            return with_clue(classify(message.text), _clue(pipe))
        else:
            process.join(1.0)
            return classify_exit(process.exitcode or 0, _end_of(order.log))


def _clue(pipe: Any) -> str:
    """What the trial says of what it raised, if it does so soon; then it may end by itself."""
    clue = _receive(pipe) if pipe.poll(CLUE_S) else None
    return clue.text if isinstance(clue, Clue) else ""


def _receive(pipe: Any) -> Message | None:
    """The next message; `None` when the other end is gone."""
    try:
        return pipe.recv() if pipe.poll() else None
    except (EOFError, OSError):
        return None


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LOG_END_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
