"""The backend `spdl`: an SPDL pipeline makes batches of a dataset in threads, in the order of the sampler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from loaderbench.loaders.backend import Prefetch
from loaderbench.loaders.threads import ThreadPoolBatches, Threads, with_collate_fn

IN_PIPELINE = 5
"""Batches in flight beyond one per thread.

The queue between stage and sink holds two, and each of three coroutines holds one that it is about to enqueue.
"""

_SETUP = """\
from concurrent.futures import ThreadPoolExecutor
import torch
from spdl.pipeline import PipelineBuilder

def make(numbers):
    make_all = getattr(dataset, "__getitems__", None)
    return default_collate(make_all(numbers) if make_all else [dataset[number] for number in numbers])
"""
_PIPELINE = """\
torch.get_num_threads()  # the main thread keeps its thread count
pool = ThreadPoolExecutor({threads}, initializer=torch.set_num_threads, initargs=(1,))
loader = (
    PipelineBuilder()
    .add_source(sampler, continuous=True)
    .pipe(make, concurrency={threads}, executor=pool, output_order="input")
    .add_sink({queued})
    .build(num_threads=1, max_failures=0)
)"""


@dataclass(frozen=True)
class _Failed:
    """A failure in place of a batch: SPDL would log the exception and skip the batch."""

    error: BaseException


class SpdlBatches(ThreadPoolBatches):
    """A pipeline with one stage. Its sink holds up to `queued` finished batches."""

    def __init__(self, dataset: Any, sampler: Iterable[int], batch_size: int, threads: int, queued: int) -> None:
        super().__init__(dataset, sampler, batch_size, threads, queued)
        self._concurrency = threads
        self._pipeline: Any = None

    def __iter__(self) -> Iterator[Any]:
        from spdl.pipeline import PipelineBuilder

        self.loading.start()
        stage = {"concurrency": self._concurrency, "executor": self.loading.pool, "output_order": "input"}
        builder = PipelineBuilder().add_source(self._numbers()).pipe(self._make, **stage).add_sink(self._queued)
        self._pipeline = builder.build(num_threads=1)  # this thread never starts: the stage has its own executor
        with self._pipeline.auto_stop():
            for made in self._pipeline:
                if isinstance(made, _Failed):
                    raise made.error
                yield made

    def _make(self, numbers: list[int]) -> Any:
        try:
            return self.loading.make(numbers)
        except BaseException as error:
            return _Failed(error)

    def end(self) -> None:
        """End SPDL's threads, then the loading threads."""
        if self._pipeline is not None:
            self._pipeline.stop()
        super().end()


class Spdl(Threads):
    """SPDL schedules the work; samples come from the dataset's code, not from SPDL's decoders."""

    display_name: ClassVar[str] = "SPDL"
    needs: ClassVar[str] = "spdl"
    install: ClassVar[str] = "uv pip install spdl-core"
    name: ClassVar[str] = "spdl"
    makes: ClassVar[type[ThreadPoolBatches]] = SpdlBatches

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        """Prefetch more than `queued`, which is the size of the sink alone."""
        found = super().prefetch(arguments)
        return replace(found, queued=self.queued(arguments) + (found.workers or 1) + IN_PIPELINE)

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code of a pipeline that yields epoch after epoch."""
        made = _PIPELINE.format(threads=self.prefetch(arguments).workers, queued=self.queued(arguments))
        return [with_collate_fn(_SETUP, arguments), "\n".join([*self.sampler_code(arguments), *comments, made])]
