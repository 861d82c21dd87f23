"""What is measured in one process: builds dataset, loader and consumer, measures, and waits until it may end."""

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
from loaderbench.diagnosis.failures import classify
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

_FETCHES = ("multiprocessing/resource_sharer.py", "torch/multiprocessing/reductions.py")
_GONE = "a DataLoader worker exited unexpectedly: its batch could not be fetched"


def report_failure(error: BaseException, pipe: Connection, made: list[Any]) -> None:
    """Write what was raised to the log, and send it. Raises `OSError` where the run itself is gone."""
    with suppress(Exception):  # torch raises wherever the main thread is when a worker has failed, so maybe here
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    traceback.print_exc()
    said = "\ncaused by ".join(_words(error))
    pipe.send(Raised(said))
    pipe.send(Clue(clue_of(classify(said).kind, made[0]) if made else ""))  # which may take long


def _words(error: BaseException | None) -> Iterator[str]:
    """Type and message of an exception and of each that caused it: torch names the signal in the cause."""
    while error is not None:
        yield "".join(traceback.format_exception_only(type(error), error)).strip()
        if isinstance(error, FileNotFoundError | ConnectionError | EOFError) and _fetched(error):
            yield _GONE
        error = error.__cause__


def _fetched(error: BaseException) -> bool:
    """Whether it was raised while a batch was fetched from the worker that made it."""
    return any(frame.filename.endswith(_FETCHES) for frame in traceback.extract_tb(error.__traceback__))


def measure_here(
    order: TrialOrder,
    pipe: Connection,
    counters: SharedCounters,
    made: list[Any],
    *,
    rank: AloneInTrial | None = None,
    built: Built | None = None,
) -> None:
    """Build, and measure what was built; `made` gets the loader, to explain an exception with.

    `rank` is this process's part in a trial with several ranks, which are measured in the same window. `built` is the
    dataset, if all ranks share it.
    """
    _check_imports()
    from loaderbench.runner.batch_source import batch_source, prepare_files

    rank = rank or AloneInTrial()
    unrepeatable = _made_deterministic(order)
    pipe.send(Phase(BUILDING))
    source, batches = _loader(order, built or build_dataset(order))
    made.append(batches.iterable)
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
    """A trial of this process that can be measured: `taken_from` gives the batches of `batches`, made of `source`."""

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
        """Measure, and report to the run. `unrepeatable` names what torch cannot repeat exactly."""
        from loaderbench.recorder import measure

        self.pipe.send(Phase("first batch and warm-up"))
        with closing(self.batches):
            measure(
                self.taken_from,
                self.rank.counted(self.consumer),
                self.rules,
                batch_size=self.batches.batch_size,
                on_steady=self._begin,
                on_closed=lambda found, steps: self._report(found, steps, unrepeatable()),
                on_progress=lambda: self.pipe.send(Progress()),
            )

    def _begin(self) -> None:
        """Say that the steady state begins, and note it inside the loader."""
        self.pipe.send(Phase("steady state"))
        self.taken_from.begin()

    def _report(self, found: Measurement, steps: Steps, unrepeatable: str) -> None:
        """Send the result while the workers live, and run in time slices until the run lets the trial end."""
        pids = self.taken_from.worker_pids
        if self.order.in_time_slices:
            stop_workers(pids)
        self.rank.leave(found)
        inside = self._inside(found)  # first: what is read of the workers is of the steady state
        result = replace(
            self._result(found),
            inside=inside,
            worker_pids=pids,
            loading_threads=tuple(self.batches.loading_threads()),
            batches=self._kept(found, steps),
            consumer_note=". ".join(filter(None, (_note_of(self.consumer), unrepeatable))),
        )
        self.pipe.send(self.rank.added(result, self.consumer, steps, self.batches))
        take_slices(self.pipe, self.counters, steps, cycle=self.rules.cycle, workers=pids)

    def _inside(self, found: Measurement) -> LoaderInside:
        from loaderbench.dataset_traits import traits_of

        traits = traits_of(self.source)
        return replace(self.taken_from.inside(found.waits), dataset_traits=traits)

    def _kept(self, found: Measurement, steps: Steps) -> tuple[BatchTimes, ...]:
        """Single batches, for the report of a sweep."""
        from loaderbench.recorder.windows import batches_of

        if self.order.planned.role != "sweep":
            return ()
        return tuple(batches_of(steps, found.warmup_batches, self.taken_from.made))

    def _result(self, found: Measurement) -> Result:
        """The result without what is known of the inside of the loader, and of single batches."""
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
    made = make_consumer(
        order.suite.consumer,
        order.consumer,
        order.planned.config,
        order.suite_folder,
        counters.now_s,
        capped=not _compares_rates(order),
    )
    return _with_rest(made, order)


