"""From a planned trial to its outcome: resolves the files to read, builds the order, and runs the process."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from loaderbench.consumers import NOTHING, consumer_kind, consumer_of
from loaderbench.datasets import DatasetOrder, PrepareListener, Samples
from loaderbench.freeing import Freeing
from loaderbench.loaders import AXIS, backend_of, backends_of
from loaderbench.plan import before_slices_seconds, isolation_seconds, verify_seconds
from loaderbench.ranks import rank_count
from loaderbench.records import Config, FormatCopy, Parity, PixelChange, PlannedTrial, TimeSlices
from loaderbench.runner import Begun, TrialOrder, TrialOutcome, TrialRunner, TrialServer
from loaderbench.runner.guard import SessionGuard, guard
from loaderbench.runner.parity import ParityOrder, compare_loaders
from loaderbench.session.conditions import Conditions, Copies
from loaderbench.session.inputs import RunInputs
from loaderbench.session.listener import InTime, Listener
from loaderbench.store import Store
from loaderbench.suite import LoadedSuite, Suite

LOADER_ALONE = ("loader_warm", "loader_cold")
"""The isolation runs without a consumer."""


class TrialMeasurer:
    """Turns planned trials into orders and runs them.

    `files_alone` limits the files that the loader alone reads; `freeing` says which samples a stage is made free over.
    `compares_rates`: samples/s of all trials are compared, so no demand may cap them.
    """

    def __init__(
        self,
        server: TrialServer,
        runner: TrialRunner,
        loaded: LoadedSuite,
        inputs: RunInputs,
        *,
        consumer: str,
        store: Store,
        listener: Listener,
        compares_rates: bool = False,
    ) -> None:
        self._compares_rates = compares_rates
        self._server, self._runner, self._loaded, self._inputs = server, runner, loaded, inputs
        self._consumer, self._store, self._listener = consumer, store, listener
        self._changed: dict[tuple[object, ...], Samples] = {}
        self._copies = Copies(loaded.suite, listener)
        self.files_alone: int | None = None
        self.freeing: Freeing | None = None

    def __call__(self, planned: PlannedTrial) -> TrialOutcome:
        """Measure a trial."""
        order = self._order(planned)
        if planned.role in ("final", "freed", "remedy"):
            order = order.lasting(verify_seconds(order.suite))
        if planned.isolation:  # a copy is read completely: a subset would be written again for each round
            order = isolation_order(order, self.files_alone if order.copy is None else None)
        return self._runner.run(order)

    @property
    def sliced_seconds(self) -> float:
        """Total seconds in time slices for each trial of the final or of a fix."""
        return verify_seconds(self._loaded.suite)

    def begin(self, planned: PlannedTrial) -> Begun:
        """Start a trial that reaches a short steady state first and then runs in time slices."""
        order = self._order(planned)
        return self._runner.begin(replace(order.lasting(before_slices_seconds(order.suite)), in_time_slices=True))

    def guard(self) -> AbstractContextManager[SessionGuard]:
        """A guard that ends stopped trials if the run is killed."""
        return guard(self._server)

    def followed(self, begun: Begun) -> None:
        """Record that a started trial has its result: later trials may take ten times as long without progress."""
        self._runner.followed(begun)

    def outcome(self, begun: Begun, slices: TimeSlices | None) -> TrialOutcome:
        """The outcome of a trial that has ended."""
        return self._runner.outcome(begun, slices)

    def write_copies(self, configs: Sequence[Config], until_s: float = math.inf) -> tuple[FormatCopy, ...]:
        """Write the copies that these configurations read, before anything is timed.

        Raises `MissingError` if that fails, or if smaller images are still being written at the monotonic time
        `until_s`.
        """
        listener = InTime(self._listener, until_s)
        found = [self._copies.of(self._samples(config, listener), config) for config in configs]
        return tuple(dict.fromkeys(copy.about for copy in found if copy is not None))

    def pixel_changes(self, pairs: Sequence[tuple[Config, Config]]) -> list[PixelChange]:
        """How much the samples of each pair of configurations differ."""
        self._listener.doing("comparing pixels")
        orders = [(self._dataset_order(one), self._dataset_order(other)) for one, other in pairs]
        found = self._loaded.suite.dataset.pixel_changes(orders, self._server.ask)
        return [_comparable_change(change, *pair) for change, pair in zip(found, orders, strict=True)]

    def parity(self, one: Config, other: Config) -> Parity:
        """Whether the loaders of two configurations return the same batches."""
        suite = self._loaded.suite
        backends = tuple((backends_of(suite.loader, suite.sweep) | backends_of(suite.baseline, {})).values())
        orders = self._dataset_order(one), self._dataset_order(other)
        ask = partial(self._server.ask, log=self._store.log(f"parity-{one.get(AXIS)}"))
        return compare_loaders(ParityOrder(suite.dataset, *orders, backends), ask)

    def _dataset_order(self, config: Config) -> DatasetOrder:
        arguments = {**self._loaded.suite.loader, **config}
        samples = self._samples(config)
        return DatasetOrder(samples, arguments, self._loaded.folder, self._copies.of(samples, config))

    def _order(self, planned: PlannedTrial) -> TrialOrder:
        loaded = self._loaded
        samples, log = self._samples(planned.config), self._store.log(planned.id)
        order = TrialOrder(planned, loaded.suite, loaded.folder, samples, consumer_for(planned, self._consumer), log)
        compares_rates = self._compares_rates or planned.role == "remedy"
        order = replace(order, copy=self._copies.of(samples, planned.config), compares_rates=compares_rates)
        if planned.role != "freed" or self.freeing is None:
            return order
        seed = loaded.suite.measure.seed + planned.round
        return replace(order, freeing=replace(self.freeing, stage=planned.freed, seed=seed))

    def _samples(self, config: Config, listener: PrepareListener | None = None) -> Samples:
        """The files, or the changed samples that the configuration asks for; each change is made once."""
        dataset = self._loaded.suite.dataset.with_axes(config)
        key = (*dataset.choice_of_data, *(getattr(dataset, option) for option in dataset.change_samples))
        if key not in self._changed:
            self._changed[key] = dataset.samples_for(self._inputs.samples(dataset), listener or self._listener)
        return self._changed[key]


def _comparable_change(change: PixelChange, one: DatasetOrder, other: DatasetOrder) -> PixelChange:
    """The pixel change between the datasets; unknown if the loaders differ and one of them decodes by itself."""
    backends = backend_of(one.arguments), backend_of(other.arguments)
    if backends[0] is backends[1]:
        return change
    why = next((f"{found.display_name} decodes by itself" for found in backends if found.decodes), "")
    return PixelChange(None, f"not compared: {why}; see Same batches") if why else change


def consumer_for(planned: PlannedTrial, own: str) -> str:
    """The run's own consumer; none for the loader alone, or for a fix whose gain the demand would cap."""
    capped = planned.role == "remedy" and consumer_kind(own).capped
    alone = planned.role == "freed" or planned.isolation in LOADER_ALONE
    return NOTHING if capped or alone else own


