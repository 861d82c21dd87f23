"""Starts the ranks of a trial with torch's launcher, relays their messages to the run, and names a rank that fails."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from loaderbench.consumers import consumer_of
from loaderbench.datasets import Built
from loaderbench.rank_errors import why_no_ranks
from loaderbench.runner.measured_process import build_dataset
from loaderbench.runner.protocol import BUILDING, LEAVE, Clue, Phase, Progress, Raised, RankEnded, Result, TrialOrder
from loaderbench.runner.rank import rank_main
from loaderbench.runner.rank_counters import RankCounters
from loaderbench.runner.rank_of_trial import WAITING
from loaderbench.runner.rank_results import result_of_ranks
from loaderbench.runner.time_slices import SharedCounters

LOOK_S = 0.05
OTHERS_S = 0.5  # after a rank raised: another rank may have died first and caused it
STUCK_S = 1.0  # without progress before a rank counts as late
PROGRESS_S = 0.2
FAILURE_S = 10.0  # for the details of a rank's exception


def measure_ranks(order: TrialOrder, ranks: int, pipe: Connection, counters: SharedCounters) -> None:
    """Start `ranks` ranks and relay their messages to the run. Raises the launcher's own exceptions."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # otherwise a GPU count starts CUDA before ranks fork
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    _import_before_forking(order)
    built = _shared_dataset(order, pipe)
    method = "fork" if hasattr(os, "fork") else "spawn"
    memory = multiprocessing.get_context(method).RawArray("d", RankCounters.size(ranks))
    pipes = [multiprocessing.Pipe() for _ in range(ranks)]
    relay = RankRelay(order, pipe, [parent_end for parent_end, _ in pipes], RankCounters(memory, ranks), counters)
    relay.start()
    try:
        config = _launch_config(order, ranks, method)
        elastic_launch(config, rank_main)(order, [child_end for _, child_end in pipes], memory, counters.memory, built)
    except ChildFailedError as error:
        relay.join(FAILURE_S)
        if not relay.is_reported:
            raise RuntimeError(f"a rank failed: {error.get_first_failure()[1].message}") from None
        raise SystemExit(1) from None
    except Exception as error:
        if reason := why_no_ranks(error):
            raise RuntimeError(f"no rank started: {reason}") from None
        raise
    finally:
        shutil.rmtree(_launcher_folder(order), ignore_errors=True)


def _import_before_forking(order: TrialOrder) -> None:
    """Import once, before forking, the modules that every rank imports."""
    for name in consumer_of(order.suite.consumer, order.consumer).modules_of_ranks:
        import_module(name)


def _shared_dataset(order: TrialOrder, pipe: Connection) -> Built | None:
    """The dataset if all ranks share it, in memory once. Built in one thread, because threads do not survive a fork."""
    if not order.suite.dataset.with_axes(order.planned.config).is_shared:
        return None
    import torch

    pipe.send(Phase(BUILDING))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return build_dataset(order)
    finally:
        torch.set_num_threads(threads)


def _launcher_folder(order: TrialOrder) -> str:
    return str(order.log.with_suffix(".launcher"))


