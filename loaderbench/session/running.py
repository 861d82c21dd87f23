"""The whole of a run, which reads as one sentence in `run_suite`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from loaderbench.conclusion import Measured, candidates, conclude, subject_of
from loaderbench.environment import describe_machine
from loaderbench.errors import UsageError
from loaderbench.plan import Plan, make_plan
from loaderbench.records import Environment, Scalar, Trial
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.result import Run
from loaderbench.runner import TrialRunner, TrialServer, probe
from loaderbench.search import Grid
from loaderbench.session.inputs import Inputs, prepare_inputs, resolve_consumer
from loaderbench.session.ladder import Ladder
from loaderbench.session.listener import Listener, Silent
from loaderbench.session.measuring import Measuring
from loaderbench.session.rounds import Measurements, Rounds
from loaderbench.session.signals import restored_signals
from loaderbench.session.verifying import Verifier
from loaderbench.store import Store, new_run_folder
from loaderbench.suite import ImageFolder, LoadedSuite, Override, load_suite

NOT_ASKED = "trying remedies was switched off"
STILL_S = 0.3  # how long the machine is looked at before the first trial


@dataclass(frozen=True)
class SessionResult:
    """A run, where it lies, and the signal that ended it early."""

    run: Run
    folder: Path
    page: Path
    stopped_by: int | None


def run_suite(loaded: LoadedSuite, out: Path | None = None, listener: Listener | None = None) -> SessionResult:
    """Measure a suite and write the run folder.

    Raises `MissingError` and `UsageError` before anything is measured; a failed trial is a record and raises nothing.
    """
    store = Store(out or new_run_folder(loaded.suite.name))
    try:
        with restored_signals():
            return _run_into(store, loaded, listener or Silent())
    except BaseException:
        store.discard()
        raise
    finally:
        store.close()


def _run_into(store: Store, loaded: LoadedSuite, listener: Listener) -> SessionResult:
    """Prepare, measure, conclude, write."""
    started_at = _now()
    server = TrialServer()
    server.warm_up()
    inputs = prepare_inputs(loaded, listener)
    listener.doing("importing torch")
    found = probe(server, loaded.suite, loaded.folder)
    environment = describe_machine(server.method, found.gpus, found.not_measured)
    accelerator = bool(found.gpus)
    consumer = resolve_consumer(loaded.suite.consumer.kind, accelerator=accelerator)
    cpus = environment.cpus_allotted
    plan = make_plan(loaded.suite, cpus_allotted=cpus, accelerator=accelerator, consumer=consumer)
    listener.planned(plan)
    busy = psutil.cpu_percent(interval=STILL_S)
    runner = TrialRunner(server, environment)
    measure = Measuring(server, runner, loaded, inputs, consumer=consumer, store=store, listener=listener)
    rounds = Rounds(plan, measure, store=store, listener=listener, budget_s=loaded.suite.measure.budget)
    files = len(inputs.samples)
    ladder = Ladder(loaded.suite, plan, consumer=consumer, accelerator=accelerator, files=files)

    def measured(found: Measurements) -> Measured:
        """What is known so far."""
        return _measured(
            loaded=loaded,
            environment=environment,
            inputs=inputs,
            plan=plan,
            consumer=consumer,
            found=found,
            cpu_percent_before=busy,
            started_at=started_at,
        )

    def make_verifier(trials: list[Trial], until_s: float) -> tuple[Verifier | None, str]:
        """Try remedies for the configuration that the verdict is about."""
        if not loaded.suite.measure.verify:
            return None, NOT_ASKED
        so_far = measured(Measurements(trials=trials))
        present = subject_of(so_far)
        if present is None:
            return None, "nothing was measured"
        propose = partial(candidates, so_far)
        return Verifier(plan, present, propose, measure.psnr, until_s=until_s), ""

    measurements = rounds.run(Grid(plan), ladder, make_verifier)
    listener.doing("drawing the page")
    record = conclude(measured(measurements))
    store.write_run(record)
    store.write_timeline(measurements.timeline)
    page = store.write_page(render_html(build_document(record, measurements.timeline)))
    return SessionResult(Run(record, measurements.timeline, store.folder), store.folder, page, measurements.stopped_by)


def run(
    suite: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    axes: Mapping[str, Sequence[Scalar]] | None = None,
    rounds: int | None = None,
    seconds: float | None = None,
    verify: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measure a suite file and return the run; keyword arguments override the suite as the flags of `run` do.

    A `listener` hears how far it is. Raises `SuiteError`, `UsageError` and `MissingError`, each one clear line, and
    `KeyboardInterrupt` after writing what was measured until then.
    """
    overrides = [Override(("sweep", axis), list(values), f"axes[{axis!r}]") for axis, values in (axes or {}).items()]
    if data is not None:
        overrides.append(Override(("dataset", "root"), str(Path(data).resolve()), f"data={str(data)!r}"))
    for name, value in (("rounds", rounds), ("seconds", seconds), ("verify", verify)):
        if value is not None:
            overrides.append(Override(("measure", name), value, f"{name}={value!r}"))
    loaded = load_suite(Path(suite), overrides)
    if data is not None and not isinstance(loaded.suite.dataset, ImageFolder):
        raise UsageError("data: the suite's dataset is a target, which takes no folder")
    result = run_suite(loaded, Path(out) if out is not None else None, listener)
    if result.stopped_by is not None:
        raise KeyboardInterrupt(f"what was measured is in {result.folder}")
    return result.run


def _measured(
    *,
    loaded: LoadedSuite,
    environment: Environment,
    inputs: Inputs,
    plan: Plan,
    consumer: str,
    found: Measurements,
    cpu_percent_before: float,
    started_at: str,
) -> Measured:
    suite: dict[str, Any] = loaded.suite.model_dump(mode="json")
    return Measured(
        name=loaded.suite.name,
        suite=suite,
        environment=environment,
        dataset=inputs.summary,
        plan=plan.summary(),
        configs=plan.configurations,
        baseline=plan.baseline,
        baseline_why=plan.baseline_why,
        consumer=consumer,
        trials=found.trials,
        twins=found.twins,
        cpu_percent_before=cpu_percent_before,
        started_at=started_at,
        finished_at=_now(),
        complete=found.why_partial is None,
        notes=[found.why_partial] if found.why_partial else [],
        version=version("loaderbench"),
        rungs=found.rungs,
        no_rungs=found.no_rungs,
        verification=found.verification,
        no_verification=found.no_verification,
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
