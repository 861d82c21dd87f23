"""Runs trials: starts a process, lets it be watched to its end, and makes the record of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from loaderbench.environment import oom_kills
from loaderbench.monitors import GpuMonitor, Sampling
from loaderbench.plan import PlannedTrial
from loaderbench.recorder import why_missing
from loaderbench.records import Environment, Failure, TimelinePoint, Trial, Turns
from loaderbench.runner.explaining import explained
from loaderbench.runner.live import LiveTrial
from loaderbench.runner.orders import Result, TrialOrder
from loaderbench.runner.readings import readings_of, timeline_of, with_blocked
from loaderbench.runner.reference import ReferenceDecode
from loaderbench.runner.server import TrialServer

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
    """Measures orders on one machine: `run` one after another, or `begin` several that take turns."""

    def __init__(self, server: TrialServer, environment: Environment) -> None:
        self._server = server
        self._environment = environment
        self._gpu_monitor = GpuMonitor(environment.gpus)
        self._reference = ReferenceDecode()

    def run(self, order: TrialOrder) -> Outcome:
        """Measure one trial. Never raises for what happens inside it: a failure is a record too."""
        begun = self.begin(order)
        try:
            begun.live.follow()
        finally:
            begun.live.end()
        return self.outcome(begun)

    def begin(self, order: TrialOrder) -> Begun:
        """Start a trial's process; it has to be followed, and ended."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        before_s, kills = self._reference.time_s(), oom_kills()
        return Begun(LiveTrial(self._server, order, self._gpu_monitor), now, before_s, kills)

    def outcome(self, begun: Begun, turns: Turns | None = None) -> Outcome:
        """Make the record of a trial that is ended; its rate is that of its turns, where it took any."""
        live, order = begun.live, begun.live.order
        record = Trial(
            id=order.planned.id,
            config=order.planned.config,
            round=order.planned.round,
            rung=order.planned.rung,
            status="failed",
            started_at=begun.at,
            reference_decode_before_s=begun.reference_before_s,
            reference_decode_after_s=self._reference.time_s(),
            duration_s=live.took_s,
            log=f"logs/{order.log.name}",
        )
        if isinstance(live.found, Failure):
            return Outcome(_failed(record, live.found, order, begun.kills_before), [])
        timeline = timeline_of(record.id, live.began_s, live.found.measurement, live.sampling, self._environment)
        return Outcome(self._completed(record, live.found, live.sampling, turns), timeline)

    def _completed(self, record: Trial, result: Result, sampling: Sampling, turns: Turns | None) -> Trial:
        """Fill in what was measured."""
        inside = with_blocked(result.inside, sampling)
        readings = readings_of(result.measurement, sampling, self._environment, self._gpu_monitor.why_not)
        trial = replace(
            record,
            status="completed",
            recorder_s_per_batch=result.recorder_s_per_batch,
            samples_per_epoch=result.samples_per_epoch,
            **{**readings, **inside, "not_measured": {}},
        )
        if turns is not None:
            trial = replace(trial, turns=turns, samples_per_s=turns.samples_per_s)
        known = {**readings["not_measured"], **inside["not_measured"]}
        trial.not_measured.update(why_missing(trial, known, NO_LOOP))
        return trial


@dataclass(frozen=True)
class Begun:
    """A trial that was started at a time, and what the machine said before."""

    live: LiveTrial
    at: str
    reference_before_s: float
    kills_before: int | None


def _failed(record: Trial, why: Failure, order: TrialOrder, kills_before: int | None) -> Trial:
    status: Any = "timed_out" if why.kind == "hang" else "failed"
    gone = why_missing(record, {}, "the trial failed")
    return replace(record, status=status, failure=explained(why, order, kills_before), not_measured=gone)