def _launch_config(order: TrialOrder, ranks: int, method: str) -> Any:
    """One machine, no restarts, a free port."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.launcher.api import LaunchConfig

    with _gpus_hidden():
        return LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=ranks,
            run_id=order.planned.id,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            monitor_interval=0.1,
            start_method=method,
            logs_specs=DefaultLogsSpecs(log_dir=_launcher_folder(order)),
        )


@contextmanager
def _gpus_hidden() -> Iterator[None]:
    """Hide all GPUs while torch counts them: without NVML, and with MIG, that would start CUDA before the fork."""
    before = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")}
    os.environ.update(dict.fromkeys(before, ""))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


class RankRelay(threading.Thread):
    """Receives the messages of all ranks, and sends the run one sequence of phases and progress, and one outcome.

    The phase is that of the rank furthest behind. Progress needs all ranks, so a trial with a stuck rank makes none.
    `is_reported`: the run has the result or the first failure.
    """

    def __init__(
        self,
        order: TrialOrder,
        pipe: Connection,
        pipes: Sequence[Connection],
        rank_counters: RankCounters,
        counters: SharedCounters,
    ) -> None:
        super().__init__(name="loaderbench-ranks", daemon=True)
        self.is_reported = False
        self._order, self._pipe, self._pipes = order, pipe, list(pipes)
        self._rank_counters, self._counters = rank_counters, counters
        self._phases: list[list[str]] = [[] for _ in pipes]
        self._results: dict[int, Result] = {}
        self._progress = Advances(len(self._pipes))
        self._sent_phases, self._sent_s = 0, 0.0
        self._processes: dict[int, BaseProcess] = {}

    def run(self) -> None:
        """Relay messages until the run has its result, then wait for leave to end."""
        with suppress(OSError, EOFError):  # the run is gone, and ends this session
            while not self.is_reported:
                heard = wait(self._pipes, LOOK_S)
                for rank, pipe in enumerate(self._pipes):
                    if pipe in heard and not self.is_reported:
                        self._receive(rank, pipe.recv())
                if not self.is_reported:
                    self._check()
            self._pipe.recv()
            for pipe in self._pipes:
                pipe.send(LEAVE)

    def _receive(self, rank: int, message: Any) -> None:
        if isinstance(message, Phase):
            self._phases[rank].append(message.name)
            self._report_phase()
        elif isinstance(message, Result):
            self._results[rank] = message
        elif isinstance(message, Raised):
            self._report_raised(rank, message)

    def _check(self) -> None:
        """Check which ranks died, made progress, or are late."""
        if (dead := self._dead()) is not None:
            self._pipe.send(dead)
            self.is_reported = True
            return
        if len(self._results) == len(self._pipes):
            self._pipe.send(result_of_ranks([self._results[rank] for rank in sorted(self._results)]))
            self.is_reported = True
            return
        now_s = time.monotonic()
        states = [(len(phases), *self._rank_counters.progress(rank)) for rank, phases in enumerate(self._phases)]
        late = self._progress.see(states, self._resting(), now_s)
        pid = 0 if late is None else self._rank_counters.pids[late]
        self._counters.note_late(late or 0, pid)
        if self._progress.all_advanced and now_s - self._sent_s > PROGRESS_S:
            self._progress.begin()
            self._sent_s = now_s
            self._pipe.send(Progress())

    def _resting(self) -> set[int]:
        """Ranks that wait for others which have not caught up yet, and ranks that have finished."""
        waiting = {rank for rank, phases in enumerate(self._phases) if phases and phases[-1] == WAITING}
        most = max(len(phases) for phases in self._phases)
        behind = any(len(phases) < most for phases in self._phases)
        return {*self._results, *(waiting if behind else ())}

    def _report_phase(self) -> None:
        last = min(self._phases, key=len)
        if len(last) > self._sent_phases:
            self._sent_phases = len(last)
            self._pipe.send(Phase(last[-1]))

    def _report_raised(self, rank: int, raised: Raised) -> None:
        """Send the exception with its rank. If another rank died before, report that rank as the cause."""
        dead = self._died_before(rank)
        self._pipe.send(dead or Raised(raised.text, rank))
        self.is_reported = True
        if dead is None and self._pipes[rank].poll(FAILURE_S):
            clue = self._pipes[rank].recv()
            self._pipe.send(clue if isinstance(clue, Clue) else Clue(""))

    def _died_before(self, rank: int) -> RankEnded | None:
        """Another rank that died. Once this rank has ended, deaths do not count: the launcher ends the others."""
        until_s = time.monotonic() + OTHERS_S
        while time.monotonic() < until_s and not self._has_ended(rank):
            if (dead := self._dead(but=rank)) is not None:
                return dead
            time.sleep(LOOK_S)
        return None

    def _has_ended(self, rank: int) -> bool:
        process = self._process_of(rank)
        return process is not None and process.exitcode is not None

    def _process_of(self, rank: int) -> BaseProcess | None:
        self._processes |= {child.pid: child for child in multiprocessing.active_children() if child.pid}
        return self._processes.get(self._rank_counters.pids[rank])

    def _dead(self, but: int | None = None) -> RankEnded | None:
        """A rank that ended without a result or an error."""
        ended = []
        for rank, pipe in enumerate(self._pipes):
            process = self._process_of(rank)
            code = None if process is None else process.exitcode
            if code is not None and rank not in self._results and rank != but and not pipe.poll():
                ended.append(RankEnded(rank, code))
        return first_cause(ended)


def first_cause(ended: Sequence[RankEnded]) -> RankEnded | None:
    """The rank that ended by itself, in preference to ranks that the launcher terminated."""
    return min(ended, key=lambda one: one.exit_code == -signal.SIGTERM, default=None)


class Advances:
    """Tracks which ranks have made progress since `begin`, and which rank the others wait for."""

    def __init__(self, ranks: int) -> None:
        self._states: list[tuple[float, ...]] = [()] * ranks
        self._changed_s = [time.monotonic()] * ranks
        self._advanced: set[int] = set()

    @property
    def all_advanced(self) -> bool:
        """Whether every rank has made progress."""
        return len(self._advanced) == len(self._states)

    def begin(self) -> None:
        """Start a new count."""
        self._advanced.clear()

    def see(self, states: Sequence[tuple[float, ...]], resting: set[int], now_s: float) -> int | None:
        """Compare the ranks with their previous states, and return the rank that is late.

        `resting` ranks wait for others or have finished. Of several stuck ranks, the one furthest behind is late; if
        they are level, none is.
        """
        for rank, (state, before) in enumerate(zip(states, self._states, strict=True)):
            if state != before:
                self._changed_s[rank] = now_s
            if state != before or rank in resting:
                self._advanced.add(rank)
        self._states = list(states)
        stuck = [rank for rank in range(len(states)) if now_s - self._changed_s[rank] > STUCK_S and rank not in resting]
        stuck.sort(key=lambda rank: states[rank])
        if not stuck or (len(stuck) > 1 and states[stuck[0]] == states[stuck[1]]):
            return None
        return stuck[0]
