"""Traces one `DataLoader`, by replacing two of its attributes while it starts an epoch."""

from __future__ import annotations

import mmap
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from inspect import isgenerator
from itertools import chain, repeat
from multiprocessing.sharedctypes import RawArray
from typing import Any

from loaderbench.records import Config
from loaderbench.tracing import block as layout
from loaderbench.tracing.attach import Attachment, InProcess
from loaderbench.tracing.batch_choice import BatchChoice
from loaderbench.tracing.block import BLOCK_BYTES, Block
from loaderbench.tracing.lines import LineClock
from loaderbench.tracing.made import Made, MadeBatches
from loaderbench.tracing.other_loader import OtherLoader
from loaderbench.tracing.parts import Finder, SampleProxy, maker_of
from loaderbench.tracing.reading import Mark, Traced, mark, read
from loaderbench.tracing.taking import NotifyingSampler, Taken, TakingClock
from loaderbench.tracing.tracer import Count, Tracer
from loaderbench.tracing.worker import TracedCollate, TracedInit

Begin = Callable[[Any], Iterator[Any]]
"""Begins an epoch over a loader, like `iter`."""

_TRACED = ("dataset", "num_workers", "collate_fn", "worker_init_fn")
_DATAPIPES = ("IterDataPipe", "MapDataPipe")


