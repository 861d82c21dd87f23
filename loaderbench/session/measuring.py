"""From a planned trial to its outcome: the files it reads, the order, the process."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from loaderbench.datasets.presized import presized_copies
from loaderbench.plan import before_slices_seconds, isolation_seconds, verify_seconds
from loaderbench.records import Config, PlannedTrial, TimeSlices
from loaderbench.runner import Begun, Outcome, TrialOrder, TrialRunner, TrialServer, psnr_of
from loaderbench.runner.guard import SessionGuard, guard
from loaderbench.session.inputs import Inputs
from loaderbench.session.listener import Listener
from loaderbench.store import Store
from loaderbench.suite import ImageFolder, LoadedSuite

MOST_COPIES = 2_000
"""Of a larger folder so many images are copied, to see what smaller ones give: all would take minutes."""

Samples = tuple[tuple[str, int], ...]


class Measuring:
    """Turns a planned trial into an order and lets it run. `files_alone` bounds the files of the loader alone."""

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
        self._copies: dict[int, Samples] = {}
        self.files_alone: int | None = None

    def __call__(self, planned: PlannedTrial) -> Outcome:
        """Measure it."""
        order = self._order(planned)
        if planned.role == "remedy":
            order = order.lasting(verify_seconds(order.suite))
        return self._runner.run(isolation_order(order, self.files_alone) if planned.isolation else order)

    @property
    def sliced_seconds(self) -> float:
        """How long each trial that tries a remedy is measured in time slices, all of them together."""
        return verify_seconds(self._loaded.suite)

    def begin(self, planned: PlannedTrial) -> Begun:
        """Start a trial that runs in time slices after a short steady state of its own."""
        order = self._order(planned)
        return self._runner.begin(replace(order.lasting(before_slices_seconds(order.suite)), in_time_slices=True))

    def guard(self) -> AbstractContextManager[SessionGuard]:
        """What ends trials that are stopped, should the run be killed."""
        return guard(self._server)

    def outcome(self, begun: Begun, slices: TimeSlices | None) -> Outcome:
        """What came of a trial that was begun, followed and ended."""
        return self._runner.outcome(begun, slices)

    def psnr(self, pairs: Sequence[tuple[Config, Config]]) -> list[float | None]:
        """How much the samples of two configurations differ, in dB."""
        self._listener.doing("comparing pixels")
        return psnr_of(self._server, [(self._probe(one), self._probe(other)) for one, other in pairs])

    def _probe(self, config: Config) -> TrialOrder:
        return self._order(PlannedTrial(id="pixels", role="probe", config=config, round=1))

    def _order(self, planned: PlannedTrial) -> TrialOrder:
        loaded = self._loaded
        samples = self._samples(planned.config)
        return TrialOrder(planned, loaded.suite, loaded.folder, samples, self._consumer, self._store.log(planned.id))

    def _samples(self, config: Config) -> Samples:
        """The files, or copies of them where the configuration asks for smaller ones."""
        dataset = self._loaded.suite.dataset
        side = config.get("presize", dataset.presize) if isinstance(dataset, ImageFolder) else None
        if not isinstance(side, int):
            return self._inputs.samples
        if side not in self._copies:
            step = max(1, len(self._inputs.samples) // MOST_COPIES)
            chosen = self._inputs.samples[::step]
            self._listener.doing(f"writing copies of {len(chosen):,} images whose shorter side has {side} pixels")
            self._copies[side] = presized_copies(chosen, side)
        return self._copies[side]


def isolation_order(order: TrialOrder, files: int | None) -> TrialOrder:
    """The order of an isolation run: shorter, and for the loader alone no consumer and a sample of the files."""
    planned, suite = order.planned, order.suite
    order = order.lasting(isolation_seconds(suite))
    if planned.isolation not in ("loader_warm", "loader_cold"):
        return order
    samples = order.samples
    if files is not None and files < len(samples):
        chosen = random.Random(suite.measure.seed + planned.round).sample(range(len(samples)), files)
        samples = tuple(samples[index] for index in sorted(chosen))
    return replace(order, samples=samples, consumer="none")
