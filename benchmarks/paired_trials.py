"""Real trials, one process each, for benchmarks that choose configurations themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from loaderbench.environment import describe_machine
from loaderbench.plan import PlannedTrial
from loaderbench.records import Trial
from loaderbench.runner import TrialRunner, TrialServer
from loaderbench.session.inputs import prepare_inputs
from loaderbench.session.listener import Silent
from loaderbench.session.measuring import Measuring
from loaderbench.store import Store
from loaderbench.suite import load_suite


class Trials:
    """Measures planned trials of one suite and keeps what came of them."""

    def __init__(self, measure: Measuring) -> None:
        self._measure = measure

    def run(self, planned: PlannedTrial) -> Trial:
        """Measure one; a failed one raises `RuntimeError` with its words."""
        trial = self._measure(planned).trial
        if trial.failure is not None:
            raise RuntimeError(f"{planned.id}: {trial.failure.kind}: {trial.failure.message}")
        return trial


@contextmanager
def trials_of(suite: Path) -> Iterator[Trials]:
    """Prepare a suite as `loaderbench run` does; what the trials write is removed at the end."""
    loaded = load_suite(suite)
    server = TrialServer()
    server.warm_up()
    inputs = prepare_inputs(loaded, Silent())
    runner = TrialRunner(server, describe_machine(server.method, (), {}))
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "trials")
        try:
            yield Trials(Measuring(server, runner, loaded, inputs, consumer="none", store=store, listener=Silent()))
        finally:
            store.close()
