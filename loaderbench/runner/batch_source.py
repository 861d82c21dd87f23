"""The source of a trial's batches: its loader, traced from within; one pass of that loader; or cached batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from loaderbench.consumers import consumer_of
from loaderbench.consumers.accelerator import device_here
from loaderbench.datasets import page_cache
from loaderbench.environment import quota_periods
from loaderbench.loaders import Batches
from loaderbench.loaders.thread_workers import ThreadBatches
from loaderbench.monitors import MachineWatch, ProgramUse, WorkerWatch
from loaderbench.recorder import Rules, Steps, loader_inside
from loaderbench.recorder.epochs import epochs_of
from loaderbench.recorder.inside import path_of, stalls_of
from loaderbench.recorder.measure import FEWEST_BEFORE_SLICES, batches_wanted
from loaderbench.recorder.samples import UNBATCHED, count_samples, counter_of_items, given_batch_size
from loaderbench.recorder.stalls import StallSums, Wait
from loaderbench.records import Epochs, LoaderInside
from loaderbench.records.words import NO_WORKER_PROCESSES
from loaderbench.runner.protocol import TrialOrder
from loaderbench.runner.replay import Replayed, keep
from loaderbench.tracing.loader import IterableTrace, LoaderTrace, worker_arguments
from loaderbench.tracing.made import Made
from loaderbench.tracing.reading import Mark, tracing_s_per_sample
from loaderbench.tracing.threads import ThreadsTrace

IN_THREADS = "threads of the loader's library make the samples, and their stages are not timed"
IN_PROCESSES = "processes of the loader's library make the samples, and their stages are not timed"
NO_LINES = "lines of code are not checked in loading threads: every check would interrupt all of them"


class BatchSource(Protocol):
    """A source of batches for the consumer, with what is known about the loader behind it."""

    def __iter__(self) -> Iterator[Any]: ...

    def begin(self) -> None:
        """Start counting: the steady state begins."""

    def inside(self, waits: Mapping[int, Sequence[Wait]]) -> LoaderInside:
        """Readings from inside the loader, taken while its workers are alive; `waits` are by epoch."""
        ...

    def epochs(self, steps: Steps) -> Epochs | None:
        """The boundaries between the epochs of these steps; `None` if no epoch has ended."""
        ...

    def made(self, epoch: int, batch: int) -> Made | None:
        """Which worker made a batch of an epoch, and when; `None` if unknown."""
        ...

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """The processes that make batches now."""
        ...


def prepare_files(order: TrialOrder) -> None:
    """Put the trial's files into the page cache, or evict them; for end-to-end trials, they were read before the run.

    Skipped for an object store, which bypasses the page cache.
    """
    if order.suite.dataset.with_axes(order.planned.config).store is not None:
        return
    paths = [path for path, _ in order.samples] if order.copy is None else [str(file) for file in order.copy.files]
    isolation = order.planned.isolation
    if not paths:
        return
    if isolation == "loader_warm":
        page_cache.warm(paths)
    elif isolation == "loader_cold" or (isolation is None and order.suite.measure.cache == "cold"):
        page_cache.evict(paths)


QUEUED_STEPS = 6
"""Batches until each further step waits for an earlier one: `RunAhead` queues three, and a side stream holds one.

