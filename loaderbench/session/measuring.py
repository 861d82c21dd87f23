"""From a planned trial to its outcome: the files it reads, the order, the process."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from loaderbench.consumers import NOTHING, consumer_kind, consumer_of
from loaderbench.datasets import DatasetOrder, Inputs, PrepareListener, Samples
from loaderbench.freeing import Freeing
from loaderbench.loaders import AXIS, backend_of, backends_of
from loaderbench.plan import before_slices_seconds, isolation_seconds, verify_seconds
from loaderbench.ranks import rank_count
from loaderbench.records import Config, FormatCopy, Parity, PixelChange, PlannedTrial, TimeSlices
from loaderbench.runner import Begun, TrialOrder, TrialOutcome, TrialRunner, TrialServer
from loaderbench.runner.guard import SessionGuard, guard
from loaderbench.runner.parity import ParityOrder, compare_loaders
from loaderbench.session.conditions import Conditions
from loaderbench.session.copies import Copies
from loaderbench.session.listener import InTime, Listener
from loaderbench.store import Store
from loaderbench.suite import LoadedSuite, Suite

LOADER_ALONE = ("loader_warm", "loader_cold")
"""The isolation runs that nothing consumes."""


class TrialMeasurer:
    """Turns a planned trial into an order and lets it run.

    `files_alone` bounds the files of the loader alone; `freeing` is over which samples a stage is made free.
    """

    def __init__(
        self,
        server: TrialServer,
        runner: TrialRunner,
        loaded: LoadedSuite,
        inputs: Inputs,
        *,
        consumer: str,
        store: Store,
        listener: Listener,
    ) -> None:
        self._server, self._runner, self._loaded, self._inputs = server, runner, loaded, inputs
        self._consumer, self._store, self._listener = consumer, store, listener
        self._changed: dict[tuple[object, ...], Samples] = {}
        self._copies = Copies(loaded.suite, listener)
        self.files_alone: int | None = None
        self.freeing: Freeing | None = None

    def __call__(self, planned: PlannedTrial) -> TrialOutcome:
        """Measure it."""
        order = self._order(planned)
        if planned.role in ("final", "freed", "remedy"):
            order = order.lasting(verify_seconds(order.suite))
        if planned.isolation:  # a copy is read as a whole: one of some files would be written for each round
            order = isolation_order(order, self.files_alone if order.copy is None else None)
        return self._runner.run(order)

    @property
    def sliced_seconds(self) -> float:
        """How long each trial of a final or of a remedy is measured in time slices, all of them together."""
        return verify_seconds(self._loaded.suite)

    def begin(self, planned: PlannedTrial) -> Begun:
        """Start a trial that runs in time slices after a short steady state of its own."""
        order = self._order(planned)
        return self._runner.begin(replace(order.lasting(before_slices_seconds(order.suite)), in_time_slices=True))

    def guard(self) -> AbstractContextManager[SessionGuard]:
        """What ends trials that are stopped, should the run be killed."""
        return guard(self._server)

    def followed(self, begun: Begun) -> None:
        """One that was begun has its result: the next may go ten times as long without progress."""
        self._runner.followed(begun)

    def outcome(self, begun: Begun, slices: TimeSlices | None) -> TrialOutcome:
        """What came of a trial that was begun, followed and ended."""
        return self._runner.outcome(begun, slices)

    def write_copies(self, configs: Sequence[Config], until_s: float = math.inf) -> tuple[FormatCopy, ...]:
        """Write what these configurations read, before anything is timed.

        Raises `MissingError`, also if smaller images would be written at the monotonic time `until_s`.
        """
        listener = InTime(self._listener, until_s)
        found = [self._copies.of(self._samples(config, listener), config) for config in configs]
        return tuple(dict.fromkeys(copy.about for copy in found if copy is not None))

    def pixel_changes(self, pairs: Sequence[tuple[Config, Config]]) -> list[PixelChange]:
        """How much the samples of two configurations differ."""
        self._listener.doing("comparing pixels")
        orders = [(self._dataset_order(one), self._dataset_order(other)) for one, other in pairs]
        found = self._loaded.suite.dataset.pixel_changes(orders, self._server.ask)
        return [_unless_decoded_by_a_loader(change, *pair) for change, pair in zip(found, orders, strict=True)]

    def parity(self, one: Config, other: Config) -> Parity:
        """Whether the loaders of two configurations give the same batches."""
        suite = self._loaded.suite
        backends = tuple(backends_of(suite.loader, suite.sweep).values())
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
        order = replace(order, copy=self._copies.of(samples, planned.config))
        if planned.role != "freed" or self.freeing is None:
            return order
        seed = loaded.suite.measure.seed + planned.round
        return replace(order, freeing=replace(self.freeing, stage=planned.freed, seed=seed))

    def _samples(self, config: Config, listener: PrepareListener | None = None) -> Samples:
        """The files, or what the configuration asks for in their place; made once."""
        dataset = self._loaded.suite.dataset.with_axes(config)
        key = tuple(getattr(dataset, option) for option in dataset.change_samples)
        if key not in self._changed:
            self._changed[key] = dataset.samples_for(self._inputs.samples, listener or self._listener)
        return self._changed[key]


def _unless_decoded_by_a_loader(change: PixelChange, one: DatasetOrder, other: DatasetOrder) -> PixelChange:
    """The change, which is that of the datasets; of a loader that decodes by itself it is not known."""
    backends = backend_of(one.arguments), backend_of(other.arguments)
    if backends[0] is backends[1]:
        return change
    why = next((f"{found.called} decodes by itself" for found in backends if found.decodes), "")
    return PixelChange(None, f"not compared: {why}; see Same batches") if why else change


def consumer_for(planned: PlannedTrial, own: str) -> str:
    """The run's `own` consumer; none for the loader alone, nor for a remedy where the demand would cap the gain."""
    capped = planned.role == "remedy" and consumer_kind(own).capped
    alone = planned.role == "freed" or planned.isolation in LOADER_ALONE
    return NOTHING if capped or alone else own


def is_alone(planned: PlannedTrial, made: Conditions) -> bool:
    """Whether the trial must run alone: it has several ranks, uses a GPU, or needs a cold page cache.

    Ranks end together. GPU memory may hold one trial only. Trials in turns read the same files and would warm them for
    each other.
    """
    if rank_count(planned.config) is not None or made.loaded.suite.measure.cache == "cold":
        return True
    return made.accelerator and may_use_device(planned, made.loaded.suite, made.consumer)


def may_use_device(planned: PlannedTrial, suite: Suite, own: str) -> bool:
    """Whether the trial uses a GPU where there is one, if only to pin memory; `own` is the run's consumer."""
    arguments = {**suite.loader, **planned.config}
    computes = consumer_of(suite.consumer, consumer_for(planned, own)).may_use_device
    decodes = bool(suite.dataset.why_not_on_device(arguments))
    return computes or decodes or backend_of(arguments).uses_accelerator(arguments)


def isolation_order(order: TrialOrder, files: int | None) -> TrialOrder:
    """The order of an isolation run: shorter, and for the loader alone a sample of the files."""
    planned, suite = order.planned, order.suite
    order = order.lasting(isolation_seconds(suite))
    if planned.isolation not in LOADER_ALONE:
        return order
    samples = order.samples
    if files is not None and files < len(samples):
        chosen = random.Random(suite.measure.seed + planned.round).sample(range(len(samples)), files)
        samples = tuple(samples[index] for index in sorted(chosen))
    return replace(order, samples=samples)
