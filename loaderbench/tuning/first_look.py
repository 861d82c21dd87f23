"""How fast a loader is as it stands, by some of its batches."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from loaderbench.recorder.samples import count_samples
from loaderbench.runner.forking import ForkingServer
from loaderbench.tuning import own_loader
from loaderbench.tuning.forked import call_in_copy
from loaderbench.tuning.plan import TuneOrder

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

LOOK_SHARE = 0.05  # of the budget
TIMEOUT = 3.0  # times the seconds that it may take


def with_rate(loader: DataLoader[Any], order: TuneOrder) -> TuneOrder:
    """The order with the loader's samples/s, which tells how long an epoch takes. Measuring uses some of the budget."""
    if order.own.samples_per_s is not None:
        return order
    began_s = time.monotonic()
    own = replace(order.own, samples_per_s=rate_of(loader, LOOK_SHARE * order.budget_s))
    return replace(order, own=own, budget_s=order.budget_s - (time.monotonic() - began_s))


def rate_of(loader: DataLoader[Any], seconds: float) -> float | None:
    """Samples/s of an epoch with the start of its workers, taken in a copy of this process for so long at most.

    `None` if no batch comes in time. Raises `KeyboardInterrupt` for Ctrl-C, and `OSError` if no process can be started.
    """
    found = call_in_copy(lambda: _ask(loader, seconds))
    if found.interrupted:
        raise KeyboardInterrupt
    return found.answer


def _ask(loader: DataLoader[Any], seconds: float) -> float | None:
    """In the copy."""
    gc.freeze()
    own_loader.keep(loader, whole_epochs=True)
    answer: float | None = ForkingServer().ask(_take, seconds, timeout_s=TIMEOUT * seconds)
    return answer


def _take(pipe: Connection, seconds: float) -> None:
    """In a copy of that, which may hang."""
    samples, began_s = 0, time.perf_counter()
    took_s = 0.0
    for batch in own_loader.changed_loader():
        samples += count_samples(batch)
        took_s = time.perf_counter() - began_s
        if took_s > seconds:
            break
    pipe.send(samples / took_s if samples else None)