A steady state that begins earlier would count queued steps as done.
"""


def batch_source(
    order: TrialOrder, batches: Batches, root: str | None, own_use: Callable[[], ProgramUse] | None = None
) -> tuple[BatchSource, Rules]:
    """The source of a trial's batches, and the rules for how long it is measured. A replay's loader has already ended.

    `own_use` returns the resource use of this program, if it is more than this process and its children.
    """
    seconds, isolation = order.suite.measure.seconds, order.planned.isolation
    kind = consumer_of(order.suite.consumer, order.consumer)
    queued = QUEUED_STEPS if kind.queues_steps else 0
    if isolation in ("replay_host", "replay_device"):
        device = device_here(kind.device_name) if isolation == "replay_device" else None
        return Replayed(keep(batches), device=device), Rules(seconds, queued)
    watched = WatchedLoader(batches, root, lines=_runs_user_code(order), own_use=own_use)
    ahead, cycle, wanted = max(batches.ahead, queued), batches.cycle, batches_wanted(batches.batch_size)
    if isolation == "loader_cold":
        if batches.samples_per_epoch is None:
            raise ValueError("the dataset has no length, so the start of a second pass is unknown")
        one_pass = OnePass(watched, batches.samples_per_epoch, counted_size(batches))
        return one_pass, PassRules(seconds, ahead, cycle, wanted)
    if order.in_time_slices:
        return watched, Rules(seconds, ahead, cycle, FEWEST_BEFORE_SLICES, FEWEST_BEFORE_SLICES)
    return watched, Rules(seconds, ahead, cycle, wanted)


def counted_size(batches: Batches) -> int | None:
    """The batch size for counting samples; `UNBATCHED` for a loader that returns the items of its dataset."""
    return UNBATCHED if given_batch_size(batches.iterable) == UNBATCHED else batches.batch_size


def _runs_user_code(order: TrialOrder) -> bool:
    """Whether user code makes samples, so its lines are sampled; trials that only compare rates skip this."""
    return order.planned.role not in ("remedy", "freed", "ab") and bool(
        order.suite.dataset.targets(order.planned.config)
    )


class WatchedLoader:
    """Iterates over a loader, traced if possible; its state is read at the start and the end of the steady state.

    `lines`: a thread samples the lines of code that run.
    """

    def __init__(
        self,
        batches: Batches,
        root: str | None = None,
        *,
        lines: bool = False,
        own_use: Callable[[], ProgramUse] | None = None,
    ) -> None:
        self._batches, self._root = batches, root
        self._trace: LoaderTrace | ThreadsTrace | IterableTrace
        self._mark: Mark | None = None
        self._watch, self._main = WorkerWatch(), WorkerWatch()
        self._machine = MachineWatch(quota_periods, own_use)
        source = batches.iterable
        if batches.traced_in == "data_loader":
            self._trace = LoaderTrace(source, lines=lines, count=counter_of_items(source))
        elif isinstance(batches, ThreadBatches) and batches.loading is not None:
            self._trace = ThreadsTrace(source, batches.loading)
        else:
            self._trace = IterableTrace(source, count_samples)

    def __iter__(self) -> Iterator[Any]:
        found = self._trace.batches()
        self._watch.pause()  # time between epochs does not count
        if isinstance(self._trace, LoaderTrace):
            self._trace.begin_threads()
        return LookedAt(found, self._look)

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """The processes that make batches now."""
        return tuple(self._batches.worker_pids())

    def made(self, epoch: int, batch: int) -> Made | None:
        """Which worker made a batch of an epoch, and when; `None` if unknown."""
        return self._trace.made(epoch, batch)

    def begin(self) -> None:
        """Start counting: the steady state begins."""
        self._read_states()
        self._machine.begin()
        self._mark = self._trace.mark()

    def epochs(self, steps: Steps) -> Epochs | None:
        """The boundaries between the epochs of these steps; `None` if no epoch has ended."""
        if not isinstance(self._trace, LoaderTrace):
            return epochs_of(steps, self.made, None, workers_persist=None)
        persist = worker_arguments(self._batches.iterable).get("persistent_workers")
        sampler_s, known = self._trace.taking.start_s, persist is not None
        return epochs_of(steps, self.made, sampler_s, workers_persist=bool(persist) if known else None)

    def inside(self, waits: Mapping[int, Sequence[Wait]]) -> LoaderInside:
        """Readings from inside the loader, taken while its workers are alive; `waits` are by epoch."""
        pids = self.worker_pids
        self._machine.look()
        self._read_states()
        if isinstance(self._trace, LoaderTrace):
            self._trace.end_threads()
        traced = self._trace.read(self._mark)
        if not traced.traced:  # everything was made before the steady state began
            traced = self._trace.read()
        self._watch.read_memory(pids)
        self._main.read_memory([os.getpid()])
        dataset = getattr(self._batches.iterable, "dataset", None)
        seen = None if self._batches.traced_in == "nowhere" else traced
        why = IN_PROCESSES if pids else IN_THREADS
        found = loader_inside(seen, partial(path_of, dataset), why, root=self._root, stalls=self._stalls(waits))
        reasons = {
            **({"code_looks": NO_LINES} if isinstance(self._trace, ThreadsTrace) else {}),
            "machine": self._machine.why_not(),
            "main_process": self._main.why_not(),
            "workers": self._watch.why_not() if pids or self._batches.loading_threads() else NO_WORKER_PROCESSES,
            "tracing_s_per_sample": "no sample was loaded while tracing",
        }
        return replace(
            found,
            tracing_s_per_sample=tracing_s_per_sample(traced),
            workers=self._watch.states(),
            main_process=self._main.states(),
            machine=self._machine.use(),
            not_measured=found.not_measured | reasons,
        )

    def _read_states(self) -> None:
        """Read the states of the loading processes and threads, and of the main process without its loading threads."""
        self._read_workers()
        self._main.read([os.getpid()], apart=self._batches.loading_threads())

    def _look(self) -> None:
        """Also read the workers during the steady state, because the workers of a short epoch are gone at its end."""
        if self._mark is not None:
            self._read_workers()

    def _read_workers(self) -> None:
        senders = self._trace.senders if isinstance(self._trace, LoaderTrace) else ()
        self._watch.read(self.worker_pids, self._batches.loading_threads(), senders=senders)

    def _stalls(self, waits: Mapping[int, Sequence[Wait]]) -> StallSums | None:
        """Relate the waits to what the workers made; `None` without workers."""
        if isinstance(self._trace, IterableTrace) or not self._trace.workers:
            return None
        sums = StallSums()
        for epoch, within in waits.items():
            sums.add(stalls_of(within, self._trace.made_in(epoch), self._trace.workers))
        return sums


class LookedAt:
    """The batches of an epoch; `look` is called as the 1st, 2nd, 4th, 8th, ... batch is taken."""

    def __init__(self, batches: Iterator[Any], look: Callable[[], None]) -> None:
        self._batches, self._look = batches, look
        self._taken, self._next = 0, 1

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._taken += 1
        if self._taken == self._next:
            self._next *= 2
            self._look()
        return batch


class PassRules(Rules):
    """Rules for a single pass, which has no batches to spare: the warm-up is the prefetched batches, steady or not."""

    def warmed_up(self, moments_s: Sequence[float]) -> bool:
        """Whether the prefetched batches have all been taken."""
        return self.turned_over(moments_s)


class OnePass:
    """The batches of a loader's first epoch, because the next epoch would read its files from the page cache.

    The loader outlives its batches, so the state of its workers can still be read.
    """

    def __init__(self, watched: WatchedLoader, samples: int, batch_size: int | None) -> None:
        self._watched, self._left, self._batch_size = watched, samples, batch_size
        self._batches: Iterator[Any] | None = None
        self.begin, self.inside, self.made = watched.begin, watched.inside, watched.made
        self.epochs = watched.epochs

    def __iter__(self) -> Iterator[Any]:
        if self._batches is not None:
            return  # exhausted
        self._batches = iter(self._watched)
        for batch in self._batches:
            count = count_samples(batch, self._batch_size)
            self._left -= count
            yield batch
            if self._left < count:
                return

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """The processes that make batches now."""
        return self._watched.worker_pids
