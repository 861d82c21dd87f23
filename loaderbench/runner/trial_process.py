"""The main function of a trial's process, and its monitor. The process lives until it is ended by the run.

For a time slice, all processes of the trial are continued, and then stopped wherever they are, even in the middle of a
batch. Shared counters hold the batches taken, with a clock that stops with the trial.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from loaderbench.diagnosis.failures import classify_exit, classify_raised, fork_server_killed
from loaderbench.monitors import GpuMonitor, Sampler, Sampling, TreeMonitor, proc
from loaderbench.ranks import rank_count
from loaderbench.records import Failure, TimeSlices
from loaderbench.runner.failure_details import of_rank, with_clue
from loaderbench.runner.measured_process import measure_here, report_failure
from loaderbench.runner.patience import LOOK_S, PAUSED_S, Patience
from loaderbench.runner.processes import GRACE_S, end_own_session, end_session, enter_own_session, signal_all, write_to
from loaderbench.runner.protocol import (
    GO_ON,
    Clue,
    Ended,
    Message,
    Phase,
    Progress,
    Raised,
    RankEnded,
    Result,
    TrialOrder,
)
from loaderbench.runner.rank import rank_log
from loaderbench.runner.rank_launch import measure_ranks
from loaderbench.runner.server import TrialServer
from loaderbench.runner.stacks import answer_with_stacks, dump_stacks
from loaderbench.runner.time_slices import NUMBERS, Note, SharedCounters, allow_all, move_to_next_cpus, slice_seconds

LOG_END_BYTES, LOG_BYTES = 4_000, 64_000
CLUE_S = 5.0
LOST = 255  # exit code from multiprocessing for a process whose fork server is gone
FAILED_GRACE_S = 2.0  # seconds for Python's cleanup after an exception: semaphores, queues, workers
Expected = TypeVar("Expected", Result, Ended)
A_SLICE = "a time slice shared with other trials"


class TrialProcess:
    """One trial's process: `follow` it to its result, run its time slices, and `end` it with all its child processes.

    `found` is the trial's result or failure, `took_s` how long it was waited for, `sliced_s` the total seconds of its
    slices, `slice_s` the required seconds of one slice, `paused_s` how long the machine was paused during the trial,
    `longest_idle_s` the longest time without progress. `is_stopped`: the trial waits for its next slice. `followed`:
    `found` is set. `lock_holders` are the processes holding a file lock that the trial waited for when its last slice
    ended.
    """

    def __init__(self, server: TrialServer, order: TrialOrder, gpu_monitor: GpuMonitor) -> None:
        self.order, self.took_s, self.sliced_s = order, 0.0, 0.0
        self.paused_s = self.longest_idle_s = 0.0
        self.found: Result | Failure
        self.sampling: Sampling
        self.slice_s: float | None = None
        self.is_stopped = self.followed = False
        self.lock_holders: frozenset[int] = frozenset()
        self.began_s = time.monotonic()
        self._server = server
        self._pipe, child_end = server.pipe()
        memory = server.numbers(NUMBERS)
        self._counters, self._count = SharedCounters(memory), 0
        self._pids, self._stopped_since_s = list[int](), 0.0
        self._process: BaseProcess = server.start(trial_main, order, child_end, memory)
        child_end.close()
        self._tree = TreeMonitor(self.session)
        self._sampler = Sampler(self.session, gpu_monitor)
        self._sampler.start()

    @property
    def session(self) -> int:
        """The ID of the trial's session, which is also its process ID."""
        return self._process.pid or -1

    @property
    def pids(self) -> Sequence[int]:
        """The processes that are stopped between the trial's time slices."""
        return self._pids

    def follow(self) -> None:
        """Wait for the trial's result or failure; the process stays alive, stopped if possible."""
        self.found = self._listen("startup", Result)
        if isinstance(self.found, Result):
            self._sampler.read_memory()
            self.slice_s = _slice_s(self.found) if self.found.can_be_stopped else None
            self.is_stopped = self.slice_s is not None
        self.sampling = self._sampler.stop()
        self.took_s, self.followed = time.monotonic() - self.began_s, True
        if self.is_stopped:
            self._stop()
            with suppress(OSError):  # the process died since; its first time slice will find out how
                self._pipe.send(GO_ON)

    def _stop(self) -> None:
        """Stop all current processes of the trial, because an epoch may have started with new workers."""
        signal_all(self._pids, "SIGSTOP")
        self._stopped_since_s = time.monotonic()
        self._tree.look_for_processes()
        self._pids = [self.session, *self._tree.below]
        signal_all(self._pids, "SIGSTOP")

    def run_slice(self, seconds: float) -> None:
        """Resume the trial for `seconds`. It may fail during the slice, or run out of batches."""
        before, allowed_cpus = self._counters.read(), move_to_next_cpus(self._pids)
        began_s = time.monotonic()
        self._counters.was_stopped(began_s - self._stopped_since_s)
        signal_all(self._pids, "SIGCONT")
        allow_all(allowed_cpus)
        self._count += 1
        if wait([self._pipe, self._process.sentinel], seconds):
            self.is_stopped = False
            said = self._listen(A_SLICE, Ended)
            self.found = said if isinstance(said, Failure) else self.found
        self.lock_holders = proc.lock_holders(self._pids)  # before the trial is stopped and no longer waits
        self._stop()
        took_s = self._stopped_since_s - began_s
        if took_s - seconds > PAUSED_S and not self._kept_running(before, seconds, took_s):  # the machine was paused
            self._counters.was_stopped(took_s - seconds)
            took_s = seconds
        self.took_s, self.sliced_s = self.took_s + took_s, self.sliced_s + took_s

    def _kept_running(self, before: Note, seconds: float, took_s: float) -> bool:
        """Whether the trial kept running: its batches fit the elapsed time rather than the length of the slice."""
        if not isinstance(self.found, Result):
            return False
        per_second = self.found.measurement.batches / self.found.measurement.steady_s
        return self._counters.read().batches - before.batches > per_second * (seconds + took_s) / 2

    def slices(self) -> TimeSlices:
        """Batches and samples taken in the time slices, up to the last complete worker cycle."""
        note = self._counters.read()
        return TimeSlices(self._count, note.batches, note.samples, note.seconds)

    def end(self, *, at_once: bool = False, at_a_time: int = 1) -> None:
        """End the trial's processes; if it was not followed to its result, without a grace period.

        `at_a_time` is how many trials end at the same time: each took its share of that time.
        """
        began_s = time.monotonic()
        if not self.followed:
            self._sampler.stop()
        failure = self.found if self.followed and isinstance(self.found, Failure) else None
        at_once = at_once or not self.followed or (failure is not None and failure.kind == "hang")
        if self._pids:
            signal_all(self._pids, "SIGCONT")
        end_session(self._process, None if at_once else self._pipe, FAILED_GRACE_S if failure else GRACE_S)
        self._pipe.close()
        self.took_s += (time.monotonic() - began_s) / at_a_time

    def _listen(self, phase: str, until: type[Expected]) -> Expected | Failure:
        """Listen until the trial sends the expected message, raises, dies, or makes no progress."""
        log, patience = self.order.log, Patience(self.order)
        while True:
            spoke = wait([self._pipe, self._process.sentinel], LOOK_S)
            if patience.is_over():
                return self._no_progress(patience, phase)
            if not spoke:
                continue
            message = _receive(self._pipe)
            if isinstance(message, Phase | Progress):
                phase = message.name if isinstance(message, Phase) else phase
                patience.renew(phase)
            elif isinstance(message, until):
                self.paused_s += patience.paused_s
                self.longest_idle_s = max(self.longest_idle_s, patience.longest_idle_s)
                return message
            elif isinstance(message, Raised):
                raised = classify_raised(message.text, _end_of(self._log_of(message.rank), LOG_BYTES))
                return with_clue(of_rank(message.rank, raised), _clue(self._pipe))
            elif isinstance(message, RankEnded):
                return of_rank(message.rank, classify_exit(message.exit_code, _end_of(self._log_of(message.rank))))
            else:
                self._process.join(1.0)
                if self._process.exitcode == LOST and self._server.has_died():
                    return fork_server_killed()
                return classify_exit(self._process.exitcode or 0, _end_of(log))

    def _no_progress(self, patience: Patience, phase: str) -> Failure:
        """The failure of a trial without progress; with several ranks, it names the rank that the others wait for."""
        rank, pid = self._counters.late() or (None, self._process.pid)
        log = self._log_of(rank)
        said = _end_of(log, LOG_BYTES)  # before the stacks are written to it
        return of_rank(rank, patience.failure(phase, dump_stacks(pid, log), said))

    def _log_of(self, rank: int | None) -> Path:
        return self.order.log if rank is None else rank_log(self.order.log, rank)