def is_alone(planned: PlannedTrial, conditions: Conditions) -> bool:
    """Whether the trial must run alone: it has several ranks, uses a GPU, or needs a cold page cache.

    Ranks end together. GPU memory may only fit one trial. Interleaved trials read the same files and would warm the
    page cache for each other.
    """
    if rank_count(planned.config) is not None or conditions.loaded.suite.measure.cache == "cold":
        return True
    return conditions.accelerator and may_use_device(planned, conditions.loaded.suite, conditions.consumer)


def may_use_device(planned: PlannedTrial, suite: Suite, own: str) -> bool:
    """Whether the trial uses a GPU if there is one, even only to pin memory; `own` is the run's consumer."""
    arguments = {**suite.loader, **planned.config}
    computes = consumer_of(suite.consumer, consumer_for(planned, own)).may_use_device
    decodes = bool(suite.dataset.why_not_on_device(arguments))
    return computes or decodes or backend_of(arguments).uses_accelerator(arguments)


def isolation_order(order: TrialOrder, files: int | None) -> TrialOrder:
    """The order of an isolation run: shorter, and with a random subset of the files for the loader alone."""
    planned, suite = order.planned, order.suite
    order = order.lasting(isolation_seconds(suite))
    if planned.isolation not in LOADER_ALONE:
        return order
    samples = order.samples
    if files is not None and files < len(samples):
        chosen = random.Random(suite.measure.seed + planned.round).sample(range(len(samples)), files)
        samples = tuple(samples[index] for index in sorted(chosen))
    return replace(order, samples=samples)
