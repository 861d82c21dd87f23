"""The backend `threads`: a thread pool makes batches of a dataset, a bounded number ahead of the consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, ClassVar

from loaderbench.loaders.backend import Batches, Code
from loaderbench.loaders.thread_workers import LoadingThreads, ThreadLoader
from loaderbench.loaders.torch_loader import check_samples_by_number, endless_sampler

_CODE = """\
from concurrent.futures import ThreadPoolExecutor
import torch

class ThreadLoader:
    def __init__(self, dataset, sampler, threads, queued):
        self.dataset, self.sampler, self.queued = dataset, sampler, queued
        torch.get_num_threads()  # the main thread keeps its thread count
        self.pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))

    def __len__(self):
        return len(self.sampler)

    def __iter__(self):
        under_way = []
        for numbers in self.sampler:
            under_way.append(self.pool.submit(self.make, numbers))
            if len(under_way) == self.queued:
                yield under_way.pop(0).result()
        while under_way:
            yield under_way.pop(0).result()

    def make(self, numbers):
        make_all = getattr(self.dataset, "__getitems__", None)
        return default_collate(make_all(numbers) if make_all else [self.dataset[number] for number in numbers])
"""


class ThreadPoolBatches:
    """Endless batches in the order of the sampler. An exception in a thread is raised in the consumer's thread."""

    def __init__(self, dataset: Any, sampler: Iterable[int], batch_size: int, threads: int, queued: int) -> None:
        self._sampler, self._batch_size, self._queued = sampler, batch_size, queued
        self.loading = LoadingThreads(threads, dataset)

    def __iter__(self) -> Iterator[Any]:
        self.loading.start()
        under_way, numbers = deque[Future[Any]](), self._numbers()
        while True:
            for batch in islice(numbers, self._queued - len(under_way)):
                under_way.append(self.loading.pool.submit(self.loading.make, batch))
            yield under_way.popleft().result()

    def _numbers(self) -> Iterator[list[int]]:
        """Yield the sample numbers of each batch."""
        numbers = iter(self._sampler)
        while True:
            yield [*islice(numbers, self._batch_size)]

    @property
    def dataset(self) -> Any:
        """The dataset that the samples come from."""
        return self.loading.dataset

    def threads(self) -> list[int]:
        """Kernel IDs of the running threads."""
        return self.loading.numbers()

    def end(self) -> None:
        """End the threads after their current batches."""
        self.loading.end()


class Threads(ThreadLoader):
    """Threads of the training process: nothing is copied between processes, and all threads share the GIL."""

    name: ClassVar[str] = "threads"
    keeps_own_code: ClassVar[bool] = True
    makes: ClassVar[type[ThreadPoolBatches]] = ThreadPoolBatches

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read a map-style dataset. Raises `TypeError` for any other source."""
        check_samples_by_number(source, self.name)
        sampler, per_epoch = endless_sampler(source, arguments, seed)
        asked = self.asked(arguments, seed)
        made = self.makes(source, sampler, asked.batch_size, asked.threads, asked.queued)
        return self.batches(made, arguments, per_epoch, cycle=asked.threads, loading=made.loading)

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code of a class that does the same, epoch after epoch."""
        threads, queued = self.prefetch(arguments).workers, self.queued(arguments)
        loader = f"loader = ThreadLoader(dataset, sampler, threads={threads}, queued={queued})"
        return [with_collate_fn(_CODE, arguments), "\n".join([*self.sampler_code(arguments), *comments, loader])]

    def sampler_code(self, arguments: Mapping[str, Any]) -> list[str]:
        """Code that creates `sampler`, which yields the sample numbers of each batch, and imports."""
        order = "RandomSampler" if arguments.get("shuffle") else "SequentialSampler"
        size, drops = self.prefetch(arguments).batch_size, bool(arguments.get("drop_last"))
        imports, numbers = ["BatchSampler", order], f"{order}(dataset)"
        if _is_own("sampler", arguments):
            imports, numbers = ["BatchSampler"], "sampler"
        made = f"sampler = BatchSampler({numbers}, batch_size={size}, drop_last={drops})"
        if _is_own("batch_sampler", arguments):
            imports, made = [], "sampler = batch_sampler"
        imports += [] if _is_own("collate_fn", arguments) else ["default_collate"]
        head = [f"from torch.utils.data import {', '.join(imports)}", ""] if imports else []
        return [*head, made]


def with_collate_fn(code: str, arguments: Mapping[str, Any]) -> str:
    """The code of a loader, with the user's `collate_fn` in place of torch's default if there is one."""
    return code.replace("default_collate", arguments["collate_fn"]) if _is_own("collate_fn", arguments) else code


def _is_own(name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether an argument is code of the user's program. A suite's target can have options of the same names."""
    return isinstance(arguments.get(name), Code)
