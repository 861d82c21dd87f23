"""Records every loader that a script iterates over, with one profiler for each."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from loaderbench.errors import UsageError
from loaderbench.own_threads import OwnThread
from loaderbench.profiler.measured import Script
from loaderbench.ranks import (
    find_ranks_by,
    rank_of_training,
    ranks_of_job,
    ranks_of_training,
    restarts_of_job,
    this_rank,
)
from loaderbench.script.divided_steps import DividedSteps
from loaderbench.script.hosts import Machines, begin_attempt, exchange, find_machines, only_rank
from loaderbench.script.loader_profiler import LoaderProfiler
from loaderbench.script.missing import (
    is_sent_batches,
    of_a_background_thread,
    of_a_receiving_rank,
    with_reason,
    without_time_between,
)
from loaderbench.script.naming import Makers, Place, command_of_script, description_of, place_of
from loaderbench.script.order import RecordOrder
from loaderbench.script.own_imports import own_imports
from loaderbench.script.recorded_epoch import ClockedEpoch, RecordedEpoch
from loaderbench.script.recorded_processes import note_begun, ranks_by_files
from loaderbench.script.recording import MOST_LOADERS, Recording, write_recordings
from loaderbench.script.step_stages import StepStages
from loaderbench.stderr import say
from loaderbench.switch_interval import SWITCH_INTERVAL
from loaderbench.tracing.clock import thread
from loaderbench.tracing.loader import Begin
from loaderbench.tracing.loop_lines import INTERVALS_S, LineTimes, driver_of

if TYPE_CHECKING:
    from loaderbench.script.tuner import ScriptTuner

FIRST_SAVE_S = 2.0
"""Recordings are saved after this many seconds, then at doubling intervals: a script can end without notice."""

LONGEST_HELD_S = 10.0
SWITCH_S = 50e-6
"""Python's switch interval during a save. With the default, a step waits 5 ms each time it releases the GIL."""

_saving = threading.RLock()  # reentrant, because `_save` acquires it again
_saving_pid = os.getpid()  # a forked child has no saving thread
_held: list[bool] = []
_exchanges = count()


def _hold_saving() -> None:
    """Pause saving before a fork: the child would block forever on the import lock of a module being imported."""
    _held.append(os.getpid() == _saving_pid and _saving.acquire(timeout=LONGEST_HELD_S))


def _release_saving() -> None:
    """Resume saving after a fork, in the parent and in the child process."""
    if _held.pop():
        _saving.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_saving, after_in_parent=_release_saving, after_in_child=_release_saving)


@dataclass
class _Recorded:
    """A loader's place, profiler and latest epoch. `is_sent_batches`: rank 0 loads the batches of this rank."""

    place: Place
    profiler: LoaderProfiler
    steps: DividedSteps
    epoch: weakref.ref[RecordedEpoch] | None = None
    is_sent_batches: bool = False


