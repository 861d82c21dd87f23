"""Measures the trials of a round in time slices: all are alive, and one at a time runs, for a tenth of a second.

A neighbor that comes and goes within a second then affects all trials alike. Between its slices, all processes of a
trial are stopped, even in the middle of a batch, and its clock counts only its slices. Each pass runs in the reverse
order of the previous one, which cancels drift. Source: Jones and Kenward, "Design and Analysis of Cross-Over Trials".
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Protocol

from loaderbench import host_memory
from loaderbench.environment import process_limit, read_limits
from loaderbench.monitors import Sampling, proc
from loaderbench.recorder.measure import FEWEST_BATCHES
from loaderbench.records import Failure, PlannedTrial, TimeSlices
from loaderbench.runner import Begun, ForkServerKilledError, TrialOutcome
from loaderbench.runner.guard import SessionGuard
from loaderbench.runner.trial_process import TrialProcess

LONGEST = 4.0  # maximum time in slices, as a multiple of the requested seconds, for batches that take long
ENOUGH_PROCESSES = 256  # a dozen trials at a time, each with a few workers and their threads
ROOM = 2.0  # memory that must be free before another trial starts, as a multiple of the largest so far

Started = Callable[[PlannedTrial], None]
Keep = Callable[[TrialOutcome], None]


class Measures(Protocol):
    """An object that measures trials, alone or several at a time, such as `TrialMeasurer`."""

    @property
    def sliced_seconds(self) -> float:
        """Total seconds in time slices for each trial."""

    def __call__(self, planned: PlannedTrial) -> TrialOutcome:
        """Measure a trial alone."""

    def begin(self, planned: PlannedTrial) -> Begun:
        """Start a trial that runs in time slices."""

    def followed(self, begun: Begun) -> None:
        """Record that a started trial has its result: later trials may take ten times as long without progress."""

    def outcome(self, begun: Begun, slices: TimeSlices | None) -> TrialOutcome:
        """The outcome of a trial that has ended."""

    def guard(self) -> AbstractContextManager[SessionGuard]:
        """A guard that ends stopped trials if the run is killed."""


class SlicedRounds:
    """Measures rounds in time slices as long as that is possible, and otherwise sequentially.

    Time slices are not possible for trials that use a GPU, whose memory may fit only one, or that have several ranks,
    which end together (`is_alone`); for a loader that cannot be stopped, or that waits so long for storage that
    stopping it would speed it up; when memory or processes run short; without `/proc`; and outside Linux. `seconds` is
    the total time in slices of a trial, by default that of a fix.
    """

    def __init__(
        self,
        measure: Measures,
        is_alone: Callable[[PlannedTrial], bool] = lambda _: False,
        seconds: float | None = None,
    ) -> None:
        self._measure, self._is_alone, self._seconds = measure, is_alone, seconds
        few_processes = (process_limit() or ENOUGH_PROCESSES) < ENOUGH_PROCESSES
        self._in_slices = sys.platform == "linux" and proc.available() and not few_processes

    def run(self, planned: Sequence[PlannedTrial], started: Started, keep: Keep) -> None:
        """Measure every trial once; `keep` is called with each outcome, even if a signal ends the round."""
        failed, left = list[PlannedTrial](), planned
        if self._in_slices and not any(map(self._is_alone, planned)):
            try:
                failed, left = self._run_in_slices(planned, started, keep)
            except ForkServerKilledError:  # raised before anything was measured
                self._in_slices = False
        for one in (*failed, *left):
            started(one)
            outcome = self._measure(one)
            keep(outcome)
            if one in failed and outcome.trial.status == "completed":  # it fails only alongside the others
                self._in_slices = False

    def _run_in_slices(
        self, planned: Sequence[PlannedTrial], started: Started, keep: Keep
    ) -> tuple[list[PlannedTrial], Sequence[PlannedTrial]]:
        """Measure the round; return the trials that failed alongside others, and the remaining ones.

        Both are then measured alone. All trials remain if they cannot be stopped, or if one hung while others were
        stopped: it may wait for a lock, such as a file lock, that a stopped trial holds.
        """
        begun: list[Begun] = []
        with self._measure.guard() as guard:
            try:
                complete = self._begin(planned, started, begun, guard)
                hung = [each.process.order.planned for each in begun[1:] if _is_hung(each.process)]
                if complete and not hung:
                    complete = self._run_slices([each.process for each in begun])
            except ForkServerKilledError:  # not enough memory for this many trials at once
                complete, hung = False, []
            except BaseException:
                self._end(begun, keep, guard, sliced=False)
                raise
            if hung or not complete:
                self._in_slices = self._in_slices and complete
                self._end(begun, lambda _: None, guard, sliced=False)
                return hung, [one for one in planned if one not in hung]
            failed = [each for each in begun if not each.process.sliced_s and not _is_hung(each.process)]
            self._end(failed, lambda _: None, guard, sliced=False)
            self._end([each for each in begun if each not in failed], keep, guard, sliced=True)
        return [each.process.order.planned for each in failed], []

    def _begin(
        self, planned: Sequence[PlannedTrial], started: Started, begun: list[Begun], guard: SessionGuard
    ) -> bool:
        """Let each trial measure itself alone and then stop, until one hangs; return whether all stopped or failed."""
        for one in planned:
            if begun and not _has_room([each.process for each in begun]):
                return False
            started(one)
            begun.append(self._measure.begin(one))
            process = begun[-1].process
            guard.watch(process.session)
            process.follow()
            self._measure.followed(begun[-1])
            if _is_hung(process) and len(begun) > 1:
                break
            if not (process.is_stopped or isinstance(process.found, Failure)):
                return False
        return True

    def _run_slices(self, processes: Sequence[TrialProcess]) -> bool:
        """Run passes until each trial has enough time; return whether all that did not fail got enough batches."""
        slice_s, passes = max((process.slice_s or 0.0 for process in processes), default=0.0), 0
        while not all(map(self._is_measured, processes)):
            for process in processes if passes % 2 == 0 else reversed(processes):
                if process.is_stopped:
                    process.run_slice(slice_s)
                    if _waits_for_another(process, processes):
                        return False
            passes += 1
        return all(one.slices().batches >= FEWEST_BATCHES or isinstance(one.found, Failure) for one in processes)

    def _is_measured(self, process: TrialProcess) -> bool:
        """Whether the trial's slices add up to enough time, or never will."""
        asked_s = self._seconds or self._measure.sliced_seconds
        enough = process.sliced_s >= asked_s and process.slices().batches >= FEWEST_BATCHES
        return enough or not process.is_stopped or process.sliced_s >= LONGEST * asked_s

    def _end(self, begun: Sequence[Begun], keep: Keep, guard: SessionGuard, *, sliced: bool) -> None:
        """End all trials at the same time, at once if the round was cut short, and keep the outcome of each.

        A worker first finishes its batch, and Python its cleanup: one after the other, that took a tenth of a round.
        """
        slices = [each.process.slices() if sliced else None for each in begun]
        count = len(begun)
        threads = ThreadPoolExecutor(max(1, count))
        try:
            ended = threads.map(lambda each: each.process.end(at_once=not sliced, at_a_time=count), begun)
            for each, _ in zip(begun, ended, strict=True):
                guard.forget(each.process.session)
        finally:  # after a second signal, the guard ends what has not ended
            threads.shutdown(wait=False)
            if sliced:  # measured completely, so a signal loses nothing
                self._keep(begun, slices, keep)
        if not sliced:
            self._keep(begun, slices, keep)

    def _keep(self, begun: Sequence[Begun], slices: Sequence[TimeSlices | None], keep: Keep) -> None:
        for each, taken in zip(begun, slices, strict=True):
            if each.process.followed:
                keep(self._measure.outcome(each, taken))


