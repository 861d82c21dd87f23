"""Records every loader that a script iterates over, each by a profiler of its own."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from loaderbench.errors import UsageError
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
from loaderbench.script.hosts import Machines, exchange, find_machines
from loaderbench.script.loader_profiler import LoaderProfiler
from loaderbench.script.missing import of_a_background_thread, with_reason
from loaderbench.script.naming import Makers, Place, command_of_script, place_of
from loaderbench.script.only_rank import only_rank
from loaderbench.script.order import RecordOrder
from loaderbench.script.own_imports import own_imports
from loaderbench.script.recorded_processes import note_begun, ranks_by_files
from loaderbench.script.recording import Recording, write_recordings
from loaderbench.script.step_stages import StepStages
from loaderbench.switch_interval import SWITCH_INTERVAL
from loaderbench.tracing.clock import thread
from loaderbench.tracing.loader import Begin

if TYPE_CHECKING:
    from loaderbench.script.tuner import ScriptTuner

FIRST_SAVE_S = 2.0
"""After that, what is recorded is saved, then after twice as long and so on: a script may end without a last word."""

LONGEST_HELD_S = 10.0
SWITCH_S = 50e-6
"""Switch interval of Python during a save. By default, each operation of a step that gives up the GIL waits 5 ms."""

_saving = threading.RLock()  # reentrant: `_save` takes it again
_saving_pid = os.getpid()  # a forked child has no thread that saves
_held: list[bool] = []
_exchanges = count()


def _hold_saving() -> None:
    """Before any fork: if saving is importing a module then, the child would block forever on that module's lock."""
    _held.append(os.getpid() == _saving_pid and _saving.acquire(timeout=LONGEST_HELD_S))


def _release_saving() -> None:
    """After the fork, in the parent and in the child."""
    if _held.pop():
        _saving.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_saving, after_in_parent=_release_saving, after_in_child=_release_saving)


_OF_EPOCHS = frozenset(("_batches", "_loader", "_own", "_since_s", "_steps", "_steps_cpu_s"))


