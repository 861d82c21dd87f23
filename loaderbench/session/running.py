"""The whole of a run, which reads as one sentence in `run_suite`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from loaderbench.conclusion import conclude
from loaderbench.environment import describe_machine
from loaderbench.errors import UsageError
from loaderbench.plan import make_plan
from loaderbench.records import Scalar
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.report.index_file import update_index
from loaderbench.result import Run
from loaderbench.runner import TrialRunner, TrialServer, probe
from loaderbench.search import Grid
from loaderbench.session.bad_images import without_bad_images
from loaderbench.session.conditions import Conditions, now
from loaderbench.session.inputs import prepare_inputs, resolve_consumer
from loaderbench.session.ladder import Ladder
from loaderbench.session.listener import Listener, Silent
from loaderbench.session.measuring import Measuring
from loaderbench.session.paired import PairedRounds
from loaderbench.session.resuming import Earlier, overrides_of, read_earlier, refuse_changes
from loaderbench.session.rounds import Measurements, Rounds
from loaderbench.session.signals import restored_signals
from loaderbench.store import Store, new_run_folder
from loaderbench.suite import ImageFolder, LoadedSuite, Override, load_suite

NOT_ENDED = "the run is under way, or was killed: trials.jsonl has what was measured, and --resume goes on"
STILL_S = 0.3  # how long the machine is looked at before the first trial


@dataclass(frozen=True)
class SessionResult:
    """A run, where it lies, and the signal that ended it early, or came while its page was drawn."""

    run: Run
    folder: Path
    page: Path
    stopped_by: int | None


def run_suite(
    loaded: LoadedSuite, out: Path | None = None, listener: Listener | None = None, resume: Path | None = None
) -> SessionResult:
    """Measure a suite and write the run folder; with `resume`, go on in the folder of a run that did not end.

    Raises `MissingError` and `UsageError` before anything is measured; a failed trial is a record and raises nothing.
    """
    earlier = read_earlier(resume) if resume is not None else None
    store = _store(loaded, out, earlier)
    try:
        with restored_signals():
            return _run_into(store, loaded, listener or Silent(), earlier)
    except BaseException:
        if earlier is None:
            store.discard()
        raise
    finally:
        store.close()


def _store(loaded: LoadedSuite, out: Path | None, earlier: Earlier | None) -> Store:
    """A new folder, or that of the earlier call."""
    if earlier is None:
        return Store(out or new_run_folder(loaded.suite.name))
    return Store(earlier.folder, again=True)


def _run_into(store: Store, loaded: LoadedSuite, listener: Listener, earlier: Earlier | None) -> SessionResult:
    """Prepare, measure, conclude, write."""
    started_at = now()
    server = TrialServer()
    server.warm_up()
    inputs = prepare_inputs(loaded, listener)
    listener.doing("importing torch")
    found = probe(server, loaded.suite, loaded.folder)
    inputs = without_bad_images(inputs, loaded.suite, server, listener)
    environment = describe_machine(server.method, found.gpus, found.not_measured)
    accelerator = bool(found.gpus)
    consumer = resolve_consumer(loaded.suite.consumer.kind, accelerator=accelerator)
    cpus = environment.cpus_allotted
    plan = make_plan(loaded.suite, cpus_allotted=cpus, accelerator=accelerator, consumer=consumer)
    if earlier is not None:
        refuse_changes(earlier, loaded.suite.model_dump(mode="json"), environment, inputs.summary)
        store.keep_only(earlier.trials.values())
    listener.planned(plan)
    busy = psutil.cpu_percent(interval=STILL_S)
    runner = TrialRunner(server, environment)
    measure = Measuring(server, runner, loaded, inputs, consumer=consumer, store=store, listener=listener)
    budget_s = loaded.suite.measure.budget
    paired = PairedRounds(measure, in_turns=not accelerator)
    rounds = Rounds(plan, measure, paired, store=store, listener=listener, budget_s=budget_s, earlier=earlier)
    files = len(inputs.samples)
    ladder = Ladder(loaded.suite, plan, consumer=consumer, accelerator=accelerator, files=files)
    conditions = Conditions(loaded, environment, inputs, plan, consumer, busy, started_at)
    store.write_run(conclude(conditions.measured(Measurements(why_partial=NOT_ENDED))))
    measurements = rounds.run(Grid(plan), ladder, partial(conditions.verifier, measure.psnr))
    listener.doing("drawing the page")
    record = conclude(conditions.measured(measurements))
    store.write_run(record)
    store.write_timeline(measurements.timeline)
    page = store.write_page(render_html(build_document(record, measurements.timeline)))
    update_index(store.folder)
    run = Run(record, measurements.timeline, store.folder)
    stopped_by = measurements.stopped_by or next(iter(measurements.late_signals), None)
    return SessionResult(run, store.folder, page, stopped_by)


def run(
    suite: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    axes: Mapping[str, Sequence[Scalar]] | None = None,
    rounds: int | None = None,
    seconds: float | None = None,
    verify: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measure a suite file and return the run; keyword arguments override the suite as the flags of `run` do.

    `resume` is the folder of a run of it that did not end, in which this one goes on.
    A `listener` hears how far it is. Raises `SuiteError`, `UsageError` and `MissingError`, each one clear line, and
    `KeyboardInterrupt` after writing what was measured until then.
    """
    if resume is not None and out is not None:
        raise UsageError("resume goes on in the folder of that run; leave `out` away")
    place, earlier = (Path(folder) if folder is not None else None for folder in (out, resume))
    overrides = overrides_of(earlier)
    overrides += [Override(("sweep", axis), list(values), f"axes[{axis!r}]") for axis, values in (axes or {}).items()]
    if data is not None:
        overrides.append(Override(("dataset", "root"), str(Path(data).resolve()), f"data={str(data)!r}"))
    for name, value in (("rounds", rounds), ("seconds", seconds), ("verify", verify)):
        if value is not None:
            overrides.append(Override(("measure", name), value, f"{name}={value!r}"))
    loaded = load_suite(Path(suite), overrides)
    if data is not None and not isinstance(loaded.suite.dataset, ImageFolder):
        raise UsageError("data: the suite's dataset is a target, which takes no folder")
    result = run_suite(loaded, place, listener, earlier)
    if result.stopped_by is not None:
        raise KeyboardInterrupt(f"what was measured is in {result.folder}")
    return result.run