class ScriptRecorder:
    """Begins epochs in place of torch. An epoch that cannot be recorded runs as usual, and a line says why."""

    def __init__(self, order: RecordOrder, begin: Begin, give_back: Callable[[], None], makers: Makers) -> None:
        self._tuner = _make_tuner(order, makers)
        self._order, self._usual, self._give_back, self._makers = order, begin, give_back, makers
        self._until_s = inf if order.seconds is None else time.monotonic() + order.seconds
        self._recorded: list[_Recorded] = []
        with suppress(OSError):
            note_begun(Path(order.folder))
        self._machines = find_machines(alone=not order.inherited)
        if self._machines is not None:
            with suppress(Exception):  # the exchange reports it
                begin_attempt(self._machines)
        if order.inherited:
            find_ranks_by(ranks_by_files(Path(order.folder)))
        self._last = threading.local()  # per thread: `epoch`, torch's last iterator, or its `error`
        self._beginning = 0
        self._over, self._has_begun = threading.Event(), threading.Event()
        self._tunes = False
        self._between: tuple[LoaderProfiler, LineTimes] | None = None  # since the last epoch
        self._steps = StepStages(watches_optimizers=self._tuner is not None)
        OwnThread("saving", self._save_now_and_then).start()

    def epoch(self, loader: Any) -> Iterator[Any]:
        """Begin an epoch over a loader, and record the epoch if possible."""
        if self._tuner is not None:
            self._tuner.check_ended()
        if time.monotonic() > self._until_s:
            self._steps.end()
            self._end_recordings()
            self._give_back()
            return self._usual(loader)
        self._last.error = None
        try:
            rank_of_training()  # cached now: the script may leave its process group before it ends
            found = self._recorded_of(loader)
            self._note_between(found.profiler)
            if found.profiler.under_way:
                _leave(found.epoch)
            if found.profiler.leaves_epochs and found.profiler.source is loader and not found.profiler.under_way:
                self._between_batches(found.profiler)
            if found.profiler.is_over or found.profiler.under_way:
                if all(one.profiler.is_over for one in self._recorded):
                    self._steps.end()
                return self._usual(loader)
            self._steps.begin()
            with self._no_save():
                begun = self._recorded_epoch(found, loader)
            self._has_begun.set()
            found.is_sent_batches = is_sent_batches(sys._getframe())
            found.epoch = weakref.ref(begun)
            return begun
        except UsageError:  # the user's own profiler records this loader
            return self._usual(loader)
        except Exception as error:
            if error is self._last.error:
                raise
            say(f"cannot record {description_of(loader)}: {type(error).__name__}: {error}; the script continues")
            return self._usual(loader)

    def note_pause(self, loader: Any) -> None:
        """Note that the script starts an epoch over a loader, which may reuse one iterator for all epochs."""
        for one in self._recorded:
            if one.profiler.under_way and one.profiler.source is loader:
                one.profiler.note_pause()

    @contextmanager
    def _no_save(self) -> Iterator[None]:
        """Prevent saves in this block without holding the lock: the script may wait for an epoch in another thread."""
        with _saving:
            self._beginning += 1
        try:
            yield
        finally:
            with _saving:
                self._beginning -= 1

    def _recorded_epoch(self, one: _Recorded, loader: Any) -> RecordedEpoch:
        tunes = self._tuner is not None and not self._tuner.is_done
        epoch = one.profiler.epoch(loader, stop_at_each=tunes)
        begun, self._last.epoch = getattr(self._last, "epoch", None), None  # its workers live as long as this reference
        one.steps.begin_epoch()
        if tunes:
            return ClockedEpoch(epoch, begun, one.steps, one.profiler.steps_cpu_s, loader)
        return RecordedEpoch(epoch, begun, one.steps)

    def _end_recordings(self) -> None:
        """End all recordings at the time limit. One in progress ends by itself, in the thread of its loop."""
        with suppress(Exception), _saving:
            for one in self._recorded:
                if not one.profiler.under_way:
                    one.profiler.end()

    def finish(self) -> None:
        """Save the recordings at the end of the script."""
        self._over.set()
        self._has_begun.set()
        self._steps.end()
        self._give_back()
        for one in self._recorded:
            one.profiler.end()
        self._save(has_ended=True)
        if self._tuner is None and self._machines is not None:
            self._exchange(self._machines)

    def _exchange(self, machines: Machines) -> None:
        """Exchange recordings between machines, without raising into the script."""
        try:
            found = [self._recording_of(one, has_ended=True) for one in self._recorded]
            problem = exchange(machines, found, Path(self._order.folder), next(_exchanges))
        except Exception as error:
            problem = f"cannot bring the ranks of all machines together: {type(error).__name__}: {error}"
        if problem:
            say(problem)

    def _begin(self, loader: Any) -> Iterator[Any]:
        try:
            self._last.epoch = self._usual(loader)
        except BaseException as error:
            self._last.error = error
            raise
        return cast("Iterator[Any]", self._last.epoch)

    def _recorded_of(self, loader: Any) -> _Recorded:
        """The entry of this loader, or of an earlier loader that the script has recreated."""
        known = next((one for one in self._recorded if one.profiler.source is loader), None)
        if known is not None:
            return known
        place = place_of(loader, self._makers.of(loader))
        may_be_held = len(self._recorded) < MOST_LOADERS and any(one.place == place for one in self._recorded)
        for held_s in (0, 0.02) if may_be_held else (0,):  # a reader of stacks may hold the earlier
            if known is None and self._recorded:
                time.sleep(held_s)
                known = next((one for one in self._recorded if _replaces(one, place, loader)), None)
        if known is None and len(self._recorded) >= MOST_LOADERS:
            known = next((one for one in self._recorded if _is_alike(one, place, loader)), None)
            if known is not None:
                known.profiler.share()
        if known is None:
            profiler = LoaderProfiler(
                place.name,
                self._begin,
                steps=self._order.steps,
                until_s=self._until_s,
                epoch_ended=self._epoch_ended,
                between_batches=self._between_batches,
            )
            known = _Recorded(place, profiler, DividedSteps(self._steps, profiler))
            self._recorded.append(known)
        return known

    def _between_batches(self, profiler: LoaderProfiler) -> None:
        if self._tuner is not None and not self._tuner.is_done and not self._steps.training_thread.is_another(thread()):
            with _saving:  # wait for a save in progress
                self._tunes = True
            try:
                for steps in [one.steps for one in self._recorded if one.profiler is profiler]:
                    self._tuner.consider(profiler, steps, save=self._save)
            finally:
                self._tunes = False

    def _epoch_ended(self, profiler: LoaderProfiler) -> None:
        """End the divided step, if any: it was the last of a loop that has ended.

        Then the lines that the script runs between epochs are sampled, unless it usually begins the next one at once.
        """
        self._steps.leave_step(None)
        usual_s = profiler.between_s
        if not profiler.is_over and (usual_s is None or usual_s >= INTERVALS_S[0]):
            self._between = profiler, LineTimes()
            self._steps.line_clock.begin(self._between[1], driver_of(sys._getframe()))

    def _note_between(self, profiler: LoaderProfiler) -> None:
        """Note that an epoch begins, and add the lines since the last one if both are epochs of the same loader."""
        between, self._between = self._between, None
        self._steps.line_clock.end()
        if between is not None and between[0] is profiler:
            profiler.add_between(between[1])

    def _save_now_and_then(self) -> None:
        """Save regularly from the first epoch on.

        Modules for saving are imported while the first batch loads; otherwise a step would have to wait.
        """
        longest_s = self._order.longest_save_s
        self._has_begun.wait()
        if self._over.is_set():
            return
        with suppress(Exception), _saving, own_imports(), SWITCH_INTERVAL.at_most(SWITCH_S):  # a save reports it
            import_module("loaderbench.dataset_traits")
        pause_s = min(FIRST_SAVE_S, longest_s)
        while not self._over.wait(pause_s):
            with _saving:
                if not (self._tunes or self._beginning or self._over.is_set()):  # not in trials or at the end
                    self._save()
            pause_s = min(2 * pause_s, longest_s)

    def _save(self, *, has_ended: bool = False) -> None:
        """Save the recordings. Errors are printed, never raised into the script."""
        try:
            with _saving, SWITCH_INTERVAL.at_most(SWITCH_S):
                found = [self._recording_of(one, has_ended=has_ended) for one in list(self._recorded)]
                write_recordings(Path(self._order.folder), found)
        except Exception as error:
            if Path(self._order.folder).exists():  # otherwise the command has ended: it waits for a limited time
                say(f"cannot save what was recorded: {type(error).__name__}: {error}")

    def _recording_of(self, one: _Recorded, *, has_ended: bool) -> Recording:
        """The recording of one loader. If each rank is recorded separately, only ranks of a launcher count."""
        by_group = self._order.inherited
        rank = rank_of_training() if by_group else this_rank()
        restarts, around_s = restarts_of_job(), one.profiler.around_s
        place = f"{one.place} and others" if one.profiler.is_shared else str(one.place)
        place = f"{place}, restart {restarts}" if restarts else place
        only = None if by_group else only_rank()
        shown = rank if only is None else only.rank
        script = Script(command_of_script(), place if shown is None else f"rank {shown}: {place}", has_ended)
        measured, readings = one.profiler.measured(script)
        measured = replace(measured, only_rank=only)
        measured = with_reason(measured, "step_stages", self._steps.why_not_divided)
        if len(self._recorded) > 1:
            measured = without_time_between(measured)
        if self._steps.training_thread.is_another(one.steps.thread):
            measured = of_a_background_thread(measured)
        if one.is_sent_batches:
            measured = of_a_receiving_rank(measured)
        return Recording(
            name=one.place.name,
            place=place,
            rank=rank,
            measured=measured,
            readings=readings,
            steps=one.profiler.steps,
            ranks=ranks_of_training() if by_group else ranks_of_job(),
            around_s=around_s,
            others_share=one.steps.other_waits.share,
            has_ended=has_ended,
        )


def _make_tuner(order: RecordOrder, makers: Makers) -> ScriptTuner | None:
    """Create the tuner if asked for. Its import is local because it takes longer than all the rest."""
    if order.tune_s is None:
        return None
    with own_imports():
        from loaderbench.script.tuner import ScriptTuner

    return ScriptTuner(order, makers)


def _leave(epoch: weakref.ref[RecordedEpoch] | None) -> None:
    """End an epoch's recording when the next epoch begins: a loop that knows its length never exhausts the iterator."""
    earlier = epoch() if epoch is not None else None
    if earlier is not None:
        with suppress(ValueError):  # the epoch is making a batch: the loader iterates over itself
            earlier.leave_out_the_rest()


def _replaces(one: _Recorded, place: Place, loader: Any) -> bool:
    """Whether a loader replaces one that was recorded, for example if every epoch creates a new loader."""
    return one.place == place and one.profiler.continues_with(loader)


def _is_alike(one: _Recorded, place: Place, loader: Any) -> bool:
    """Whether a loader has the same lines of code and classes, as the loaders of many clients in a list."""
    same_lines = (one.place.file, one.place.line, one.place.made) == (place.file, place.line, place.made)
    return same_lines and one.profiler.is_alike(loader)
