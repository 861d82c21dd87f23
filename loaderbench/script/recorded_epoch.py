"""The iterator that a script gets for an epoch: it records the batches, and otherwise is torch's own.

It also ends a script whose loader is tuned, even if the script catches the exit.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any, NoReturn

from loaderbench.script.divided_steps import DividedSteps
from loaderbench.stderr import say


class TrainingEnd(SystemExit):
    """Ends the script with exit code 0."""

    def __init__(self) -> None:
        super().__init__(0)


class EndedBatches:
    """An iterator that raises `TrainingEnd` for every batch."""

    def __iter__(self) -> EndedBatches:
        return self

    def __next__(self) -> Any:
        end_again()


def end_again() -> NoReturn:
    """Raise `TrainingEnd` in a script that has caught it, for example with a bare `except`."""
    _say_why()
    raise TrainingEnd


@cache
def _say_why() -> None:
    say("the script continues after the exit that follows tuning; its loaders give no more batches")


_OF_EPOCHS = frozenset(("_batches", "_loader", "_own", "_since_s", "_steps", "_steps_cpu_s"))


class RecordedEpoch:
    """The batches of an epoch, from a generator that records them; other attributes are those of torch's iterator.

    This code runs for every batch. `steps` are the steps of the loop, some of which are divided into stages.
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
        except BaseException:  # from the loader, or at its end: the script can still ask for batches
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
        """Stop recording this epoch. Raises `ValueError` while a batch is being made."""
        recorded, self._batches = self._batches, self._own
        self._steps = self._steps.none()
        recorded.close()

    def __getattr__(self, name: str) -> Any:
        if name in _OF_EPOCHS:  # copy looks this up before it is set
            raise AttributeError(name)
        return getattr(self._own, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OF_EPOCHS:
            object.__setattr__(self, name, value)
        else:
            setattr(self._own, name, value)


class ClockedEpoch(RecordedEpoch):
    """An epoch that measures the CPU time of the process in every step, from a batch to the next request.

    It keeps the loader alive, because the loader may be tuned. Once the script is ended, it yields no more batches.
    """

    __slots__ = ("_loader", "_since_s", "_steps_cpu_s")

    def __init__(self, recorded: Any, own: Any, steps: DividedSteps, steps_cpu_s: deque[float], loader: Any) -> None:
        super().__init__(recorded, own, steps)
        self._since_s, self._steps_cpu_s, self._loader = 0.0, steps_cpu_s, loader

    def __next__(self) -> Any:
        if self._since_s:
            self._steps_cpu_s.append(time.process_time() - self._since_s)
        self._steps.step_ended()
        try:
            batch = super().__next__()
        except TrainingEnd:
            self._batches = EndedBatches()
            raise
        self._since_s = time.process_time()
        return batch
