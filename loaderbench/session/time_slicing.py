"""Measures the trials of a round in time slices: all live, and one at a time runs, for a tenth of a second.

A neighbor that comes and goes within a second then affects all alike. Between its slices all processes of a trial are
stopped, in the middle of a batch too, and its clock is that of its slices. Each pass goes in the reverse order of the
one before, which cancels a drift. Source: Jones and Kenward, "Design and Analysis of Cross-Over Trials".
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
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

LONGEST = 4.0  # times the seconds that are asked for, for batches that take long
ENOUGH_PROCESSES = 256  # a dozen trials at a time, each with a few workers and their threads
ROOM = 2.0  # times the largest trial so far, free before another is begun

Started = Callable[[PlannedTrial], None]
Keep = Callable[[TrialOutcome], None]


class Measures(Protocol):
    """What measures trials, alone or several at a time; as `TrialMeasurer` does."""

    @property
    def sliced_seconds(self) -> float:
        """How long each is measured in time slices, all of them together."""

    def __call__(self, planned: PlannedTrial) -> TrialOutcome:
        """Measure one alone."""

    def begin(self, planned: PlannedTrial) -> Begun:
        """Start one that runs in time slices."""

    def followed(self, begun: Begun) -> None:
        """One that was begun has its result: the next may go ten times as long without progress."""

    def outcome(self, begun: Begun, slices: TimeSlices | None) -> TrialOutcome:
        """What came of one that was begun, followed and ended."""

    def guard(self) -> AbstractContextManager[SessionGuard]:
        """What ends trials that are stopped, should the run be killed."""


class SlicedRounds:
    """Measures rounds in time slices for as long as that can be done, else one trial after the other.

    It cannot where trials use a GPU, whose memory is for one, or have several ranks, which end together (`is_alone`);
    where a loader cannot be stopped, or waits so long for its storage that stopping it would win something; where
    memory is short, or processes are; without `/proc`; and elsewhere than on Linux. `seconds` are those of the time
    slices of a trial together, by default as many as a fix gets.
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
        """Measure every trial once; `keep` is called with each outcome, also where a signal ends the round."""
        failed, left = list[PlannedTrial](), planned
        if self._in_slices and not any(map(self._is_alone, planned)):
            try:
                failed, left = self._run_in_slices(planned, started, keep)
            except ForkServerKilledError:  # before anything was measured
                self._in_slices = False
        for one in (*failed, *left):
            started(one)
            outcome = self._measure(one)
            keep(outcome)
            if one in failed and outcome.trial.status == "completed":  # next to the others it lacked something
                self._in_slices = False

    def _run_in_slices(
        self, planned: Sequence[PlannedTrial], started: Started, keep: Keep
    ) -> tuple[list[PlannedTrial], Sequence[PlannedTrial]]:
        """Measure the round; return those to be measured alone: what failed next to others, and what else is left.

        All are left where they cannot be stopped, and where one has hung while others were stopped: it may wait for a
        lock that one of them holds, such as that of a file.
        """
        begun: list[Begun] = []
        with self._measure.guard() as guard:
            try:
                complete = self._begin(planned, started, begun, guard)
                hung = [each.process.order.planned for each in begun[1:] if _hangs(each.process)]
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
            failed = [each for each in begun if not each.process.sliced_s and not _hangs(each.process)]
            self._end(failed, lambda _: None, guard, sliced=False)
            self._end([each for each in begun if each not in failed], keep, guard, sliced=True)
        return [each.process.order.planned for each in failed], []

    def _begin(
        self, planned: Sequence[PlannedTrial], started: Started, begun: list[Begun], guard: SessionGuard
    ) -> bool:
        """Let each measure itself alone and then stop, up to one that hangs; whether all can that did not fail."""
        for one in planned:
            if begun and not _is_room([each.process for each in begun]):
                return False
            started(one)
            begun.append(self._measure.begin(one))
            process = begun[-1].process
            guard.watch(process.session)
            process.follow()
            self._measure.followed(begun[-1])
            if _hangs(process) and len(begun) > 1:
                break
            if not (process.is_stopped or isinstance(process.found, Failure)):
                return False
        return True

    def _run_slices(self, processes: Sequence[TrialProcess]) -> bool:
        """Pass after pass, until each was measured long enough; whether all could be that did not fail."""
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
        """Whether its slices were long enough together, or will not become so."""
        asked_s = self._seconds or self._measure.sliced_seconds
        enough = process.sliced_s >= asked_s and process.slices().batches >= FEWEST_BATCHES
        return enough or not process.is_stopped or process.sliced_s >= LONGEST * asked_s

    def _end(self, begun: Sequence[Begun], keep: Keep, guard: SessionGuard, *, sliced: bool) -> None:
        """End all, at once where the round did not come to its end, and keep what each has."""
        slices = [each.process.slices() if sliced else None for each in begun]
        for each in begun:
            each.process.end(at_once=not sliced)
            guard.forget(each.process.session)
        for each, taken in zip(begun, slices, strict=True):
            if each.process.followed:
                keep(self._measure.outcome(each, taken))


def _hangs(process: TrialProcess) -> bool:
    return isinstance(process.found, Failure) and process.found.kind == "hang"


def _waits_for_another(process: TrialProcess, processes: Sequence[TrialProcess]) -> bool:
    """Whether it waits for the lock of a file that another trial holds, which is stopped."""
    return any(not process.lock_holders.isdisjoint(other.pids) for other in processes if other is not process)


def _is_room(processes: Sequence[TrialProcess]) -> bool:
    """Whether memory and shared memory suffice for another trial of twice the size of the largest."""
    sizes = [_size(process.sampling) for process in processes if not isinstance(process.found, Failure)]
    free = host_memory.available_bytes() or 0
    limit = read_limits().memory_bytes
    if limit is not None:
        free = min(free, limit - sum(sizes))
    return free > ROOM * max(sizes, default=0) and _is_shared_room(processes)


def _size(sampling: Sampling) -> int:
    """Bytes of memory of a trial; older kernels do not say how much of it is shared."""
    if sampling.pss_bytes is not None:
        return sampling.pss_bytes
    return max((sample.tree.rss_bytes or 0 for sample in sampling.samples), default=0)


def _is_shared_room(processes: Sequence[TrialProcess]) -> bool:
    used = [sample.shm_bytes or 0 for process in processes for sample in process.sampling.samples]
    try:
        return shutil.disk_usage("/dev/shm").free > ROOM * max(used, default=0)
    except OSError:  # there is none
        return True
