"""Runs inside a worker: two callables that the loader carries there, which wrap the user's own."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from typing import Any

from loaderbench.tracing import active
from loaderbench.tracing.attach import patch_classes
from loaderbench.tracing.block import BLOCK_BYTES, SENDER, Block
from loaderbench.tracing.hooks import install
from loaderbench.tracing.lines import SWITCH_S, LineClock
from loaderbench.tracing.parts import Finder, SampleProxy
from loaderbench.tracing.tracer import Count, Tracer


@dataclass(frozen=True)
class TracedInit:
    """A `worker_init_fn` that runs the user's, and then traces the worker's copy of the dataset.

    `memory` holds a block for each worker. `marks_only`: time only the stages that the user's code marks. `lines`: also
    take stack samples, from a thread. `count` is as in `LoaderTrace`. `pid` is the process that begins the epoch.
    """

    memory: Any
    original: Callable[[int], Any] | None
    marks_only: bool
    lines: bool = False
    count: Count | None = None
    pid: int = field(default_factory=os.getpid)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the memory of forked workers, which cannot be sent. Copies count in memory nobody reads."""
        memory = bytearray(len(self.memory)) if isinstance(self.memory, mmap.mmap) else self.memory
        return TracedInit, (memory, self.original, self.marks_only, self.lines, self.count, self.pid)

    def __call__(self, worker_id: int) -> None:
        """Start tracing in the worker, before its first sample."""
        in_thread = os.getpid() == self.pid
        if not in_thread:
            active.clear()
        if self.original is not None:
            self.original(worker_id)
        if (worker_id + 1) * BLOCK_BYTES > len(self.memory):  # the loader has more workers than when the epoch began
            return
        from torch.utils.data import get_worker_info

        info = get_worker_info()
        block = Block(self.memory, worker_id)
        if in_thread:  # nothing would restore the user's classes
            block.fail("its workers are threads of the main process")
            return
        try:
            tracer = Tracer(block, count=self.count)
            _trace(info.dataset if info else None, tracer, self.marks_only)
            block.header[SENDER] = 0.0
            queue = sys._getframe(1).f_locals.get("data_queue")  # of torch's `_worker_loop`
            if queue is not None:
                _unknown_senders.append((block, queue))
            if self.lines:
                sys.setswitchinterval(min(SWITCH_S, sys.getswitchinterval()))  # affects only this worker process
                LineClock(tracer).begin()
        except Exception as error:  # the user's loader continues untraced, and the parent process gets the reason
            active.clear()
            block.fail(f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class TracedCollate:
    """A `collate_fn` that times the user's, in a worker or in the main process."""

    original: Callable[..., Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return TracedCollate, (self.original,)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the user's function."""
        return getattr(self.original, name)

    def __call__(self, samples: Any, *args: Any, **named: Any) -> Any:
        """Collate samples into a batch. Only a loader's own code passes more."""
        tracer, collate = active.tracer(), self.original
        if args or named:
            collate = lambda own: self.original(own, *args, **named)  # noqa: E731
        if tracer is None:
            return collate(samples)
        if _unknown_senders:
            _find_sender()
        if _refused:
            _time_next_samples(sys._getframe(1).f_locals.get("self"))  # the worker's fetcher
        return tracer.collate(collate, samples)


_unknown_senders: list[tuple[Block, Any]] = []
"""The worker's block and its queue of batches, until the thread that sends them is known."""


def _find_sender() -> None:
    """Note the thread that sends the worker's batches. The queue starts it with the first one."""
    block, queue = _unknown_senders[0]
    thread = getattr(queue, "_thread", None)
    if thread is not None:
        block.header[SENDER] = thread.native_id or 0.0
        _unknown_senders.clear()


_refused: list[SampleProxy] = []
"""The worker's dataset, if its class was written in C, such as a list, and cannot be patched."""


def _time_next_samples(fetcher: Any) -> None:
    """Time the samples of a dataset that cannot be patched, from the fetcher's next batch on."""
    proxy = _refused[0]
    if proxy.is_of(getattr(fetcher, "dataset", None)):
        fetcher.dataset = proxy


def _trace(dataset: Any, tracer: Tracer, marks_only: bool) -> None:
    if not marks_only:
        import PIL.Image  # noqa: F401 - loaded now, to find its functions
    refused = patch_classes(Finder(tracer).dataset(dataset, inside=not marks_only))
    if type(dataset).__name__ in refused:
        if hasattr(dataset, "__getitem__"):
            _refused.append(SampleProxy(dataset, tracer))
        else:
            tracer.block.fail(f"{type(dataset).__name__} has no Python code that can be timed")
    active.set_tracer(tracer)
    Finalize(None, tracer.flush, exitpriority=0)
    if not marks_only:
        install()
