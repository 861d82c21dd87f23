"""Traces a loader that runs a dataset's code in threads, with a block and a tracer for each thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from loaderbench.tracing import active, block as layout, hooks
from loaderbench.tracing.attach import Attachment
from loaderbench.tracing.block import BLOCK_BYTES, Block
from loaderbench.tracing.made import Made, MadeBatches
from loaderbench.tracing.parts import Finder, SampleProxy
from loaderbench.tracing.reading import Mark, Traced, mark, read
from loaderbench.tracing.taking import Taken, TakingClock
from loaderbench.tracing.tracer import Tracer


class Threads(Protocol):
    """The threads of a loader that make batches of a dataset: `count` of them.

    `collate_fn` makes a batch of samples. Each thread calls `thread_init_fn` with its number before its first batch.
    """

    count: int
    dataset: Any
    collate_fn: Callable[[Any], Any]
    thread_init_fn: Callable[[int], None] | None


class ThreadsTrace:
    """Traces a loader in its threads until its batches end.

    `source` yields the batches that `threads` make: the same objects that their `collate_fn` returned.
    """

    def __init__(self, source: Iterable[Any], threads: Threads) -> None:
        self.workers = threads.count
        memory = bytearray(BLOCK_BYTES * threads.count)
        self._source, self._blocks = source, [Block(memory, number) for number in range(threads.count)]
        self._tracers = [Tracer(block) for block in self._blocks]
        self._collate = threads.collate_fn
        self._made = MadeBatches(self._blocks, in_workers=True)
        # A batch's maker is its thread and the number of batches that the thread made before. `_makers` holds those of
        # batches in flight, by `id`; `_taken` those of each epoch in order.
        self._makers: dict[int, tuple[int, int]] = {}
        self._taken: list[list[tuple[int, int] | None]] = []
        self._taking = TakingClock()
        for block in self._blocks:
            block.header[layout.ENABLED] = 1.0
        own = TracerOfThread(self._tracers)
        self._attachment = Attachment(Finder(own).dataset(threads.dataset))
        if not self._attachment.holds(threads.dataset):
            threads.dataset = SampleProxy(threads.dataset, own)
        threads.collate_fn, threads.thread_init_fn = self._collated, self._begin_in_thread

    def batches(self) -> Iterator[Any]:
        """Begin an epoch."""
        self._taken.append([])
        return Taken(self._traced_batches(), self._taking)

    def made(self, epoch: int, batch: int) -> Made | None:
        """Who made a batch of the `epoch`-th epoch, and when; `None` if that is unknown or no longer stored."""
        taken = self._taken[epoch] if epoch < len(self._taken) else []
        maker = taken[batch] if batch < len(taken) else None
        return None if maker is None else self._made.by(*maker)

    def made_last(self) -> list[tuple[int, Made]]:
        """The known batches of the latest epoch in order, each with its number in the epoch."""
        return self.made_in(len(self._taken) - 1)

    def made_in(self, epoch: int) -> list[tuple[int, Made]]:
        """The same for the `epoch`-th epoch, as far as the threads' blocks still hold its batches."""
        found = ((batch, self.made(epoch, batch)) for batch in range(len(self._taken[epoch])))
        return [(batch, made) for batch, made in found if made is not None]

    def mark(self) -> Mark:
        """A mark from which `read` can count."""
        return mark(self._blocks, self._taking.read())

    def read(self, since: Mark | None = None) -> Traced:
        """What was traced since a mark, or since the beginning."""
        return read(self._blocks, since, self._taking.read())

    def _traced_batches(self) -> Iterator[Any]:
        """Iterate over the batches with functions and classes patched, and restore them afterwards."""
        self._attachment.attach()
        hooks.install()
        try:
            yield from map(self._maker_recorded, self._source)  # a loop variable would keep a batch alive
        finally:
            hooks.remove()
            self._attachment.detach()

    def _maker_recorded(self, batch: Any) -> Any:
        """Record which thread made a batch, and return the batch."""
        self._taken[-1].append(self._makers.pop(id(batch), None))
        return batch

    def _begin_in_thread(self, number: int) -> None:
        tracer = self._tracers[number]
        tracer.bind()
        active.set_tracer(tracer)

    def _collated(self, samples: Any) -> Any:
        tracer = active.tracer()
        if tracer is None:
            return self._collate(samples)
        batch = tracer.collate(self._collate, samples)
        self._makers[id(batch)] = self._tracers.index(tracer), int(tracer.block.header[layout.BATCHES]) - 1
        return batch


class TracerOfThread:
    """Times the parts of a dataset with the tracer of the thread that calls them.

    All tracers give a part the same number.
    """

    def __init__(self, tracers: Sequence[Tracer]) -> None:
        self._tracers, self.decoding = tracers, set[int]()
        for tracer in tracers:
            tracer.decoding = self.decoding

    def place(self, stage: str, part: str = "") -> int:
        """The number assigned to a part of a stage."""
        return max(tracer.place(stage, part) for tracer in self._tracers)

    def sample(self, index: Any, call: Callable[..., Any], *args: Any) -> Any:
        """Call a function that loads a sample."""
        tracer = active.tracer()
        return call(*args) if tracer is None else tracer.sample(index, call, *args)

    def group(self, call: Callable[[Any], Any], indices: Sequence[Any]) -> Any:
        """Call a function that loads several samples at once."""
        tracer = active.tracer()
        return call(indices) if tracer is None else tracer.group(call, indices)

    def collate(self, call: Callable[[Any], Any], samples: Any) -> Any:
        """Call a function that collates samples into a batch."""
        tracer = active.tracer()
        return call(samples) if tracer is None else tracer.collate(call, samples)

    def forget_unfinished_batch(self) -> None:
        """See `Tracer.forget_unfinished_batch`."""
        if (tracer := active.tracer()) is not None:
            tracer.forget_unfinished_batch()

    def timed(self, call: Callable[..., Any], place: int) -> Callable[..., Any]:
        """Wrap `call` to charge its time to a stage of the thread that calls it."""
        timed = {tracer: tracer.timed(call, place) for tracer in self._tracers}

        def run(*args: Any, **kwargs: Any) -> Any:
            tracer = active.local.tracer
            return (call if tracer is None else timed.get(tracer, call))(*args, **kwargs)

        return run
