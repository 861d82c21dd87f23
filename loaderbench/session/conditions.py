"""The conditions of a run, known before its first trial: suite, machine, data, copies, plan, consumer, and GPU need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import product

from loaderbench.consumers import consumer_of, needs_accelerator, resolve_consumer
from loaderbench.consumers.step_options import CPU
from loaderbench.datasets import DatasetKind, Samples, page_cache
from loaderbench.diagnosis.warnings import unused_gpus
from loaderbench.environment import busy_percent, describe_machine
from loaderbench.errors import MissingError
from loaderbench.formats import FILES, StoredCopy, copy_as
from loaderbench.loaders import backend_of
from loaderbench.monitors import GpuMonitor, count_gpus
from loaderbench.object_store import check_client, check_copy
from loaderbench.plan import Plan, make_plan, rank_counts
from loaderbench.records import AssumedDemand, Config, Environment, Gpu, Measured, Reasons
from loaderbench.records.words import utc_now
from loaderbench.runner import TrialServer, probe
from loaderbench.session.inputs import (
    RunInputs,
    check_samples,
    notes_left_out,
    prepare_inputs,
    without_bad,
)
from loaderbench.session.listener import Listener
from loaderbench.store import note_without_parquet
from loaderbench.suite import LoadedSuite, Suite

STILL_S = 0.3  # seconds over which CPU use is sampled before the first trial
FACTS_S = 2.0  # seconds for the driver to report the GPUs' constant properties

_FIX = "use another decoder, or decode on the CPU in the training step with consumer: {kind: model, device: cpu}"


@dataclass(frozen=True)
class Conditions:
    """Suite, machine, data, plan and consumer of a run.

    `cpu_percent_before` is the use of the available CPUs by other programs before the first trial; `None` if
    unknown.
    """

    loaded: LoadedSuite
    environment: Environment
    inputs: RunInputs
    plan: Plan
    consumer: str
    cpu_percent_before: float | None
    started_at: str

    @cached_property
    def assumed_demand(self) -> AssumedDemand | None:
        """The assumed rate at which an emulated GPU takes samples, by the current table; `None` without emulation."""
        suite = self.loaded.suite
        found = consumer_of(suite.consumer, self.consumer).assumed_demand(self.loaded.folder)
        return replace(found, origin="script") if found is not None and suite.dataset.is_of_script else found

    @property
    def accelerator(self) -> bool:
        """Whether trials have a GPU."""
        return bool(self.environment.gpus)

    def measured(self, left_out: Reasons, why_partial: str | None) -> Measured:
        """The record of the run before its first trial."""
        suite, plan = self.loaded.suite, self.plan
        return Measured(
            name=suite.name,
            suite=suite.model_dump(mode="json"),
            environment=self.environment,
            dataset=self.inputs.summary,
            plan=plan.summary(),
            started_at=self.started_at,
            finished_at=utc_now(),
            complete=why_partial is None,
            consumer=self.consumer,
            trials=(),
            cpu_percent_before=self.cpu_percent_before,
            left_out=dict(left_out),
            notes=(
                *([why_partial] if why_partial else []),
                *notes_left_out(self.inputs),
                *note_without_parquet(),
            ),
            loaderbench_version=version("loaderbench"),
            suite_file=str(self.loaded.file),
            overrides={".".join(map(str, found.path)): found.value for found in self.loaded.overrides},
            assumed_demand=self.assumed_demand,
        )


def find_conditions(loaded: LoadedSuite, server: TrialServer, listener: Listener, started_at: str) -> Conditions:
    """Inspect the data and the machine, and make the plan. Raises `MissingError` if a requirement is missing."""
    with loaded.saying_where():
        environment = _environment_with_gpu(loaded, server) if needs_gpu(loaded.suite) else None
        inputs = prepare_inputs(loaded, listener)
        if environment is None:
            listener.doing("importing torch")
            environment = _environment(loaded, server)
    inputs = without_bad(inputs, loaded.suite, server.ask, listener)
    check_samples(loaded, inputs)
    for message in (*loaded.warnings, *unused_gpus(environment)):
        listener.warned(message)
    accelerator = bool(environment.gpus)
    consumer = _consumer(loaded, environment)
    cpus = environment.cpus_allotted
    plan = make_plan(loaded.suite, cpus_allotted=cpus, accelerator=accelerator, consumer=consumer)
    check_stores(loaded, plan.configurations, inputs.samples, listener)
    busy = busy_percent(STILL_S)
    return Conditions(loaded, environment, inputs, plan, consumer, busy, started_at)


def _environment(loaded: LoadedSuite, server: TrialServer) -> Environment:
    found = probe(server, loaded.suite, loaded.folder)
    until_s = time.monotonic() + FACTS_S
    gpus = GpuMonitor(found.gpus).described(lambda: time.monotonic() > until_s)
    of_driver = max(count_gpus(), found.visible) if server.uses_devices else 0
    return describe_machine(server.method, gpus, found.not_measured, gpus_of_driver=of_driver)


def _environment_with_gpu(loaded: LoadedSuite, server: TrialServer) -> Environment:
    """Probe the GPUs before files are generated or read. Raises `MissingError`, with the reason, if none is usable."""
    environment = _environment(loaded, server)
    unused = [f"{message}; see `loaderbench doctor`" for message in unused_gpus(environment)]
    why_none = next(iter(unused), environment.not_measured.get("gpus"))
    _consumer(loaded, environment, why_none)
    return environment


def _consumer(loaded: LoadedSuite, environment: Environment, why_none: str | None = None) -> str:
    """The resolved consumer kind. Raises `MissingError` if it cannot run with the GPUs of this machine."""
    gpus = len(environment.gpus)
    consumer = resolve_consumer(loaded.suite.consumer, accelerator=gpus > 0, why_none=why_none)
    kind, ranks = consumer_of(loaded.suite.consumer, consumer), max(rank_counts(loaded.suite))
    if gpus and (why := kind.why_not_on(gpus)):
        raise MissingError(why)
    if why := why_not_decoded(loaded.suite, environment.gpus, why_none):
        raise MissingError(why)
    if ranks > 1 and (why := kind.why_not_in_ranks(ranks, gpus)):
        raise MissingError(f"sweep.ranks: {why}")
    if ranks > gpus and (decoded := _decoded_on_gpu(loaded.suite)):
        raise MissingError(f"sweep.ranks: {decoded}, and {ranks} ranks need {ranks} GPUs; sweep fewer ranks")
    return consumer


def needs_gpu(suite: Suite) -> bool:
    """Whether any trial needs a GPU; a consumer chosen by `auto` never does."""
    return needs_accelerator(suite.consumer) or bool(_decoded_on_gpu(suite))


def why_not_decoded(suite: Suite, gpus: Sequence[Gpu], why_none: str | None = None) -> str:
    """Why this machine's GPUs cannot decode for the suite, and how to fix it; empty if they can, or if none has to.

    Every trial that decodes on the GPU would fail. `why_none` says why there is no GPU, if known.
    """
    decoded = _decoded_on_gpu(suite)
    if not decoded or (gpus and gpus[0].kind == "cuda"):
        return ""
    why = f"this machine has {gpus[0].device} ({gpus[0].name})" if gpus else why_none
    return f"{decoded}, and no CUDA device can be used{f' ({why})' if why else ''}; {_FIX}"


def _decoded_on_gpu(suite: Suite) -> str:
    """What at least one configuration decodes on the GPU; empty if nothing, or if the training step runs on the CPU."""
    kind = consumer_of(suite.consumer, resolve_consumer(suite.consumer, accelerator=True))
    if kind.device_name == CPU:
        return ""
    values_of = suite.options
    configs = (dict(zip(values_of, values, strict=True)) for values in product(*values_of.values()))
    return next(filter(None, map(suite.dataset.why_not_on_device, configs)), "")


class Copies:
    """Finds or writes the dataset copies of one run; each copy is prepared once."""

    def __init__(self, suite: Suite, listener: Listener) -> None:
        self._suite, self._listener = suite, listener
        self._found: dict[tuple[str, Samples, str | None], StoredCopy] = {}

    def of(self, samples: Samples, config: Config) -> StoredCopy | None:
        """The copy that a configuration reads instead of these files; `None` if it reads the files themselves.

        Raises `MissingError` if the copy cannot be written, or if the object store does not hold it.
        """
        name, url = format_of(config, self._suite), self._suite.dataset.with_axes(config).store
        if name == FILES:
            return None
        store = None if url is None else f"{url}/{name}"
        if (name, samples, store) not in self._found:
            self._found[name, samples, store] = self._copy(name, samples, store)
        return self._found[name, samples, store]

    def _copy(self, name: str, samples: Samples, store: str | None) -> StoredCopy:
        self._listener.doing(f"looking for {len(samples):,} files as {name}")
        copy = copy_as(name, samples, lambda done, total: self._listener.writing(name, done, total))
        if store is None:
            if self._suite.measure.cache == "warm":
                page_cache.warm(map(str, copy.files))
            return copy
        self._listener.doing(f"looking for the same files in {store}")
        check_copy(store, copy.folder, [copy.files[0], copy.files[-1]])
        return replace(copy, store=store)


def check_stores(
    loaded: LoadedSuite, configs: Iterable[Config], samples_of: Callable[[DatasetKind], Samples], listener: Listener
) -> None:
    """Read one file from each object store that these configurations read image files from.

    Raises `MissingError` if the read fails or the store's client library is not installed.
    """
    checked: set[tuple[object, ...]] = set()
    for config in configs:
        dataset = loaded.suite.dataset.with_axes(config)
        key = (dataset.store, *dataset.choice_of_data)
        if dataset.store is None or key in checked:
            continue
        check_client(dataset.store)
        if format_of(config, loaded.suite) == FILES:
            listener.doing(f"reading one file from {dataset.store}")
            dataset.check_store(samples_of(dataset), loaded.folder)
            checked.add(key)


def format_of(config: Config, suite: Suite) -> str:
    """The format that a configuration reads: its loader's only format, or else that of its dataset."""
    backend = backend_of({**suite.loader, **config})
    if backend.format or backend.decodes:
        return backend.format or FILES
    return suite.dataset.with_axes(config).stored_as
