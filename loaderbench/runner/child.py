"""The inside of a trial's process: builds dataset, loader and consumer, measures, and waits for leave to end."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from loaderbench.datasets.decoders import DECODERS
from loaderbench.datasets.target import call_target, find_target
from loaderbench.datasets.transforms import TRANSFORMS
from loaderbench.diagnosis.failures import classify
from loaderbench.recorder import Measurement, Steps
from loaderbench.runner.clues import clue_of
from loaderbench.runner.processes import end_own_session, enter_own_session
from loaderbench.runner.protocol import Clue, Phase, Raised, Result, TrialOrder
from loaderbench.runner.stacks import answer_with_stacks
from loaderbench.runner.time_slices import SharedCounters, can_be_stopped, stop_workers, take_slices
from loaderbench.suite import ImageFolder
from loaderbench.suite.arguments import DATASET_OPTIONS, LOADER_ARGUMENTS

_FETCHES = ("multiprocessing/resource_sharer.py", "torch/multiprocessing/reductions.py")
_GONE = "a DataLoader worker that exited unexpectedly: its batch could not be fetched"


def trial_main(order: TrialOrder, pipe: Connection, memory: Any) -> None:
    """Run one trial; the last message is a `Result` or a `Raised`. `memory` is that of its counters."""
    enter_own_session(pipe)
    _write_to(order.log)
    answer_with_stacks()
    made: list[Any] = []
    try:
        _measure(order, pipe, SharedCounters(memory), made)
    except BaseException as error:
        traceback.print_exc()
        said = "\ncaused by ".join(_words(error))
        try:
            pipe.send(Raised(said))
            pipe.send(Clue(clue_of(classify(said).kind, made[0]) if made else ""))  # which may take long
        except OSError:  # the run itself is gone
            end_own_session()
        raise SystemExit(1) from None


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


def _measure(order: TrialOrder, pipe: Connection, counters: SharedCounters, made: list[Any]) -> None:
    """Build, and measure what was built; `made` gets the loader, for whoever has to explain an exception."""
    from loaderbench.consumers import make_consumer
    from loaderbench.datasets.traits import traits_of
    from loaderbench.loaders import build_loader
    from loaderbench.recorder import measure, recorder_s_per_batch
    from loaderbench.runner import preload

    if preload.IMPORT_ERROR is not None:
        raise ImportError(preload.IMPORT_ERROR)
    from loaderbench.runner.batch_source import batch_source, prepare_files

    suite, planned = order.suite, order.planned
    pipe.send(Phase("building the dataset"))
    source, arguments, taken = _source(order)
    batches = build_loader(source, arguments, seed=suite.measure.seed + planned.round)
    made.append(batches.iterable)
    if idle := sorted(arguments.keys() - taken - batches.configured):
        raise TypeError(
            f"the target gave a {type(source).__name__} and takes no {', '.join(idle)}, so that it has no effect"
        )
    prepare_files(order)
    if planned.isolation in ("replay_host", "replay_device"):
        pipe.send(Phase("keeping batches to be replayed"))
    source_of_batches, rules = batch_source(order, batches, _root(order))
    consumer = make_consumer(
        order.consumer,
        demand=suite.consumer.demand,
        model=suite.consumer.model,
        step=_step(order),
        clock=counters.now_s,
    )

    def tell(found: Measurement, steps: Steps) -> None:
        """Send the result while the workers live, and run in time slices until there is leave to end."""
        if order.in_time_slices:
            stop_workers()
        inside = source_of_batches.inside(found.waits)
        inside = replace(inside, dataset_traits=traits_of(getattr(source, "dataset", source)))
        pids = source_of_batches.worker_pids
        sliced = order.in_time_slices and can_be_stopped(batches.iterable)
        pipe.send(Result(found, recorder_s_per_batch(), batches.samples_per_epoch, inside, pids, sliced))
        take_slices(pipe, counters, steps, rules.cycle)

    def begin() -> None:
        """Say that the steady state begins, and note it inside the loader."""
        pipe.send(Phase("steady state"))
        source_of_batches.begin()

    pipe.send(Phase("first batch and warm-up"))
    measure(
        source_of_batches,
        consumer,
        rules,
        batch_size=batches.batch_size,
        on_steady=begin,
        on_closed=tell,
    )


def _source(order: TrialOrder) -> tuple[Any, dict[str, Any], set[str]]:
    """The dataset or loader, what is left of the configuration for a `DataLoader`, and the axes a target took."""
    arguments = {**order.suite.loader, **order.planned.config}
    if isinstance(order.suite.dataset, ImageFolder):
        return image_samples(order, arguments), arguments, set()
    dataset = order.suite.dataset
    source, taken = call_target(find_target(dataset.target, order.suite_folder), dataset.args, arguments)
    rest = {name: value for name, value in arguments.items() if name not in taken or name in LOADER_ARGUMENTS}
    return source, rest, taken


def _root(order: TrialOrder) -> str | None:
    """The folder that holds all files: what paths of slow samples are told from."""
    folders = {os.path.dirname(path) for path, _ in order.samples}  # noqa: PTH120 - of a million files
    with suppress(ValueError):  # none, or on several drives
        return os.path.commonpath(folders)
    return None


def image_samples(order: TrialOrder, arguments: dict[str, Any]) -> Any:
    """Take the dataset's options out of the arguments and build it with them."""
    from loaderbench.datasets.samples import ImageSamples

    dataset = order.suite.dataset
    options = {name: arguments.pop(name, getattr(dataset, name, None)) for name in DATASET_OPTIONS}
    decoder = DECODERS[str(options["decoder"])]
    if options["image_cache"] == "shared_memory":
        from loaderbench.datasets.shared_images import SharedImages, room_bytes

        decoder = SharedImages(order.samples, decoder, room_bytes=room_bytes())
    name = str(options["transform"])
    recipe = TRANSFORMS.get(name)
    if recipe is not None:
        transform = recipe(options["normalize"] != "device")
    else:
        transform = _transform(find_target(name, order.suite_folder))
    return ImageSamples(order.samples, decoder, transform)


def _transform(target: Callable[..., Any]) -> Callable[[Any], Any]:
    """The user's own: what a class or a function without parameters makes, or else the function of an image itself."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:  # of a function in C nothing is told
        return target
    takes_an_image = any(p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters)
    return target if takes_an_image and not inspect.isclass(target) else target()


def _step(order: TrialOrder) -> Callable[[Any], Any] | None:
    """The user's own step: what the target returns, or the target itself where a batch is what it still needs."""
    consumer = order.suite.consumer
    if order.consumer != "target" or consumer.target is None:
        return None
    target = find_target(consumer.target, order.suite_folder)
    parameters = inspect.signature(target).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.default is p.empty and p.name not in {*consumer.args, *order.planned.config} for p in positional):
        return partial(target, **consumer.args)
    step, _ = call_target(target, consumer.args, order.planned.config)
    if not callable(step):
        raise TypeError(f"consumer.target returned a {type(step).__name__}, not a step to call with each batch")
    return step  # type: ignore[no-any-return]


def _write_to(log: Path) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
