"""What a trial sees inside its own loader: stages of samples, and what the workers were doing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from multiprocessing import active_children
from typing import Any

from loaderbench.environment import quota_periods
from loaderbench.monitors import MachineWatch, WorkerWatch
from loaderbench.recorder import inside_fields
from loaderbench.recorder.causes import stalls_of
from loaderbench.recorder.samples import count_samples
from loaderbench.recorder.stalls import StallSums, Wait
from loaderbench.tracing.cost import tracing_s_per_sample
from loaderbench.tracing.iterable import IterableTrace
from loaderbench.tracing.loader import LoaderTrace, is_loader
from loaderbench.tracing.reading import Mark

NO_WORKERS = "no worker processes: the batches are made in the consumer's own process"


class Inside:
    """Iterates over a loader, traced where it can be; read at the beginning and at the end of the steady state."""

    def __init__(self, batches: Any, root: str | None = None) -> None:
        self._batches, self._root = batches, root
        self._trace: LoaderTrace | IterableTrace
        self._mark: Mark | None = None
        self._watch, self._main = WorkerWatch(), WorkerWatch()
        self._machine = MachineWatch(quota_periods)
        self._trace = LoaderTrace(batches) if is_loader(batches) else IterableTrace(batches, count_samples)

    def __iter__(self) -> Iterator[Any]:
        return self._trace.batches()

    def begin(self) -> None:
        """Begin to count."""
        self._watch.read(_workers())
        self._main.read([os.getpid()])
        self._machine.begin()
        self._mark = self._trace.mark()

    def fields(self, waits: Sequence[Wait]) -> dict[str, Any]:
        """Fields of a trial, with `not_measured` among them; call it while the workers live.

        `waits` are those of the last epoch.
        """
        self._machine.look()
        self._watch.read(_workers())
        self._main.read([os.getpid()])
        traced = self._trace.read(self._mark)
        if not traced.traced:  # all was made before the steady state began
            traced = self._trace.read()
        self._watch.read_memory(_workers())
        found = inside_fields(
            traced, getattr(self._batches, "dataset", None), root=self._root, stalls=self._stalls(waits)
        )
        found["tracing_s_per_sample"] = tracing_s_per_sample(traced)
        found["workers"] = self._watch.states()
        found["worker_pids"] = _workers()
        found["main_process"] = self._main.states()
        found["machine"] = self._machine.use()
        found["not_measured"]["machine"] = "the steady state was too short for the kernel's clock"
        found["not_measured"]["main_process"] = self._main.why_not()
        found["not_measured"]["workers"] = self._watch.why_not() if _workers() else NO_WORKERS
        found["not_measured"]["tracing_s_per_sample"] = "no sample was made while tracing"
        return found

    def _stalls(self, waits: Sequence[Wait]) -> StallSums | None:
        """Put the waits together with what the workers made; there are none without workers."""
        if not isinstance(self._trace, LoaderTrace) or not self._trace.workers:
            return None
        return stalls_of(waits, self._trace.epoch_spans(), self._trace.workers)


def _workers() -> list[int]:
    return [child.pid for child in active_children() if child.pid]