def _slice_s(found: Result) -> float | None:
    return slice_seconds(found.inside.stages, found.inside.workers or found.inside.main_process)


def _clue(pipe: Any) -> str:
    """The trial's explanation of its exception, if sent soon; the trial may then end by itself."""
    clue = _receive(pipe) if pipe.poll(CLUE_S) else None
    return clue.text if isinstance(clue, Clue) else ""


def _receive(pipe: Any) -> Message | None:
    """The next message; `None` if the other end is closed."""
    try:
        return pipe.recv() if pipe.poll() else None
    except (EOFError, OSError):
        return None


def _end_of(log: Path, size: int = LOG_END_BYTES) -> str:
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def trial_main(order: TrialOrder, pipe: Connection, memory: Any) -> None:
    """Measure here, or start the ranks that do; the last message is a `Result` or a `Raised`.

    `memory` is that of the shared counters.
    """
    enter_own_session(pipe)
    write_to(order.log)
    answer_with_stacks()
    loaders: list[Any] = []
    counters, ranks = SharedCounters(memory), rank_count(order.planned.config)
    try:
        if ranks is None:
            measure_here(order, pipe, counters, loaders)
        else:
            measure_ranks(order, ranks, pipe, counters)
    except BaseException as error:
        try:
            report_failure(error, pipe, loaders)
        except OSError:  # the run itself is gone
            end_own_session()
        raise SystemExit(1) from None
