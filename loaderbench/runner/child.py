"""The inside of a trial's process: builds dataset, loader and consumer, measures, and waits for leave to end."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from loaderbench.datasets.decoders import DECODERS
from loaderbench.datasets.page_cache import evict
from loaderbench.datasets.target import call_target, find_target
from loaderbench.datasets.transforms import TRANSFORMS
from loaderbench.runner.orders import Phase, Raised, Result, TrialOrder
from loaderbench.suite import ImageFolder
from loaderbench.suite.arguments import LOADER_ARGUMENTS

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def trial_main(order: TrialOrder, pipe: Connection) -> None:
    """Run one trial; the last message is a `Result` or a `Raised`."""
    _enter_own_session()
    _write_to(order.log)
    try:
        pipe.send(_measure(order, pipe))
        pipe.recv()  # the monitors read what is too dear while it is measured; then this process may end
    except (EOFError, BrokenPipeError):
        return  # the run itself is gone
    except BaseException as error:
        traceback.print_exc()
        pipe.send(Raised("\ncaused by ".join(_words(error))))
        raise SystemExit(1) from None


def _words(error: BaseException | None) -> Iterator[str]:
    """Type and message of an exception and of each that caused it: torch names the signal in the cause."""
    while error is not None:
        yield "".join(traceback.format_exception_only(type(error), error)).strip()
        error = error.__cause__


def _measure(order: TrialOrder, pipe: Connection) -> Result:
    from loaderbench.consumers import make_consumer
    from loaderbench.loaders import build_loader
    from loaderbench.recorder import Rules, measure, recorder_s_per_batch
    from loaderbench.runner import preload

    if preload.IMPORT_ERROR is not None:
        raise ImportError(preload.IMPORT_ERROR)
    suite, planned = order.suite, order.planned
    pipe.send(Phase("building the dataset"))
    source, arguments, taken = _source(order)
    batches = build_loader(source, arguments, seed=suite.measure.seed + planned.round)
    if not batches.configured and (idle := sorted(planned.config.keys() - taken)):
        raise TypeError(f"the target gave a {type(source).__name__} and takes no {', '.join(idle)}: no sweep of that")
    if suite.measure.cache == "cold":
        evict(path for path, _ in order.samples)
    step = _call(suite.consumer.target, suite.consumer.args, order) if suite.consumer.target else None
    consumer = make_consumer(order.consumer, demand=suite.consumer.demand, model=suite.consumer.model, step=step)
    rules = Rules(suite.measure.seconds, batches.prefetch_batches, max(1, batches.num_workers))
    pipe.send(Phase("first batch and warm-up"))
    result = measure(batches.iterable, consumer, rules, lambda: pipe.send(Phase("steady state")))
    return Result(result, recorder_s_per_batch())


def _source(order: TrialOrder) -> tuple[Any, dict[str, Any], set[str]]:
    """The dataset or loader, what is left of the configuration for a `DataLoader`, and the axes a target took."""
    arguments = {**order.suite.loader, **order.planned.config}
    if isinstance(order.suite.dataset, ImageFolder):
        return _image_samples(order, arguments), arguments, set()
    dataset = order.suite.dataset
    source, taken = call_target(find_target(dataset.target, order.suite_folder), dataset.args, arguments)
    rest = {name: value for name, value in arguments.items() if name not in taken or name in LOADER_ARGUMENTS}
    return source, rest, taken


def _image_samples(order: TrialOrder, arguments: dict[str, Any]) -> Any:
    """Take the dataset's options out of the arguments and build it with them."""
    from loaderbench.datasets.samples import ImageSamples

    dataset = order.suite.dataset
    decoder = DECODERS[str(arguments.pop("decoder", getattr(dataset, "decoder", "")))]
    name = str(arguments.pop("transform", getattr(dataset, "transform", "")))
    transform = TRANSFORMS[name]() if name in TRANSFORMS else find_target(name, order.suite_folder)
    return ImageSamples(order.samples, decoder, transform)


def _call(target: str, args: dict[str, Any], order: TrialOrder) -> Any:
    return call_target(find_target(target, order.suite_folder), args, order.planned.config)[0]


def _enter_own_session() -> None:
    """Be the head of a session, so that all that is started here can be ended at once; die when the server dies."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    multiprocessing.set_start_method(None, force=True)  # workers start as Python's default says, not as this did
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _write_to(log: Path) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