def _compares_rates(order: TrialOrder) -> bool:
    """Whether a demand would hide what a fix, or another version, gains."""
    return order.planned.role == "remedy" or (order.planned.role == "ab" and order.in_time_slices)


def _with_rest(consumer: Consumer, order: TrialOrder) -> Consumer:
    """The consumer, which first finishes what the workers leave to its device."""
    arguments = _arguments(order)
    if not order.suite.dataset.why_not_on_device(arguments):  # where nothing is left, CUDA is not even asked for
        return consumer
    from loaderbench.consumers.accelerator import device_here
    from loaderbench.consumers.prepared import PreparedFirst

    device = device_here(consumer_of(order.suite.consumer, order.consumer).device_name)
    rest = order.suite.dataset.rest_on_device(arguments, device)
    return consumer if rest is None else PreparedFirst(consumer, rest, device)


def _check_imports() -> None:
    """Raise what the import of torch and torchvision raised in the fork server."""
    from loaderbench.runner import preload

    if preload.IMPORT_ERROR is not None:
        raise ImportError(preload.IMPORT_ERROR)


def _note_of(consumer: Consumer) -> str:
    return consumer.note if isinstance(consumer, WithNote) else ""


def _type_of(consumer: Consumer) -> str:
    """What a training step computed in; empty where none did."""
    return consumer.computes_in if isinstance(consumer, WithPrecision) else ""


def _copy_speed(replayed: Any, found: Measurement) -> CopySpeed | None:
    """Of the batches that were replayed. Imported late: `runner.replay` imports torch."""
    from loaderbench.runner.copy_speed import copy_speed

    return copy_speed(replayed.batch_bytes, found.samples / found.batches) if found.batches else None


def build_dataset(order: TrialOrder) -> Built:
    """What batches or samples come from."""
    return order.suite.dataset.build(DatasetOrder(order.samples, _arguments(order), order.suite_folder, order.copy))


def _arguments(order: TrialOrder) -> dict[str, Any]:
    """Those of the loader and the dataset: how many ranks there are is for neither."""
    given = {**order.suite.loader, **order.planned.config}
    return {name: value for name, value in given.items() if name != RANKS}


def _loader(order: TrialOrder, built: Built) -> tuple[Any, Batches]:
    """What batches or samples come from, and the batches. Raises `TypeError` for an argument without any effect."""
    suite, arguments = order.suite, _arguments(order)
    backend = backend_of(arguments)
    left, replaced = own_arguments(built.arguments, backends_of(suite.loader, suite.sweep).values()), _replaced(order)
    taken = built.taken - backend.arguments.keys() | replaced
    rest = {name: value for name, value in left.items() if name not in taken}
    batches = backend.build(_drawn_by(order, built.source), rest, seed=_seed(order))
    if idle := sorted(rest.keys() - built.taken - batches.configured):
        raise TypeError(
            f"no effect: {', '.join(idle)}; "
            f"the target takes no such argument and returned a {type(built.source).__name__}"
        )
    return built.source, batches if built.cycle is None else replace(batches, cycle=built.cycle)


def _replaced(order: TrialOrder) -> set[str]:
    """Arguments that a fix has set for a loader that a later fix replaced."""
    by_fixes = order.planned.config.keys() - order.suite.sweep.keys() - order.suite.loader.keys()
    own = backend_of(_arguments(order)).axes
    known = {axis for backend in LOADER_BACKENDS.values() for axis in backend.axes}
    return {name for name in by_fixes if name in known and name not in own}


def _make_free(order: TrialOrder, batches: Batches) -> None:
    """Let a stage of the loader cost nothing, in a trial with that role. Imported late: it imports torch."""
    if order.freeing is not None:
        from loaderbench.freeing.loader import free_loader

        free_loader(batches, order.freeing)


def _seed(order: TrialOrder) -> int:
    """That of its round: all configurations of a round draw the same samples."""
    return order.suite.measure.seed + order.planned.round


def _made_deterministic(order: TrialOrder) -> Callable[[], str]:
    """Make this process repeatable where the suite asks for that; the function names what torch cannot repeat.

    Imported late: `runner.determinism` imports torch.
    """
    if not order.suite.measure.deterministic:
        return lambda: ""
    from loaderbench.runner.determinism import make_deterministic

    return make_deterministic(_seed(order))


def _drawn_by(order: TrialOrder, source: Any) -> Any:
    """The dataset, its draws seeded where the suite asks for that."""
    if not order.suite.measure.deterministic:
        return source
    from loaderbench.runner.determinism import seeded

    return seeded(source, _seed(order))


def _root(order: TrialOrder) -> str | None:
    """The folder that holds all files; paths of slow samples are relative to it."""
    folders = {os.path.dirname(path) for path, _ in order.samples}  # noqa: PTH120 - of a million files
    with suppress(ValueError):  # none, or on several drives
        return os.path.commonpath(folders)
    return None
