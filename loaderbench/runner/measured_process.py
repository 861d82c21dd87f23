"""Measures one trial in this process: builds dataset, loader and consumer, measures, and waits for leave to end."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from loaderbench.consumers import Consumer, WithNote, WithPrecision, consumer_of, make_consumer
from loaderbench.cuda_use import devices_in_use, peak_memory
from loaderbench.datasets import Built, DatasetOrder
from loaderbench.diagnosis.failures import WORKER_EXITED, classify
from loaderbench.loaders import LOADER_BACKENDS, Batches, backend_of, backends_of, own_arguments
from loaderbench.ranks import RANKS
from loaderbench.recorder import Measurement, Rules, Steps
from loaderbench.records import BatchTimes, CopySpeed, LoaderInside
from loaderbench.runner.failure_details import clue_of
from loaderbench.runner.protocol import BUILDING, Clue, Phase, Progress, Raised, Result, TrialOrder
from loaderbench.runner.rank_of_trial import AloneInTrial
from loaderbench.runner.time_slices import SharedCounters, stop_workers, take_slices

if TYPE_CHECKING:
    from loaderbench.runner.batch_source import BatchSource

_FETCHING_FILES = ("multiprocessing/resource_sharer.py", "torch/multiprocessing/reductions.py")
_WORKER_LOST = "a DataLoader worker exited unexpectedly: its batch could not be fetched"


def report_failure(error: BaseException, pipe: Connection, loaders: list[Any]) -> None:
    """Write an exception to the log and send it to the run. Raises `OSError` if the run itself is gone."""
    with suppress(Exception):  # torch's handler raises wherever the main thread is after a worker failed, even here
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    traceback.print_exc()
    text = "\ncaused by ".join(_exception_chain(error))
    if classify(text).kind == WORKER_EXITED:
        text = "\ncaused by ".join([text, *_killed_workers(error)])
    pipe.send(Raised(text))
    pipe.send(Clue(clue_of(classify(text).kind, loaders[0]) if loaders else ""))  # this can take long


def _exception_chain(error: BaseException | None) -> Iterator[str]:
    """Type and message of an exception and of each of its causes; torch names the signal in the cause."""
    while error is not None:
        yield "".join(traceback.format_exception_only(type(error), error)).strip()
        if isinstance(error, FileNotFoundError | ConnectionError | EOFError) and _was_fetching(error):
            yield _WORKER_LOST
        error = error.__cause__


def _killed_workers(error: BaseException) -> Iterator[str]:
    """A line for each worker that a signal has ended, worded as by torch, which does not always notice the signal.

    Torch's iterator is found in the traceback: no other object knows its workers.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        iterator = frame.f_locals.get("self")
        workers = getattr(iterator, "_workers", None) if type(iterator).__module__.startswith("torch.") else None
        for worker in workers or ():
            if not worker.is_alive() and worker.exitcode < 0:
                name = signal.strsignal(-worker.exitcode)
                yield f"DataLoader worker (pid {worker.pid}) is killed by signal: {name}."
        if workers:
            return


def _was_fetching(error: BaseException) -> bool:
    """Whether the exception was raised while fetching a batch from the worker that made it."""
    return any(frame.filename.endswith(_FETCHING_FILES) for frame in traceback.extract_tb(error.__traceback__))


def measure_here(
    order: TrialOrder,
    pipe: Connection,
    counters: SharedCounters,
    loaders: list[Any],
    *,
    rank: AloneInTrial | None = None,
    built: Built | None = None,
) -> None:
    """Build the loader and consumer, and measure them; `loaders` receives the loader, to explain an exception.

    `rank` is this process's part in a trial with several ranks, which are measured in the same window. `built` is the
    dataset, if all ranks share it.
    """
    _check_imports()
    from loaderbench.consumers.accelerator import make_current
    from loaderbench.runner.batch_source import batch_source, prepare_files

    make_current(str(getattr(order.suite.consumer, "device", "")))
    rank = rank or AloneInTrial()
    unrepeatable = _set_determinism(order)
    pipe.send(Phase(BUILDING))
    source, batches = _loader(order, built or build_dataset(order))
    loaders.append(batches.iterable)
    _make_free(order, batches)
    prepare_files(order)
    if order.planned.isolation in ("replay_host", "replay_device"):
        pipe.send(Phase("caching batches for replay"))
    taken_from, rules = batch_source(order, batches, _root(order), rank.own_use)
    rank.meet()
    consumer = _consumer(order, counters)
    trial = _PreparedTrial(order, pipe, counters, rank, source, batches, taken_from, rank.rules(rules), consumer)
    rank.meet()
    trial.measure(unrepeatable)


