"""Real trials, one process each, for benchmarks that choose configurations themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from loaderbench.environment import describe_machine
from loaderbench.freeing import Freeing
from loaderbench.records import PlannedTrial, Trial
from loaderbench.runner import TrialRunner, TrialServer
from loaderbench.session.conditions import prepare_inputs
from loaderbench.session.listener import Listener
from loaderbench.session.measuring import TrialMeasurer
from loaderbench.session.time_slicing import SlicedRounds
from loaderbench.store import Store
from loaderbench.suite import load_suite


class Trials:
    """Measures rounds of planned trials of one suite, as a run does when it tries fixes or makes stages free."""

    def __init__(self, measure: TrialMeasurer, seconds: float | None = None) -> None:
        self._measure, self._seconds = measure, seconds

    def run(self, planned: Sequence[PlannedTrial], seconds: float | None = None) -> list[Trial]:
        """Measure a round, each trial for `seconds` if given. Raises `RuntimeError` with a failed trial's message."""
        trials: list[Trial] = []
        SlicedRounds(self._measure, seconds=seconds or self._seconds).run(
            planned, lambda _: None, lambda outcome: trials.append(outcome.trial)
        )
        for trial in trials:
            if trial.failure is not None:
                raise RuntimeError(f"{trial.id}: {trial.failure.kind}: {trial.failure.message}")
        return trials


@contextmanager
def trials_of(suite: Path, *, seconds: float | None = None, freeing: Freeing | None = None) -> Iterator[Trials]:
    """Prepare a suite as `loaderbench run` does; the files of its trials are removed at the end."""
    loaded = load_suite(suite)
    server = TrialServer()
    server.warm_up()
    inputs = prepare_inputs(loaded, Listener())
    runner = TrialRunner(server, describe_machine(server.method, (), {}))
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "trials")
        try:
            measure = TrialMeasurer(server, runner, loaded, inputs, consumer="none", store=store, listener=Listener())
            measure.freeing = freeing
            yield Trials(measure, seconds)
        finally:
            store.close()