class LoaderTrace:
    """Traces one loader over all epochs that are begun with `batches`.

    `marks_only`: time only the stages that the user's own code marks. `lines`: also find the lines of code where
    threads that load samples spend their time. `begin` begins an epoch over a loader. `count` returns the number of
    samples in an item of the dataset; without it, an item is one sample.
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
        if self.workers and not marks_only:
            import PIL.Image  # noqa: F401 - once, so forked workers do not import it in each epoch
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
        self._persistent: weakref.WeakSet[Any] = weakref.WeakSet()  # torch iterators whose workers are traced
        for block in self.blocks:
            block.header[layout.ENABLED] = 1.0

    def follow(self, loader: Any) -> None:
        """Trace this loader, which has as many workers, from the next epoch on, and add to the same counters.

        `None` drops the reference to the current loader until the next call.
        """
        self._loader = loader

    def slow_samples(self) -> set[int]:
        """The dataset indices of the slowest samples so far."""
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
        with self._with_traced_callables(loader):
            batches = self._begin(loader)
        self._made.follow(getattr(batches, "_workers_status", ()))
        return _begun(batches, self._with_traced_callables(loader)) if isgenerator(batches) else self._taken(batches)

    def made_last(self) -> list[tuple[int, Made]]:
        """The known batches of the latest epoch in order, each with its number in the epoch.

        Empty for a loader that returns batches out of order, because their makers are then unknown.
        """
        self._flush()
        return self._made.of_last_epoch() if self._in_order else []

    def made_in(self, epoch: int) -> list[tuple[int, Made]]:
        """The same for the `epoch`-th epoch, as far as the workers' blocks still hold its batches."""
        self._flush()
        return self._made.of_epoch(epoch) if self._in_order else []

    def made(self, epoch: int, batch: int) -> Made | None:
        """Who made a batch of the `epoch`-th epoch, and when; `None` if that is unknown or no longer stored."""
        self._flush()
        return self._made.find(epoch, batch) if self._in_order else None

    @property
    def senders(self) -> frozenset[int]:
        """The IDs of the threads that send the workers' batches, as far as known."""
        return frozenset(int(block.header[layout.SENDER]) for block in self.blocks) - {0}

    def mark(self) -> Mark:
        """A mark from which `read` can count."""
        self._flush()
        return mark(self.blocks, self.taking.read())

    def read(self, since: Mark | None = None) -> Traced:
        """What was traced since a mark, or since the beginning."""
        self._flush()
        return read(self.blocks, since, self.taking.read())

    def _flush(self) -> None:
        if self._tracer is not None:
            self._tracer.flush()

    def begin_threads(self) -> None:
        """Start taking stack samples of this thread, if the main process loads the samples."""
        if self._line_clock is not None:
            self._line_clock.begin()

    def end_threads(self) -> None:
        """Stop taking stack samples in this process, so it can fork."""
        if self._line_clock is not None:
            self._line_clock.end()

    def stop(self) -> None:
        """Stop tracing. The loader keeps its persistent workers as usual."""
        self.end_threads()
        for block in self.blocks:
            block.header[layout.ENABLED] = 0.0

    def _in_process(self, loader: Any, tracer: Tracer) -> Iterator[Any]:
        dataset = loader.passed if isinstance(loader, OtherLoader) else loader.dataset
        try:
            attachment = Attachment(Finder(tracer).dataset(dataset, inside=not self._marks_only))
        except Exception as error:  # a dataset can hold arbitrary objects
            self.blocks[0].fail(f"{type(error).__name__}: {error}")
            return self._taken(self._begin(loader))
        replaced: dict[str, Any] = {"collate_fn": TracedCollate(loader.collate_fn)}
        pipe = any(kind.__name__ in _DATAPIPES for kind in type(dataset).__mro__)
        if not attachment.holds(maker_of(dataset)) and not pipe:
            replaced["dataset"] = SampleProxy(dataset, tracer)
        own = vars(_owner(loader))
        with _replaced(own, replaced), self._timing_start(loader):
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
            choice=self._choice,
        )
        return self._taken(_begun(made, _replaced(own, replaced)) if isgenerator(batches) else made)

    def _taken(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Time the calls of `next()`, unless only marked stages are traced."""
        return batches if self._marks_only else Taken(batches, self.taking)

    @contextmanager
    def _with_traced_callables(self, loader: Any) -> Iterator[None]:
        """Replace the callables that the loader passes to its workers with traced ones.

        Persistent workers are traced if this trace started them.
        """
        own = vars(_owner(loader))
        collate, init = TracedCollate(loader.collate_fn), loader.worker_init_fn
        replaced = {
            "collate_fn": collate,
            "worker_init_fn": TracedInit(self._memory, init, self._marks_only, self._lines, self._count),
        }
        earlier = own.get("_iterator")
        if earlier is not None and earlier not in self._persistent:
            own["_iterator"] = None  # forces the loader to start new workers
        try:
            detecting = self._detecting_epoch_start(own.get("_iterator"))
            with _replaced(own, replaced), self._timing_start(loader), detecting:
                yield
        except BaseException:
            if earlier is not None:
                own["_iterator"] = earlier
            raise
        if (begun := own.get("_iterator")) is not None:
            self._persistent.add(begun)

    def _timing_start(self, loader: Any) -> AbstractContextManager[None]:
        return nullcontext() if self._marks_only else self.taking.timing_start(loader)

    def _detecting_epoch_start(self, persistent: Any) -> AbstractContextManager[None]:
        """Detect when the workers of a persistent iterator begin the new epoch."""
        own = getattr(persistent, "__dict__", {})
        return _replaced(
            own,
            {"_index_sampler": NotifyingSampler(own.get("_index_sampler"), self.taking, self._made.count_from_now)},
        )


def _begun(batches: Iterator[Any], replacing: AbstractContextManager[None]) -> Iterator[Any]:
    """Iterate over a loader whose `__iter__` is a generator, which begins its epoch at the first `next()`."""
    end = object()
    with replacing:
        first = next(batches, end)
    if first is end:
        return
    handed = [first]
    del replacing, first  # otherwise the batch stays alive for the entire epoch
    yield handed.pop()
    yield from chain(batches)  # without `chain`, `yield from` would close the user's generator


def _owner(loader: Any) -> Any:
    """The loader that makes the batches: Accelerate's loaders take them from another one."""
    inner = getattr(loader, "__dict__", {}).get("base_dataloader")
    return _owner(inner) if is_loader(inner) else loader


def _shared_memory(size_bytes: int, start_method: str) -> Any:
    """Shared memory for the workers' counters.

    For forked workers it is anonymous: `RawArray` allocates in `/dev/shm`, which can be small and also holds batches.
    """
    return mmap.mmap(-1, size_bytes) if start_method == "fork" else RawArray("B", size_bytes)


@contextmanager
def _replaced(attributes: dict[str, Any], new: dict[str, Any]) -> Iterator[None]:
    """Temporarily replace those attributes that exist."""
    before = {name: attributes[name] for name in new if name in attributes}
    attributes.update({name: value for name, value in new.items() if name in before})
    try:
        yield
    finally:
        attributes.update(before)


def start_method_of(source: Any) -> str:
    """How the loader's workers start: by its own context's method, else by the process's method.

    A process that has not chosen a method yet is left free to choose one.
    """
    context = getattr(source, "multiprocessing_context", None)
    if context is not None:
        return str(context.get_start_method())
    import multiprocessing

    chosen = multiprocessing.get_start_method(allow_none=True)  # the call would otherwise fix the default for good
    return chosen or multiprocessing.get_all_start_methods()[0]


def is_loader(source: Any) -> bool:
    """Whether `source` is a torch `DataLoader` or an `OtherLoader`; always false before torch is imported.

    A subclass that never calls `DataLoader.__init__` is not one: it has none of the attributes that are traced.
    """
    data = sys.modules.get("torch.utils.data")
    is_one = data is not None and isinstance(source, data.DataLoader | OtherLoader)
    return is_one and all(hasattr(source, name) for name in _TRACED)


def worker_arguments(loader: Any) -> Config:
    """A `DataLoader`'s worker arguments as plain values: torch also accepts NumPy integers, which JSON does not."""
    found: Config = {"num_workers": int(loader.num_workers)}
    if loader.num_workers:
        ahead = loader.prefetch_factor
        found["prefetch_factor"] = None if ahead is None else int(ahead)
        found["persistent_workers"] = bool(loader.persistent_workers)
    return found


class IterableTrace:
    """Times what the caller's thread does inside `next()`: marked stages, and functions that read or decode.

    `count` returns the number of samples in a batch. The time of each sample is unknown, because a batch is made in one
    call.
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
        """Trace this source from the next epoch on, and add to the same counters.

        `None` drops the reference to the current source until the next call.
        """
        self._source = () if source is None else source

    def slow_samples(self) -> set[int]:
        """An empty set: the time of each sample is unknown."""
        return set()

    def batches(self) -> Iterator[Any]:
        """Begin an epoch."""
        self._tracer.bind()
        self._made.begin_epoch()
        # `map` continues after an exception, unlike a generator
        timed = map(self._tracer.batch, repeat(iter(self._source).__next__), repeat(self._count))
        made = InProcess(timed, self._tracer, None, hooked=self._hooked)
        return Taken(made, self.taking) if self._hooked else made

    def made(self, epoch: int, batch: int) -> Made | None:
        """When a batch of the `epoch`-th epoch was made, inside `next()`; `None` if that is no longer stored."""
        return self._made.find(epoch, batch)

    def mark(self) -> Mark:
        """A mark from which `read` can count."""
        return mark([self._block], self.taking.read())

    def read(self, since: Mark | None = None) -> Traced:
        """What was traced since a mark, or since the beginning."""
        self._tracer.flush()
        return read([self._block], since, self.taking.read())

    def stop(self) -> None:
        """Stop tracing."""
        self._block.header[layout.ENABLED] = 0.0
