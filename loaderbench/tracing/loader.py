"""Traces one `DataLoader`: two of its attributes are replaced while it starts an epoch."""

from __future__ import annotations

import mmap
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from inspect import isgenerator
from itertools import chain
from multiprocessing.sharedctypes import RawArray
from typing import Any

from loaderbench.records import Config
from loaderbench.tracing import block as layout
from loaderbench.tracing.attach import Attachment, InProcess
from loaderbench.tracing.batch_choice import BatchChoice
from loaderbench.tracing.block import BLOCK_BYTES, Block
from loaderbench.tracing.lines import SWITCH_S, LineClock
from loaderbench.tracing.made import Made, MadeBatches
from loaderbench.tracing.other_loader import OtherLoader
from loaderbench.tracing.parts import Finder, SampleProxy, maker_of
from loaderbench.tracing.reading import Mark, Traced, mark, read
from loaderbench.tracing.taking import NotifyingSampler, Taken, TakingClock
from loaderbench.tracing.tracer import Count, Tracer
from loaderbench.tracing.worker import TracedCollate, TracedInit

Begin = Callable[[Any], Iterator[Any]]
"""Begins an epoch over a loader, as `iter` does."""

_DATAPIPES = ("IterDataPipe", "MapDataPipe")


class LoaderTrace:
    """One loader, traced over all the epochs that are begun with `batches`.

    `marks_only`: nothing is timed but the stages that the user's own code marks. `lines`: a thread where samples are
    loaded looks at the lines of code. `begin` begins an epoch over a loader. `count` tells how many samples are in what
    the dataset returns for an index; without it, each is one.
    """

    def __init__(
        self,
        loader: Any,
        *,
        marks_only: bool = False,
        lines: bool = False,
        begin: Begin = iter,
        count: Count | None = None,
    ) -> None:
        self.workers = int(loader.num_workers)
        self._loader, self._marks_only, self._begin = loader, marks_only, begin
        self._memory = _shared_memory(BLOCK_BYTES * max(1, self.workers), start_method_of(loader))
        self.blocks = [Block(self._memory, worker) for worker in range(max(1, self.workers))]
        self.taking = TakingClock()
        self._made = MadeBatches(self.blocks, in_workers=self.workers > 0)
        self._count = count
        self._tracer = None if self.workers else Tracer(self.blocks[0], count=count)
        self._lines = lines and not marks_only
        self._line_clock = LineClock(self._tracer) if self._tracer and self._lines else None
        self._choice = None if marks_only else BatchChoice()
        self._in_order = True
        self._persistent: weakref.WeakSet[Any] = weakref.WeakSet()  # torch's iterators whose workers are traced
        for block in self.blocks:
            block.header[layout.ENABLED] = 1.0

    def follow(self, loader: Any) -> None:
        """Trace this loader, which has as many workers, from the next epoch on; its counts are added.

        `None`: keep none alive until it is called again.
        """
        self._loader = loader

    def slow_samples(self) -> set[int]:
        """The indices of the slowest samples so far."""
        self._flush()
        return {index for block in self.blocks for index in block.slow_indices()}

    def batches(self) -> Iterator[Any]:
        """Begin an epoch."""
        self._flush()
        self._made.begin_epoch()
        loader = self._loader
        self._in_order = bool(getattr(loader, "in_order", True))
        if self._tracer is not None:
            return self._in_process(loader, self._tracer)
        with self._carried(loader):
            batches = self._begin(loader)
        self._made.follow(getattr(batches, "_workers_status", ()))
        taken: Iterator[Any] = self._late(loader, batches) if isgenerator(batches) else self._taken(batches)
        return taken

    def made_last(self) -> list[tuple[int, Made]]:
        """Return the known batches of the latest epoch in order, each with its number in the epoch.

        None of a loader that hands them out in another order: which is which cannot be told then.
        """
        self._flush()
        return self._made.of_last_epoch() if self._in_order else []

    def made(self, epoch: int, batch: int) -> Made | None:
        """Who made a batch of the `epoch`-th epoch, and when; `None` where that is not known, or no longer."""
        self._flush()
        return self._made.find(epoch, batch) if self._in_order else None

    def mark(self) -> Mark:
        """A moment from which `read` can count."""
        self._flush()
        return mark(self.blocks, self.taking.read())

    def read(self, since: Mark | None = None) -> Traced:
        """What was traced since a mark, or from the beginning."""
        self._flush()
        return read(self.blocks, since, self.taking.read())

    def _flush(self) -> None:
        if self._tracer is not None:
            self._tracer.flush()

    def begin_threads(self) -> None:
        """Look at the lines of a main process that loads by itself, in this thread."""
        if self._line_clock is not None:
            self._line_clock.begin()

    def end_threads(self) -> None:
        """Look at no lines of this process: it may fork."""
        if self._line_clock is not None:
            self._line_clock.end()

    def stop(self) -> None:
        """Trace no more. Workers that persist are kept by the loader, as ever."""
        self.end_threads()
        for block in self.blocks:
            block.header[layout.ENABLED] = 0.0

    def _in_process(self, loader: Any, tracer: Tracer) -> Iterator[Any]:
        dataset = loader.passed if isinstance(loader, OtherLoader) else loader.dataset
        try:
            attachment = Attachment(Finder(tracer).dataset(dataset, inside=not self._marks_only))
        except Exception as error:  # what a dataset holds may be anything
            self.blocks[0].fail(f"{type(error).__name__}: {error}")
            return self._taken(self._begin(loader))
        replaced: dict[str, Any] = {"collate_fn": TracedCollate(loader.collate_fn)}
        pipe = any(kind.__name__ in _DATAPIPES for kind in type(dataset).__mro__)
        if not attachment.holds(maker_of(dataset)) and not pipe:
            replaced["dataset"] = SampleProxy(dataset, tracer)
        with _replaced(vars(loader), replaced):
            attachment.attach()
            try:
                batches = self._begin(loader)
            finally:
                attachment.detach()
        if not self._marks_only:
            self.taking.follow_sampler(batches)
        if self._choice is not None:
            self._choice.begin_epoch()
        made = InProcess(
            batches,
            tracer,
            attachment,
            hooked=not self._marks_only,
            switch_s=SWITCH_S if self._lines else None,
            choice=self._choice,
        )
        return self._taken(made)

    def _taken(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Time how they are taken, unless only marks are asked for."""
        return batches if self._marks_only else Taken(batches, self.taking)

    @contextmanager
    def _carried(self, loader: Any) -> Iterator[None]:
        """What the loader is to carry to its workers. Those that persist are traced if this trace started them."""
        own = vars(loader)
        collate, init = TracedCollate(loader.collate_fn), loader.worker_init_fn
        replaced = {
            "collate_fn": collate,
            "worker_init_fn": TracedInit(self._memory, init, self._marks_only, self._lines, self._count),
        }
        earlier = own.get("_iterator")
        if earlier is not None and earlier not in self._persistent:
            own["_iterator"] = None  # others are started
        try:
            with _replaced(own, replaced), self._recounted_at_start(own.get("_iterator")):
                yield
        except BaseException:
            if earlier is not None:
                own["_iterator"] = earlier
            raise
        if (begun := own.get("_iterator")) is not None:
            self._persistent.add(begun)

    def _recounted_at_start(self, persistent: Any) -> AbstractContextManager[None]:
        """Let an iterator whose workers persist tell when these begin with the new epoch."""
        own = getattr(persistent, "__dict__", {})
        return _replaced(
            own, {"_index_sampler": NotifyingSampler(own.get("_index_sampler"), self._made.count_from_now)}
        )

    def _late(self, loader: Any, batches: Iterator[Any]) -> Iterator[Any]:
        """A loader whose `__iter__` is a generator begins its epoch when it is first asked."""
        with self._carried(loader):
            first = next(batches, self)
        if first is self:
            return
        handed = [first]
        del loader, first  # or it would be kept for the whole epoch
        yield handed.pop()
        yield from chain(batches)  # without `chain`, it would close what is the user's


def _shared_memory(size_bytes: int, start_method: str) -> Any:
    """Memory for counters of workers; `RawArray` takes it from `/dev/shm`, which may be small and hold batches."""
    return mmap.mmap(-1, size_bytes) if start_method == "fork" else RawArray("B", size_bytes)


@contextmanager
def _replaced(attributes: dict[str, Any], new: dict[str, Any]) -> Iterator[None]:
    """Put others in the place of attributes that are there, for a moment."""
    before = {name: attributes[name] for name in new if name in attributes}
    attributes.update({name: value for name, value in new.items() if name in before})
    try:
        yield
    finally:
        attributes.update(before)


def start_method_of(source: Any) -> str:
    """How its workers start: its own context's method, else the process's, as far as that has been chosen."""
    context = getattr(source, "multiprocessing_context", None)
    if context is not None:
        return str(context.get_start_method())
    import multiprocessing

    chosen = multiprocessing.get_start_method(allow_none=True)  # without it, asking would choose the default for good
    return chosen or multiprocessing.get_all_start_methods()[0]


def is_loader(source: Any) -> bool:
    """Whether it is torch's `DataLoader`, or one that is traced as such; nothing is before torch is imported."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(source, data.DataLoader | OtherLoader)


def worker_arguments(loader: Any) -> Config:
    """A `DataLoader`'s worker arguments as plain values: torch also accepts NumPy integers, which JSON does not."""
    found: Config = {"num_workers": int(loader.num_workers)}
    if loader.num_workers:
        ahead = loader.prefetch_factor
        found["prefetch_factor"] = None if ahead is None else int(ahead)
        found["persistent_workers"] = bool(loader.persistent_workers)
    return found


class IterableTrace:
    """Times what the caller's own thread does inside `next()`: marked stages, and functions that read and decode.

    `count` says how many samples a batch holds. How long each took is not told, for a batch is made in one piece.
    """

    def __init__(self, source: Iterable[Any], count: Callable[[Any], int], *, marks_only: bool = False) -> None:
        self._source, self._count = source, count
        self._block = Block(bytearray(BLOCK_BYTES))
        self._tracer = Tracer(self._block)
        self._made = MadeBatches([self._block], in_workers=False)
        self._hooked = not marks_only
        self.taking = TakingClock()
        self._block.header[layout.ENABLED] = 1.0

    def follow(self, source: Iterable[Any] | None) -> None:
        """Trace this source from the next epoch on; its counts are added. `None`: keep none alive until then."""
        self._source = () if source is None else source

    def slow_samples(self) -> set[int]:
        """None: how long each sample took is not known."""
        return set()

    def batches(self) -> Iterator[Any]:
        """Begin an epoch."""
        self._tracer.bind()
        self._made.begin_epoch()
        made = InProcess(self._batches_made(iter(self._source)), self._tracer, None, hooked=self._hooked)
        return Taken(made, self.taking) if self._hooked else made

    def made(self, epoch: int, batch: int) -> Made | None:
        """When a batch of the `epoch`-th epoch was made, inside `next()`; `None` where that is no longer known."""
        return self._made.find(epoch, batch)

    def mark(self) -> Mark:
        """A moment from which `read` can count."""
        return mark([self._block], self.taking.read())

    def read(self, since: Mark | None = None) -> Traced:
        """What was traced since a mark, or from the beginning."""
        self._tracer.flush()
        return read([self._block], since, self.taking.read())

    def stop(self) -> None:
        """Trace no more."""
        self._block.header[layout.ENABLED] = 0.0

    def _batches_made(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self._tracer.batch(batches.__next__, self._count)
            except StopIteration:
                return
