"""Runs trials: starts a process, follows it to its end, and makes the trial's record."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from PIL import Image

from loaderbench.datasets.photos import reference_jpeg
from loaderbench.diagnosis.failures import FORK_SERVER_KILLED, fork_server_killed
from loaderbench.environment import oom_kills, refused_processes
from loaderbench.monitors import GpuMonitor, Sampling
from loaderbench.recorder import completed_trial, with_reasons
from loaderbench.records import (
    BatchTimes,
    Environment,
    Failure,
    PlannedTrial,
    Status,
    TimelinePoint,
    TimeSlices,
    Trial,
)
from loaderbench.records.words import utc_now
from loaderbench.runner.failure_details import explained
from loaderbench.runner.patience import Neighbors
from loaderbench.runner.protocol import Result, TrialOrder
from loaderbench.runner.rank import rank_log
from loaderbench.runner.readings import inside_with_blocked, loop_times, rank_readings, resource_use, timeline_of
from loaderbench.runner.server import ForkServerKilledError, TrialServer
from loaderbench.runner.trial_process import TrialProcess

_NOT_IN_TRIALS = {"step_stages": "trials do not split the training step"}


@dataclass(frozen=True)
class TrialOutcome:
    """A trial's record, the readings of the monitors, and some of its batches, in seconds since the trial began."""

    trial: Trial
    timeline: Sequence[TimelinePoint]
    batches: Sequence[BatchTimes] = ()


def not_tried(planned: PlannedTrial, why: str, consumer: str) -> Trial:
    """The record of a pruned trial, which never ran. `consumer` is the kind it would have had."""
    failure = Failure("pruned", f"not tried: {why}", "fix the failed trial, or remove this config")
    return with_reasons(Trial(**vars(planned), status="unavailable", consumer=consumer, failure=failure), "not tried")


class TrialRunner:
    """Measures orders on one machine: `run` measures one at a time, `begin` starts trials that run in time slices."""

    def __init__(self, server: TrialServer, environment: Environment) -> None:
        self._server = server
        self._environment = environment
        self._gpu_monitor = GpuMonitor(environment.gpus)
        self._reference, self._neighbors = ReferenceDecode(), Neighbors()

    def run(self, order: TrialOrder) -> TrialOutcome:
        """Measure a trial, and again if the machine paused or the fork server was killed. Its errors become records."""
        outcome, disturbed = self._run_once(order)
        return self._run_once(order)[0] if disturbed else outcome

    def _run_once(self, order: TrialOrder) -> tuple[TrialOutcome, bool]:
        """The trial's outcome, and whether an external event spoiled the trial."""
        at, kills = utc_now(), oom_kills()
        try:
            begun = self.begin(order)
        except ForkServerKilledError:
            return TrialOutcome(_never_started(order, at, kills), []), True
        try:
            begun.process.follow()
        finally:
            begun.process.end()
        outcome = self.outcome(begun)
        failure = outcome.trial.failure
        lost_server = failure is not None and failure.kind == FORK_SERVER_KILLED
        return outcome, lost_server or begun.process.paused_s > 0

    def begin(self, order: TrialOrder) -> Begun:
        """Start a trial's process, which must be followed and ended. Raises `ForkServerKilledError`."""
        at, before_s, kills = utc_now(), self._reference.time_s(), oom_kills()
        order = replace(order, patience_s=self._neighbors.patience_s(order))
        refused = refused_processes()
        return Begun(TrialProcess(self._server, order, self._gpu_monitor), at, before_s, kills, refused)

    def followed(self, begun: Begun) -> None:
        """Compare later trials with one that has its result, even if its process is still alive."""
        if not isinstance(begun.process.found, Failure):
            self._neighbors.add(begun.process.order, begun.process.longest_idle_s)

    def outcome(self, begun: Begun, slices: TimeSlices | None = None) -> TrialOutcome:
        """Make the record of a trial that has ended; its rate is that of its time slices, if it had any."""
        process, order = begun.process, begun.process.order
        trial = replace(
            _initial_record(order, begun.at),
            reference_decode_before_s=begun.reference_before_s,
            reference_decode_after_s=self._reference.time_s(),
            duration_s=process.took_s,
            log=f"logs/{order.log.name}",
        )
        found, sampling = process.found, process.sampling
        if isinstance(found, Failure):
            return TrialOutcome(_failed(trial, found, begun), [])
        timeline = timeline_of(trial.id, process.began_s, found, sampling, self._environment)
        batches = [batch.since(process.began_s) for batch in found.batches]
        completed = self._completed(trial, found, sampling, slices)
        self._neighbors.add(order, process.longest_idle_s)
        return TrialOutcome(completed, timeline, batches)

    def _completed(self, trial: Trial, result: Result, sampling: Sampling, slices: TimeSlices | None) -> Trial:
        """The trial with all measured values."""
        times = loop_times(result)
        times = replace(times, not_measured={**_NOT_IN_TRIALS, **times.not_measured})
        if slices is not None:
            trial, times = replace(trial, time_slices=slices), replace(times, samples_per_s=slices.samples_per_s)
        use = resource_use(result, sampling, self._environment, self._gpu_monitor)
        if result.slowest_rank is not None:
            found = rank_readings(result, sampling, self._environment, self._gpu_monitor)
            trial = replace(trial, ranks=found, slowest_rank=result.slowest_rank)
            rate = result.ranks[result.slowest_rank].measurement.samples_per_s
            use = replace(use, metrics={**use.metrics, "slowest_rank_samples_per_s": rate})
        return completed_trial(trial, times, use, inside_with_blocked(result, sampling), default="not recorded")


@dataclass(frozen=True)
class Begun:
    """A started trial: when it started, and the state of the machine before."""

    process: TrialProcess
    at: str
    reference_before_s: float
    kills_before: int | None
    refused_before: int | None = None


def _initial_record(order: TrialOrder, at: str) -> Trial:
    return Trial(**vars(order.planned), status="failed", consumer=order.consumer, started_at=at)


def _never_started(order: TrialOrder, at: str, kills_before: int | None) -> Trial:
    failure = explained(fork_server_killed(), order, kills_before, None)
    return with_reasons(replace(_initial_record(order, at), failure=failure), "the trial failed")


def _failed(trial: Trial, why: Failure, begun: Begun) -> Trial:
    status: Status = "timed_out" if why.kind == "hang" else "failed"
    order = begun.process.order
    failure = explained(why, order, begun.kills_before, begun.refused_before)
    log = trial.log if failure.rank is None else f"logs/{rank_log(order.log, failure.rank).name}"
    return with_reasons(replace(trial, status=status, failure=failure, log=log), "the trial failed")


REPEATS = 5


class ReferenceDecode:
    """Times the decoding of a fixed JPEG in this process, as a measure of the machine's speed."""

    def __init__(self) -> None:
        self._jpeg = reference_jpeg()

    def time_s(self) -> float:
        """The current median decode time in seconds; takes some ten milliseconds."""
        return sorted(self._once_s() for _ in range(REPEATS))[REPEATS // 2]

    def _once_s(self) -> float:
        began_s = time.perf_counter()
        with Image.open(io.BytesIO(self._jpeg)) as image:
            image.convert("RGB")
        return time.perf_counter() - began_s