@dataclass(frozen=True)
class _PreparedTrial:
    """A trial that is ready to be measured; `taken_from` yields the batches of `batches`, made from `source`."""

    order: TrialOrder
    pipe: Connection
    counters: SharedCounters
    rank: AloneInTrial
    source: Any
    batches: Batches
    taken_from: BatchSource
    rules: Rules
    consumer: Consumer

    def measure(self, unrepeatable: Callable[[], str]) -> None:
        """Measure and report to the run. `unrepeatable` names the operations that torch cannot repeat exactly."""
        from loaderbench.recorder import measure
        from loaderbench.runner.batch_source import counted_size

        self.pipe.send(Phase("first batch and warm-up"))
        with closing(self.batches):
            measure(
                self.taken_from,
                self.rank.counted(self.consumer),
                self.rules,
                batch_size=counted_size(self.batches),
                on_steady=self._begin,
                on_closed=lambda found, steps: self._report(found, steps, unrepeatable()),
                on_progress=lambda: self.pipe.send(Progress()),
            )

    def _begin(self) -> None:
        """Report that the steady state begins, and start counting inside the loader."""
        self.pipe.send(Phase("steady state"))
        self.taken_from.begin()

    def _report(self, found: Measurement, steps: Steps, unrepeatable: str) -> None:
        """Send the result while the workers are alive, then run in time slices until the run lets the trial end."""
        pids = self.taken_from.worker_pids
        if self.order.in_time_slices:
            stop_workers(pids)
        self.rank.leave(found)
        inside = self._inside(found)  # first, so the worker readings cover the steady state
        result = replace(
            self._result(found),
            inside=inside,
            epochs=self.taken_from.epochs(steps),
            worker_pids=pids,
            loading_threads=tuple(self.batches.loading_threads()),
            batches=self._batch_times(found, steps),
            consumer_note=". ".join(filter(None, (_note_of(self.consumer), unrepeatable))),
        )
        self.pipe.send(self.rank.added(result, self.consumer, steps, self.batches))
        take_slices(self.pipe, self.counters, steps, cycle=self.rules.cycle, workers=pids)

    def _inside(self, found: Measurement) -> LoaderInside:
        from loaderbench.dataset_traits import traits_of
        from loaderbench.recorder.own_arguments import own_class_of, with_batch_size

        traits = traits_of(self.source)
        if "loader" in traits:
            traits["own_arguments"] = with_batch_size(self.source)
            if own_class := own_class_of(self.source):
                traits["own_class"] = own_class
        elif self.batches.iterable is self.source:
            keywords = self.order.suite.dataset.keywords(_dataset_order(self.order))
            traits |= {"iterable": type(self.source).__name__, "keywords": ", ".join(sorted(keywords))}
        return replace(self.taken_from.inside(found.waits), dataset_traits=traits)

    def _batch_times(self, found: Measurement, steps: Steps) -> tuple[BatchTimes, ...]:
        """The times of individual batches, for the report of a sweep."""
        from loaderbench.recorder.windows import batches_of

        if self.order.planned.role != "sweep":
            return ()
        return tuple(batches_of(steps, found.warmup_batches, self.taken_from.made))

    def _result(self, found: Measurement) -> Result:
        """The result without the readings inside the loader and the individual batches."""
        from loaderbench.consumers.device_clock import clock_of_device
        from loaderbench.recorder import recorder_s_per_batch

        replayed = self.order.planned.isolation == "replay_host"
        return Result(
            measurement=found,
            recorder_s_per_batch=recorder_s_per_batch(clock_of_device),
            samples_per_epoch=self.batches.samples_per_epoch,
            inside=LoaderInside(),
            can_be_stopped=self.order.in_time_slices and self.batches.can_be_stopped,
            cuda_devices=devices_in_use(),
            cuda_memory=peak_memory(),
            copy_speed=_copy_speed(self.taken_from, found) if replayed else None,
            computed_in=_type_of(self.consumer),
        )


def _consumer(order: TrialOrder, counters: SharedCounters) -> Consumer:
    consumer = make_consumer(
        order.suite.consumer,
        order.consumer,
        _arguments(order),
        order.suite_folder,
        counters.now_s,
        capped=not order.compares_rates,
    )
    return _with_device_preprocessing(consumer, order)