class RecordedEpoch:
    """An epoch's batches, from a generator that records them; everything else is that of torch's own iterator.

    A loop comes by here for every batch. `steps` are those of the loop, some of which are divided.
    """

    __slots__ = ("__weakref__", "_batches", "_own", "_steps")

    def __init__(self, recorded: Any, own: Any, steps: DividedSteps) -> None:
        self._batches, self._own, self._steps = recorded, own, steps

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        steps = self._steps
        if steps.stages.loop is not None:
            steps.stages.leave_step(steps)
        steps.other_waits.asks()
        try:
            batch = next(self._batches)
        except BaseException:  # of the loader, or its end: a script may ask for the next batch all the same
            self._batches, self._steps = self._own, steps.none()
            raise
        steps.other_waits.got()
        steps.at += 1
        if steps.at == steps.due:
            steps.divide(sys._getframe(1))
        return batch

    def __len__(self) -> int:
        return len(self._own)

    def __bool__(self) -> bool:
        return bool(self._own)

    def leave_out_the_rest(self) -> None:
        """Record no further batch. Raises `ValueError` while one is being made."""
        recorded, self._batches = self._batches, self._own
        self._steps = self._steps.none()
        recorded.close()

    def __getattr__(self, name: str) -> Any:
        if name in _OF_EPOCHS:  # asked for by copy before there is one
            raise AttributeError(name)
        return getattr(self._own, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OF_EPOCHS:
            object.__setattr__(self, name, value)
        else:
            setattr(self._own, name, value)


class ClockedEpoch(RecordedEpoch):
    """An epoch whose steps are clocked: the CPU time of the process from a batch to the request for the next.

    It keeps the loader alive, which may be tuned.
    """

    __slots__ = ("_loader", "_since_s", "_steps_cpu_s")

    def __init__(self, recorded: Any, own: Any, steps: DividedSteps, steps_cpu_s: deque[float], loader: Any) -> None:
        super().__init__(recorded, own, steps)
        self._since_s, self._steps_cpu_s, self._loader = 0.0, steps_cpu_s, loader

    def __next__(self) -> Any:
        if self._since_s:
            self._steps_cpu_s.append(time.process_time() - self._since_s)
        self._steps.step_ended()
        batch = super().__next__()
        self._since_s = time.process_time()
        return batch


@dataclass
class _Recorded:
    """A loader's place and profiler, and its latest epoch."""

    place: Place
    profiler: LoaderProfiler
    steps: DividedSteps
    epoch: weakref.ref[RecordedEpoch] | None = None


class ScriptRecorder:
    """Begins epochs in place of torch. What cannot be recorded runs as it would without us, and a line says why."""

    def __init__(self, order: RecordOrder, begin: Begin, give_back: Callable[[], None], makers: Makers) -> None:
        self._tuner = _make_tuner(order, makers)
        self._order, self._usual, self._give_back, self._makers = order, begin, give_back, makers
        self._until_s = inf if order.seconds is None else time.monotonic() + order.seconds
        self._recorded: list[_Recorded] = []
        with suppress(OSError):
            note_begun(Path(order.folder))
        if order.inherited:
            find_ranks_by(ranks_by_files(Path(order.folder)))
        self._last = threading.local()  # what torch began last in a thread, as `epoch`, or the `error` that it raised
        self._beginning = 0
        self._over, self._has_begun = threading.Event(), threading.Event()
        self._tunes = False
        self._steps = StepStages(watches_optimizers=self._tuner is not None)
        threading.Thread(target=self._save_now_and_then, name="loaderbench-saving", daemon=True).start()

    def epoch(self, loader: Any) -> Iterator[Any]:
        """Begin an epoch over a loader, recorded if that is possible."""
        if time.monotonic() > self._until_s:
            self._steps.end()
            self._end_recordings()
            self._give_back()
            return self._usual(loader)
        self._last.error = None
        try:
            rank_of_training()  # which is kept: a script may leave its process group before it ends
            found = self._recorded_of(loader)
            if found.profiler.under_way:
                _leave(found.epoch)
            if found.profiler.is_over or found.profiler.under_way:
                if all(one.profiler.is_over for one in self._recorded):
                    self._steps.end()
                return self._usual(loader)
            self._steps.begin()
            with self._no_save():
                begun = self._recorded_epoch(found, loader)
            self._has_begun.set()
            found.epoch = weakref.ref(begun)
            return begun
        except UsageError:  # a profiler of the user's own records it
            return self._usual(loader)
        except Exception as error:
            if error is self._last.error:
                raise
            _say(f"cannot record {_called(loader)}: {type(error).__name__}: {error}; the script continues")
            return self._usual(loader)

    def note_pause(self, loader: Any) -> None:
        """The script starts an epoch over this loader, which may reuse one iterator for all epochs."""
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
        begun, self._last.epoch = getattr(self._last, "epoch", None), None  # its workers end with it
        one.steps.begin_epoch()
        if tunes:
            return ClockedEpoch(epoch, begun, one.steps, one.profiler.steps_cpu_s, loader)
        return RecordedEpoch(epoch, begun, one.steps)

    def _end_recordings(self) -> None:
        """Their time is over. One that is under way ends by itself, in the thread of its loop."""
        with suppress(Exception), _saving:
            for one in self._recorded:
                if not one.profiler.under_way:
                    one.profiler.end()

    def finish(self) -> None:
        """The script ends: save what was recorded."""
        self._over.set()
        self._has_begun.set()
        self._steps.end()
        self._give_back()
        for one in self._recorded:
            one.profiler.end()
        self._save(has_ended=True)
        machines = find_machines(alone=not self._order.inherited)
        if self._tuner is None and machines is not None:
            self._exchange(machines)

    def _exchange(self, machines: Machines) -> None:
        """Bring the ranks of several machines together, without harm to the script."""
        try:
            found = [self._recording_of(one, has_ended=True) for one in self._recorded]
            said = exchange(machines, found, Path(self._order.folder), next(_exchanges))
        except Exception as error:
            said = f"cannot bring the ranks of all machines together: {type(error).__name__}: {error}"
        if said:
            _say(said)

    def _begin(self, loader: Any) -> Iterator[Any]:
        try:
            self._last.epoch = self._usual(loader)
        except BaseException as error:
            self._last.error = error
            raise
        return cast("Iterator[Any]", self._last.epoch)

    def _recorded_of(self, loader: Any) -> _Recorded:
        """Its own, or that of an earlier loader that the script has made anew."""
        known = next((one for one in self._recorded if one.profiler.source is loader), None)
        if known is not None:
            return known
        place = place_of(loader, self._makers.of(loader))
        known = next((one for one in self._recorded if _continues(one, place, loader)), None)
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
            with _saving:  # a save that is under way ends first
                self._tunes = True
            try:
                for steps in [one.steps for one in self._recorded if one.profiler is profiler]:
                    self._tuner.consider(profiler, steps, save=self._save)
            finally:
                self._tunes = False

    def _epoch_ended(self) -> None:
        """A step that is still divided then was the loop's last, which it left."""
        self._steps.leave_step(None)

    def _save_now_and_then(self) -> None:
        """From the first epoch on; modules for it are imported while the first batch loads, or a step would wait."""
        longest_s = self._order.longest_save_s
        self._has_begun.wait()
        if self._over.is_set():
            return
        with suppress(Exception), _saving, own_imports(), SWITCH_INTERVAL.at_most(SWITCH_S):  # a save says why
            import_module("loaderbench.dataset_traits")
        pause_s = min(FIRST_SAVE_S, longest_s)
        while not self._over.wait(pause_s):
            with _saving:
                if not (self._tunes or self._beginning or self._over.is_set()):  # not in trials or after the last save
                    self._save()
            pause_s = min(2 * pause_s, longest_s)

    def _save(self, *, has_ended: bool = False) -> None:
        """Never in the way of the script."""
        try:
            with _saving, SWITCH_INTERVAL.at_most(SWITCH_S):
                found = [self._recording_of(one, has_ended=has_ended) for one in list(self._recorded)]
                write_recordings(Path(self._order.folder), found)
        except Exception as error:
            if Path(self._order.folder).exists():  # it has ended where not: the command, which waited for a while
                _say(f"cannot save what was recorded: {type(error).__name__}: {error}")

    def _recording_of(self, one: _Recorded, *, has_ended: bool) -> Recording:
        """What was recorded of a loader. Where each rank is recorded by itself, only a launcher's ranks count."""
        by_group = self._order.inherited
        rank = rank_of_training() if by_group else this_rank()
        restarts, around_s = restarts_of_job(), one.profiler.around_s
        place = f"{one.place}, restart {restarts}" if restarts else str(one.place)
        only = None if by_group else only_rank()
        shown = rank if only is None else only.rank
        script = Script(command_of_script(), place if shown is None else f"rank {shown}: {place}", has_ended)
        measured, readings = one.profiler.measured(script)
        measured = replace(measured, only_rank=only)
        measured = with_reason(measured, "step_stages", self._steps.why_not_divided)
        if self._steps.training_thread.is_another(one.steps.thread):
            measured = of_a_background_thread(measured)
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
    """Imported late: it takes longer to import than all the rest."""
    if order.tune_s is None:
        return None
    with own_imports():
        from loaderbench.script.tuner import ScriptTuner

    return ScriptTuner(order, makers)


def _leave(epoch: weakref.ref[RecordedEpoch] | None) -> None:
    """End an epoch's recording where the next begins: a loop that knows its length does not ask for the end."""
    earlier = epoch() if epoch is not None else None
    if earlier is not None:
        with suppress(ValueError):  # it is making a batch: the loader is iterated over within itself
            earlier.leave_out_the_rest()


def _continues(one: _Recorded, place: Place, loader: Any) -> bool:
    """Whether a loader takes the place of one that was recorded, as where each epoch makes a new one."""
    return one.place == place and one.profiler.continues_with(loader)


def _called(loader: Any) -> str:
    try:
        return str(place_of(loader))
    except Exception:  # which may be why it cannot be recorded
        return f"a {type(loader).__name__}"


def _say(line: str) -> None:
    print(f"loaderbench: {line}", file=sys.stderr)
