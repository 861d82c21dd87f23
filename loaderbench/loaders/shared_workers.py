"""Worker processes that all ranks of a machine share. A program to paste contains this code unchanged."""

import pickle
import random
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle
from multiprocessing import current_process
from multiprocessing.connection import Client, Connection, Listener, wait
from socket import gethostname
from typing import Any

import torch
from torch import distributed, multiprocessing
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data._utils import worker as this_worker


class SharedWorkers:
    """The batches of a map-style `DataLoader`, from worker processes that load for all ranks of this machine.

    Create it in all ranks at the same point, after `init_process_group` and `torch.cuda.set_device`, and before other
    loaders start workers. Each rank starts `num_workers` workers, and each worker makes batches of all ranks in turn.
    A rank with slower samples gets more of the workers' time. Each worker has a copy of dataset and `collate_fn`; later
    changes do not reach it. The workers of a rank end with it, so ranks should end together.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        if not loader.num_workers or loader.batch_sampler is None or isinstance(loader.dataset, IterableDataset):
            raise TypeError("shared workers need num_workers, and a map-style dataset with batches")
        if type(loader).__iter__ is not DataLoader.__iter__:
            raise TypeError(f"shared workers cannot iterate as {type(loader).__name__} does")
        rank = distributed.get_rank() if distributed.is_initialized() else 0
        everyone = _gathered((gethostname(), bytes(current_process().authkey)))
        ranks_here = [other for other, (host, _) in enumerate(everyone) if host == gethostname()]
        self._place, self._ranks_here = ranks_here.index(rank), len(ranks_here)
        current_process().authkey = key = everyone[ranks_here[0]][1]  # tensors come through sockets with this key
        addresses = _gathered(self._start())
        workers = [Client(address, authkey=key) for other in ranks_here for address in addresses[other]]
        for worker in workers:  # in the same order in all ranks: a worker waits until it has the datasets of all
            with _reported():
                worker.send((loader.dataset, loader.collate_fn))
        first = self._place * loader.num_workers
        self._workers, self._asked = workers[first:] + workers[:first], deque[Connection]()
        self.ahead = max(len(workers), loader.num_workers * (loader.prefetch_factor or 2))  # batches ready or in flight

    def _start(self) -> list[Any]:
        """Start this rank's workers, and return their addresses."""
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self.generator))
        key, context = current_process().authkey, multiprocessing.get_context("fork")
        self._listeners = [Listener(backlog=self._ranks_here, authkey=key) for _ in range(self.num_workers)]
        for number, listener in enumerate(self._listeners, self._place * self.num_workers):
            info = {"id": number, "num_workers": self._ranks_here * self.num_workers, "seed": seed + number}
            arguments = (listener, self._ranks_here, info, self.worker_init_fn)
            context.Process(target=_load, args=arguments, daemon=True).start()
        return [listener.address for listener in self._listeners]

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def __iter__(self) -> Iterator[Any]:
        if self._asked:
            raise RuntimeError("an earlier iteration over these workers is still open")
        try:
            for worker, numbers in zip(cycle(self._workers), iter(self.batch_sampler), strict=False):
                with _reported():
                    worker.send(numbers)
                self._asked.append(worker)
                if len(self._asked) > self.ahead:
                    yield self._next()
            while self._asked:
                yield self._next()
        finally:  # the epoch may have been left early
            while self._asked:
                with suppress(EOFError, OSError):
                    self._asked.popleft().recv()

    def _next(self) -> Any:
        with _reported():
            batch = self._asked[0].recv()
        self._asked.popleft()
        if isinstance(batch, RuntimeError):
            raise batch
        return batch

    def close(self) -> None:
        """Leave the workers; they end once all ranks have left them."""
        for worker in self._workers:
            with suppress(OSError):
                worker.send(None)
            worker.close()


def _gathered(own: Any) -> list[Any]:
    """An object of each rank."""
    if not distributed.is_initialized():
        return [own]
    found = [own] * distributed.get_world_size()
    distributed.all_gather_object(found, own)
    return found


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        raise RuntimeError("a worker shared by the ranks of this machine exited unexpectedly") from error


def _load(listener: Listener, ranks: int, info: dict[str, Any], init: Callable[[int], None] | None) -> None:
    """One worker, until all ranks have left it. One thread per rank sends its batches."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    multiprocessing._prctl_pr_set_pdeathsig(signal.SIGTERM)  # type: ignore[attr-defined]
    torch.set_num_threads(1)
    torch.manual_seed(info["seed"])
    random.seed(info["seed"])
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(info["seed"] % 2**32)
    accepted = [listener.accept() for _ in range(ranks)]
    error, known, sources = None, dict[bytes, Any](), dict[Any, Any]()
    for rank in accepted:
        sent = rank.recv_bytes()
        if sent not in known:  # the same dataset in all ranks is kept once
            dataset, collate = pickle.loads(sent)
            this_worker._worker_info = this_worker.WorkerInfo(**info, dataset=dataset)
            done = _result(init, info["id"]) if init else None
            error = error or (done if isinstance(done, RuntimeError) else None)
            known[sent] = this_worker._worker_info, dataset, collate
        sources[rank] = known[sent]
    del sent, known
    senders = {rank: ThreadPoolExecutor(1) for rank in accepted}
    while sources:
        ready: list[Any] = wait(list(sources))
        for rank in ready:
            numbers = None
            with suppress(EOFError, OSError):
                numbers = rank.recv()
            if numbers is None:  # the rank has left
                del sources[rank]
                continue
            this_worker._worker_info, *source = sources[rank]
            senders[rank].submit(_send, rank, error or _result(_batch, *source, numbers))


def _batch(dataset: Any, collate: Callable[[Any], Any], numbers: list[Any]) -> Any:
    make_all = getattr(dataset, "__getitems__", None)
    return collate(make_all(numbers) if make_all else [dataset[number] for number in numbers])


def _result(make: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns, or its exception as a `RuntimeError` that any rank can unpickle."""
    try:
        return make(*arguments)
    except Exception:
        return RuntimeError(traceback.format_exc())


def _send(rank: Connection, batch: Any) -> None:
    sent = _result(rank.send, batch)
    if sent is not None:  # the batch cannot be pickled
        rank.send(sent)
