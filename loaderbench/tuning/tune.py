"""Finds faster arguments for a loader in forked copies of its process, after a short measurement of its rate."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaderbench.recorder.samples import count_samples
from loaderbench.records import Config
from loaderbench.runner.forking import ForkingServer
from loaderbench.session import Listener, MoreRounds, run_suite
from loaderbench.statistics.faster_arguments import undecided_pair
from loaderbench.tracing.loader import worker_arguments
from loaderbench.tuning import own_loader
from loaderbench.tuning.forked import call_in_copy, why_not_tried
from loaderbench.tuning.plan import TuneOrder, TunePlan, make_tune_plan
from loaderbench.tuning.tuned import Tuned, tuned_by

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

LOOK_SHARE = 0.05  # share of the budget
MORE_SHARE = 0.5  # share of the time after the sweep for more rounds; the rest is for the final and fixes
TIMEOUT = 3.0  # multiple of the seconds that the measurement may take


class TuningInterrupted(KeyboardInterrupt):
    """Raised for Ctrl-C during tuning; `tuned` is the result so far."""

    def __init__(self, tuned: Tuned) -> None:
        super().__init__()
        self.tuned = tuned


def tune_loader(loader: DataLoader[Any], order: TuneOrder, folder: Path, listener: Listener | None = None) -> Tuned:
    """Measure other arguments in forked copies of this process, and write a run folder.

    This process waits, and nothing in it changes except values in shared memory. Raises `TuningInterrupted` for Ctrl-C,
    and `KeyboardInterrupt` for a second one or before the first trial.
    """
    present = worker_arguments(loader)
    if why := why_not_tried(loader):
        return Tuned(present=present, arguments=present, why_none=why)
    try:
        plan = make_tune_plan(loader, with_rate(loader, order))
        own_loader.keep(loader, whole_epochs=plan.whole_epochs)
        found = call_in_copy(lambda: _measure(plan, present, folder, listener))
    except OSError as error:
        return Tuned(present=present, arguments=present, why_none=f"cannot start a process: {error}")
    finally:
        own_loader.forget()
    tuned = found.answer or Tuned(present=present, arguments=present, why_none=found.raised)
    tuned = replace(tuned, worker_init_fn=_name_of(loader.worker_init_fn))
    if found.interrupted:
        raise TuningInterrupted(tuned)
    return tuned


def _name_of(function: Callable[[int], None] | None) -> str:
    """The function's name in the script; the name of the class for a callable object."""
    if function is None:
        return ""
    function = function.func if isinstance(function, partial) else function
    return str(getattr(function, "__name__", type(function).__name__))


def _measure(plan: TunePlan, present: Config, folder: Path, listener: Listener | None) -> Tuned:
    """Measure in the forked copy. Inherited objects are never freed: a loader's iterator would end workers."""
    gc.freeze()
    from loaderbench.conclusion import conclude
    from loaderbench.runner import preload  # noqa: F401 - imported once here instead of in every trial

    more = MoreRounds(lambda measured: undecided_pair(conclude(measured)), "decide which is faster", MORE_SHARE)
    result = run_suite(plan.loaded, folder, listener, server=ForkingServer(), more_rounds=more)
    return tuned_by(result.run.record, present, folder)


def with_rate(loader: DataLoader[Any], order: TuneOrder) -> TuneOrder:
    """The order with the loader's samples/s, which gives the length of an epoch. Measuring uses part of the budget."""
    if order.own.samples_per_s is not None:
        return order
    began_s = time.monotonic()
    own = replace(order.own, samples_per_s=rate_of(loader, LOOK_SHARE * order.budget_s))
    return replace(order, own=own, budget_s=order.budget_s - (time.monotonic() - began_s))


def rate_of(loader: DataLoader[Any], seconds: float) -> float | None:
    """Samples/s of an epoch, including the start of its workers, measured in a forked copy for at most `seconds`.

    Returns `None` if no batch arrives in time. Raises `KeyboardInterrupt` for Ctrl-C, and `OSError` if no process can
    be started.
    """
    found = call_in_copy(lambda: _measure_rate(loader, seconds))
    if found.interrupted:
        raise KeyboardInterrupt
    return found.answer


def _measure_rate(loader: DataLoader[Any], seconds: float) -> float | None:
    """Ask for the rate, in the forked copy."""
    gc.freeze()
    own_loader.keep(loader, whole_epochs=True)
    answer: float | None = ForkingServer().ask(_send_rate, seconds, timeout_s=TIMEOUT * seconds)
    return answer


def _send_rate(pipe: Connection, seconds: float) -> None:
    """Measure the rate in a copy of that copy, because it may hang."""
    samples, began_s = 0, time.perf_counter()
    took_s = 0.0
    for batch in own_loader.changed_loader():
        samples += count_samples(batch)
        took_s = time.perf_counter() - began_s
        if took_s > seconds:
            break
    pipe.send(samples / took_s if samples else None)
