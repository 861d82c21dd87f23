"""Worker processes that all ranks of a machine share. A program to paste contains this code unchanged."""

import os
import random
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import cycle
from multiprocessing import current_process
from multiprocessing.connection import Client, Connection, Listener, wait
from typing import Any

import torch
from torch import distributed, multiprocessing
from torch.utils.data import DataLoader, IterableDataset


class SharedWorkers:
    """The batches of a map-style `DataLoader`, from worker processes that load for all ranks of this machine.

    Create it in all ranks at the same point, after `init_process_group`. Each rank starts `num_workers` workers, and
    each worker makes batches of all ranks in turn, so a rank with slower samples gets more of the workers' time. The
    dataset and `collate_fn` are pickled.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        if not loader.num_workers or loader.batch_sampler is None or isinstance(loader.dataset, IterableDataset):
            raise TypeError("shared workers need num_workers, and a map-style dataset with batches")
        rank, ranks = (distributed.get_rank(), distributed.get_world_size()) if distributed.is_initialized() else (0, 1)
        place, here = int(os.environ.get("LOCAL_RANK", rank)), int(os.environ.get("LOCAL_WORLD_SIZE", ranks))
        ranks_here = slice(rank - place, rank - place + here)
        key = _gathered(bytes(current_process().authkey), ranks)[ranks_here][0]
        current_process().authkey = key  # of the sockets through which tensors come
        addresses = _gathered(self._start(here), ranks)[ranks_here]
        workers = [Client(address, authkey=key) for of_rank in addresses for address in of_rank]
        for worker in workers:  # in the same order in all ranks: a worker waits until it has the datasets of all
            worker.send((loader.dataset, loader.collate_fn))
        self._workers = workers[place * loader.num_workers :] + workers[: place * loader.num_workers]
        self.ahead = max(len(workers), loader.num_workers * (loader.prefetch_factor or 2))  # batches ready or in flight

    def _start(self, ranks: int) -> list[Any]:
        """Start this rank's workers, and return their addresses."""
        context, seed = multiprocessing.get_context("fork"), torch.initial_seed()
        self._listeners = [Listener(backlog=ranks, authkey=current_process().authkey) for _ in range(self.num_workers)]
        for number, listener in enumerate(self._listeners):
            arguments = (listener, ranks, number, seed + number, self.worker_init_fn)
            context.Process(target=_load, args=arguments, daemon=True).start()
        return [listener.address for listener in self._listeners]

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def __iter__(self) -> Iterator[Any]:
        asked, batches = deque[Connection](), iter(self.batch_sampler)
        try:
            for worker, numbers in zip(cycle(self._workers), batches, strict=False):
                worker.send(numbers)
                asked.append(worker)
                if len(asked) == self.ahead:
                    yield _received(asked.popleft())
            while asked:
                yield _received(asked.popleft())
        finally:  # the epoch may have been left early
            with suppress(EOFError, ConnectionError):
                for worker in asked:
                    worker.recv()

    def close(self) -> None:
        """Leave the workers; they end once all ranks have left them."""
        for worker in self._workers:
            worker.close()


def _gathered(own: Any, ranks: int) -> list[Any]:
    """An object of each rank."""
    found = [own] * ranks
    if ranks > 1:
        distributed.all_gather_object(found, own)
    return found


def _received(worker: Connection) -> Any:
    try:
        batch = worker.recv()
    except (EOFError, ConnectionError):
        raise RuntimeError("a worker shared by the ranks of this machine has exited") from None
    if isinstance(batch, RuntimeError):
        raise batch
    return batch


def _load(listener: Listener, ranks: int, number: int, seed: int, init: Callable[[int], None] | None) -> None:
    """One worker, until all ranks have left it. Batches of a rank that are ready wait in a thread of their own."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    error = _result(init, number) if init else None
    accepted = [listener.accept() for _ in range(ranks)]
    datasets = {rank: rank.recv() for rank in accepted}
    senders = {rank: ThreadPoolExecutor(1) for rank in accepted}
    while datasets:
        ready: list[Any] = wait(list(datasets))
        for rank in ready:
            try:
                numbers = rank.recv()
            except (EOFError, ConnectionError):
                del datasets[rank]
                continue
            batch = error if isinstance(error, RuntimeError) else _result(_batch, *datasets[rank], numbers)
            senders[rank].submit(_send, rank, batch)


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