def _is_hung(process: TrialProcess) -> bool:
    return isinstance(process.found, Failure) and process.found.kind == "hang"


def _waits_for_another(process: TrialProcess, processes: Sequence[TrialProcess]) -> bool:
    """Whether the process waits for a file lock that another, stopped trial holds."""
    return any(not process.lock_holders.isdisjoint(other.pids) for other in processes if other is not process)


def _has_room(processes: Sequence[TrialProcess]) -> bool:
    """Whether memory and shared memory suffice for another trial of twice the size of the largest."""
    sizes = [_size(process.sampling) for process in processes if not isinstance(process.found, Failure)]
    free = host_memory.available_bytes() or 0
    limit = read_limits().memory_bytes
    if limit is not None:
        free = min(free, limit - sum(sizes))
    return free > ROOM * max(sizes, default=0) and _has_shared_room(processes)


def _size(sampling: Sampling) -> int:
    """Memory of a trial in bytes; older kernels do not report how much of it is shared."""
    if sampling.pss_bytes is not None:
        return sampling.pss_bytes
    return max((sample.tree.rss_bytes or 0 for sample in sampling.samples), default=0)


def _has_shared_room(processes: Sequence[TrialProcess]) -> bool:
    used = [sample.shm_bytes or 0 for process in processes for sample in process.sampling.samples]
    try:
        return shutil.disk_usage("/dev/shm").free > ROOM * max(used, default=0)
    except OSError:  # no /dev/shm
        return True
