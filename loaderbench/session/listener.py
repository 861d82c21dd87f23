"""The events that a session reports while it runs, for example to a progress display."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loaderbench.datasets import PrepareListener
from loaderbench.errors import MissingError
from loaderbench.plan import Plan
from loaderbench.records import PlannedTrial, Trial, Verdict

Phase = Literal["Sweep", "Final", "Isolation runs", "Free-stage trials", "Fixes", "Pairs", "More rounds"]


@dataclass(frozen=True)
class Progress:
    """How far a run is: `done` of `total` trials of a phase, and seconds left and elapsed of the run.

    `total` is `None` if the phase ends when nothing is left to try. `left_s` is an estimate that never grows; `best` is
    the fastest configuration so far.
    """

    phase: Phase
    done: int
    total: int | None
    left_s: float
    elapsed_s: float
    best: str | None


class Listener:
    """Receives the events of a session, and ignores those that a subclass does not handle."""

    def doing(self, what: str) -> None:
        """A task that takes a while begins."""

    def warned(self, why: str) -> None:
        """The run will not measure what the user may expect."""

    def generating(self, done: int, total: int) -> None:
        """`done` of `total` photos exist."""

    def writing(self, name: str, done: int, total: int) -> None:
        """`done` of `total` files are written in a format."""

    def planned(self, plan: Plan) -> None:
        """The plan is made; trials follow."""

    def trial_started(self, planned: PlannedTrial, progress: Progress) -> None:
        """A trial begins."""

    def trial_ended(self, trial: Trial, progress: Progress) -> None:
        """A trial ended, completed or failed."""

    def verdict_so_far(self, verdict: Verdict, after: str, report: Path) -> None:
        """A provisional verdict after a part of the run (`round 1 of 3`); its report is already written."""


class InTime:
    """Forwards the events of preparing data, and stops it with `MissingError` at the monotonic time `until_s`."""

    def __init__(self, listener: PrepareListener, until_s: float) -> None:
        self._listener, self._until_s = listener, until_s

    def doing(self, what: str) -> None:
        """Forward the event."""
        self._listener.doing(what)

    def generating(self, done: int, total: int) -> None:
        """Forward the event."""
        self._listener.generating(done, total)

    def writing(self, name: str, done: int, total: int) -> None:
        """Forward the event. Raises `MissingError` if the deadline has passed and files are left to write."""
        self._listener.writing(name, done, total)
        if done < total and time.monotonic() > self._until_s:
            raise MissingError(
                f"the budget was enough to write {done:,} of {total:,} {name}; the next run writes the rest"
            )
