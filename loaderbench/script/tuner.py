"""Tunes a script's training loader once it has settled, while the script waits."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TypeVar

from loaderbench.code_places import CodeLine
from loaderbench.profiler.measured import Script
from loaderbench.ranks import rank_of_training
from loaderbench.script.divided_steps import DividedSteps
from loaderbench.script.loader_profiler import LoaderProfiler
from loaderbench.script.naming import Makers
from loaderbench.script.order import RecordOrder
from loaderbench.script.recorded_epoch import TrainingEnd, end_again
from loaderbench.script.tuning_ranks import all_take_batches, one_rank_tunes, shortest_step_s
from loaderbench.stderr import say
from loaderbench.tracing.loader import worker_arguments
from loaderbench.tracing.other_loader import OtherLoader
from loaderbench.tuning import OwnLoop, Tuned, TuneOrder, TuningInterrupted, tune_loader

Result = TypeVar("Result")

SETTLED_BATCHES = 20
"""Batches after the warm-up that are enough to know the loader's rate and the duration of a step."""

PATIENCE_S, LONG_PATIENCE_S = 10.0, 60.0
"""Seconds to wait for an optimizer step. After that, a loop without `torch.no_grad` counts as training.

The longer limit is for a loop that calls no torch module, such as one that computes the mean of a dataset.
"""

LEAVES_EPOCHS = (
    "the loop takes one or two batches of each epoch, as with next(iter(loader)). "
    "Keep one iterator for all steps, and tune again"
)
FILE = "tuned.pickle"
MOST_WAIT = 0.999  # of the loop's time; above it, the duration of a step is unknown


@dataclass(frozen=True, kw_only=True)
class TunedLoader:
    """The result of tuning the loader with this name.

    `made_at` is the line that created the loader, and `own` describes the script's own loop.
    """

    name: str
    made_at: CodeLine | None
    tuned: Tuned
    own: OwnLoop


class ScriptTuner:
    """Waits for the training loop, tunes its loader once, and then ends the script unless it should continue."""

    def __init__(self, order: RecordOrder, makers: Makers) -> None:
        self._order, self._makers = order, makers
        self._began_s = time.monotonic()
        self.is_done = self._has_ended = False

    def consider(self, profiler: LoaderProfiler, steps: DividedSteps, *, save: Callable[[], None]) -> None:
        """Tune this loader if its loop trains and has settled. Raises `SystemExit` afterwards.

        Of several ranks, only rank 0 tunes. Without others, a loop whose `steps` mostly wait for another loader gives
        that loader time to settle first. `save` writes the recordings, since nothing may follow. Errors are printed as
        one line, and never raised into the script.
        """
        import torch

        if self.is_done or profiler.steady_batches < SETTLED_BATCHES or not torch.is_grad_enabled():
            return
        is_alone = rank_of_training() is None  # clocks differ between ranks: one would wait for another in a collective
        if is_alone and steps.other_waits.are_for_others and time.monotonic() < self._began_s + LONG_PATIENCE_S:
            return
        trains = steps.optimizes or isinstance(profiler.source, OtherLoader)  # fastai has its own optimizers
        patience_s = PATIENCE_S if steps.calls_model else LONG_PATIENCE_S
        if not trains and (not is_alone or time.monotonic() < self._began_s + patience_s):
            return
        if not trains:
            say(f"no optimizer step seen; treating the loop over {profiler.name} as training")
        self.is_done = True
        profiler.end()  # what follows is not the script's loop
        save()
        folder = Path(self._order.folder)
        own = self._attempt(profiler, lambda: _own_loop(profiler))
        own = self._attempt(profiler, lambda: _with_shortest_step(own, folder, profiler.name))
        with one_rank_tunes(folder) as tunes:
            if tunes and own is not None:
                self._attempt(profiler, lambda: self._tune(profiler, own))
        if self._order.keep_training or not all_take_batches(folder):
            return
        if threading.current_thread() is not threading.main_thread():
            say("the training loop runs in a thread and cannot be stopped; the script continues")
            return
        self._has_ended = True
        raise TrainingEnd

    def check_ended(self) -> None:
        """Raise the exit again if the script has caught it. Only the main thread can end the script."""
        if self._has_ended and threading.current_thread() is threading.main_thread():
            end_again()

    @staticmethod
    def _attempt(profiler: LoaderProfiler, step: Callable[[], Result]) -> Result | None:
        """Run one step of tuning and return its result. An exception is printed as one line."""
        try:
            return step()
        except Exception as error:
            say(f"cannot tune {profiler.name}: {type(error).__name__}: {error}")
            return None

    def _tune(self, profiler: LoaderProfiler, own: OwnLoop) -> None:
        loader = profiler.source
        if not self._order.quiet and not profiler.leaves_epochs:
            say(f"tuning {profiler.name} for up to {self._order.tune_s:.0f} s; the script waits")
        order = TuneOrder(
            name=profiler.name,
            budget_s=self._order.tune_s or 0.0,
            own=own,
            script=Path(next(iter(sys.argv), "-")).resolve(),
        )
        at = self._makers.of(loader)

        def keep(tuned: Tuned) -> None:
            found = TunedLoader(name=profiler.name, made_at=at, tuned=tuned, own=own)
            (Path(self._order.folder) / FILE).write_bytes(pickle.dumps(found))

        present = worker_arguments(loader)
        if profiler.leaves_epochs:
            keep(Tuned(present=present, arguments=present, why_none=LEAVES_EPOCHS))
            return
        keep(Tuned(present=present, arguments=present, why_none="tuning was interrupted"))
        try:
            keep(tune_loader(loader, order, Path(self._order.tune_folder)))
        except TuningInterrupted as stop:
            keep(stop.tuned)
            raise KeyboardInterrupt from None  # Python exits by SIGINT only for exactly this type


def _with_shortest_step(own: OwnLoop | None, folder: Path, name: str) -> OwnLoop | None:
    """The loop with the shortest step of all ranks. Ranks wait for each other here, also if a loop is unknown."""
    step_s = shortest_step_s(folder, own.step_s_per_sample if own else None, name)
    return replace(own, step_s_per_sample=step_s) if own else None


def _own_loop(profiler: LoaderProfiler) -> OwnLoop:
    measured, _ = profiler.measured(Script("", ""))
    trial = measured.trials[0]
    rate, wait = trial.samples_per_s, trial.data_wait_share
    if rate is None or wait is None or not trial.samples or not trial.batches:
        return OwnLoop()
    cpu_s = median(profiler.steps_cpu_s) * trial.batches / trial.samples if profiler.steps_cpu_s else None
    typical = min(1.0, trial.step.p50_s / trial.step.mean_s) if trial.step and trial.step.mean_s > 0 else 1.0
    around_s = profiler.around_s * trial.batches / trial.samples  # part of the wait that no loader argument shortens
    step_s = None
    if wait - around_s * rate < MOST_WAIT:
        step_s = typical * (1 - wait) / rate + around_s  # excludes pauses such as checkpoints
    return OwnLoop(
        samples_per_s=rate,
        step_s_per_sample=step_s,
        step_cpu_s_per_sample=cpu_s,
        samples_per_batch=trial.samples / trial.batches,
    )


def read_tuned(folder: Path) -> TunedLoader | None:
    """The result that a script left in the folder; `None` if nothing was tuned."""
    try:
        found: TunedLoader = pickle.loads((folder / FILE).read_bytes())  # our own: only this user can write here
    except OSError:
        return None
    return found
