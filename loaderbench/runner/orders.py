"""What goes over the pipe between a run and its trial: the order in one message, then the phases, then the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loaderbench.plan import PlannedTrial
from loaderbench.recorder import Measurement
from loaderbench.suite import Suite


@dataclass(frozen=True)
class TrialOrder:
    """All that a trial's process needs. `consumer` is a resolved kind; `samples` the files of an image folder.

    `in_turns`: after its steady state it takes batches in turns with other trials.
    """

    planned: PlannedTrial
    suite: Suite
    suite_folder: Path
    samples: tuple[tuple[str, int], ...]
    consumer: str
    log: Path
    in_turns: bool = False

    def lasting(self, seconds: float) -> TrialOrder:
        """The same order with another length of the steady state."""
        measure = self.suite.measure.model_copy(update={"seconds": seconds})
        return replace(self, suite=self.suite.model_copy(update={"measure": measure}))


@dataclass(frozen=True)
class Phase:
    """What the trial does from now on."""

    name: str


@dataclass(frozen=True)
class Result:
    """The trial's measurement; the trial's processes still live and wait for leave to end.

    `inside` are the fields of a trial that are known inside its loader, with `not_measured` among them. `stands_still`:
    its processes can be stopped and let go on, and others be measured meanwhile.
    """

    measurement: Measurement
    recorder_s_per_batch: float
    samples_per_epoch: int | None
    inside: dict[str, Any]
    stands_still: bool = False


@dataclass(frozen=True)
class Ended:
    """The loader has no more batches, though the trial was to take its turn."""


@dataclass(frozen=True)
class Raised:
    """The trial raised; the text is the exception's type and message. A `Clue` follows."""

    text: str


@dataclass(frozen=True)
class Clue:
    """What the trial's objects say of what it raised, in a sentence; empty where they say nothing."""

    text: str


GO_ON = "go on"
"""What the run sends when the trial may take batches until it gets leave; it stops its processes between the turns."""

LEAVE = "leave"
"""What the run sends when the trial may end."""

Message = Phase | Result | Ended | Raised | Clue