def _with_device_preprocessing(consumer: Consumer, order: TrialOrder) -> Consumer:
    """The consumer, preceded by any processing that the workers leave to its device."""
    arguments = _arguments(order)
    if not order.suite.dataset.why_not_on_device(arguments):  # if nothing is left to do, CUDA is not even queried
        return consumer
    from loaderbench.consumers.accelerator import device_here
    from loaderbench.consumers.prepared import PreparedFirst

    device = device_here(consumer_of(order.suite.consumer, order.consumer).device_name)
    rest = order.suite.dataset.rest_on_device(arguments, device)
    return consumer if rest is None else PreparedFirst(consumer, rest, device)


def _check_imports() -> None:
    """Raise any exception from importing torch and torchvision in the fork server."""
    from loaderbench.runner import preload

    if preload.IMPORT_ERROR is not None:
        raise ImportError(preload.IMPORT_ERROR)


def _note_of(consumer: Consumer) -> str:
    return consumer.note if isinstance(consumer, WithNote) else ""


def _type_of(consumer: Consumer) -> str:
    """The data type of the training step's computation; empty without a training step."""
    return consumer.computes_in if isinstance(consumer, WithPrecision) else ""


def _copy_speed(replayed: Any, found: Measurement) -> CopySpeed | None:
    """Copy speed for the replayed batches. Imported late because it imports torch."""
    from loaderbench.gpu_checkup.rates import copy_speed

    return copy_speed(replayed.batch_bytes, found.samples / found.batches) if found.batches else None


def build_dataset(order: TrialOrder) -> Built:
    """Build the source of batches or samples."""
    return order.suite.dataset.build(_dataset_order(order))


def _dataset_order(order: TrialOrder) -> DatasetOrder:
    return DatasetOrder(order.samples, _arguments(order), order.suite_folder, order.copy)


def _arguments(order: TrialOrder) -> dict[str, Any]:
    """The arguments of the loader and the dataset, without the number of ranks."""
    return {name: value for name, value in order.arguments.items() if name != RANKS}


def _loader(order: TrialOrder, built: Built) -> tuple[Any, Batches]:
    """The source of batches or samples, and the batches. Raises `TypeError` for an argument that has no effect."""
    suite, arguments = order.suite, _arguments(order)
    backend = backend_of(arguments)
    left, replaced = own_arguments(built.arguments, backends_of(suite.loader, suite.sweep).values()), _replaced(order)
    taken = built.taken - backend.arguments.keys() | replaced
    rest = {name: value for name, value in left.items() if name not in taken}
    batches = backend.build(_with_seeded_draws(order, built.source), rest, seed=_seed(order))
    if idle := sorted(rest.keys() - built.taken - batches.configured):
        raise TypeError(
            f"no effect: {', '.join(idle)}; "
            f"the target takes no such argument and returned a {type(built.source).__name__}"
        )
    return built.source, batches if built.cycle is None else replace(batches, cycle=built.cycle)


def _replaced(order: TrialOrder) -> set[str]:
    """Arguments that a fix set for a loader that a later fix replaced."""
    by_fixes = order.planned.config.keys() - order.suite.sweep.keys() - order.suite.loader.keys()
    own = backend_of(_arguments(order)).axes
    known = {axis for backend in LOADER_BACKENDS.values() for axis in backend.axes}
    return {name for name in by_fixes if name in known and name not in own}


def _make_free(order: TrialOrder, batches: Batches) -> None:
    """Make a stage of the loader free, in a trial with that role. Imported late because it imports torch."""
    if order.freeing is not None:
        from loaderbench.freeing.loader import free_loader

        free_loader(batches, order.freeing)


def _seed(order: TrialOrder) -> int:
    """The seed of the trial's round: all configurations of a round draw the same samples."""
    return order.suite.measure.seed + order.planned.round


def _set_determinism(order: TrialOrder) -> Callable[[], str]:
    """Make this process deterministic if the suite asks for it; the function names what torch cannot repeat.

    Imported late because `runner.determinism` imports torch.
    """
    if not order.suite.measure.deterministic:
        return lambda: ""
    from loaderbench.runner.determinism import make_deterministic

    return make_deterministic(_seed(order))


def _with_seeded_draws(order: TrialOrder, source: Any) -> Any:
    """The dataset, with seeded draws if the suite asks for deterministic trials."""
    if not order.suite.measure.deterministic:
        return source
    from loaderbench.runner.determinism import seeded

    return seeded(source, _seed(order))


def _root(order: TrialOrder) -> str | None:
    """The common parent folder of all files; paths of slow samples are relative to it."""
    folders = {os.path.dirname(path) for path, _ in order.samples}  # noqa: PTH120 - pathlib is slow for a million files
    with suppress(ValueError):  # no files, or files on several drives
        return os.path.commonpath(folders)
    return None
