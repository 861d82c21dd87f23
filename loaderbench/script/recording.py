"""What a recorded process leaves for the command that started the script: one file a process."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Measured, Readings

SUFFIX = ".recording"
BEGUN = "begun"
"""A file next to them: a loader's first epoch was begun."""

SENT = "sent"
"""A file next to them: the ranks of this machine sent theirs to the machine that it names."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One loader's epochs in one process.

    `rank` is that of a distributed training; `None` outside of one. `steps` are the last ones, which are compared with
    those of other ranks; `None` where they were not timed. `ranks` is how many the training has.
    """

    name: str
    place: str
    rank: int | None
    measured: Measured
    readings: Readings
    steps: StepTimes | None = None
    ranks: int | None = None

    @property
    def took_s(self) -> float:
        """The seconds of all recorded batches: the loader that takes most of them is the script's main one."""
        trial = self.measured.trials[0]
        return trial.steady_s or 0.0


def write_recordings(folder: Path, found: Sequence[Recording], name: str = "") -> None:
    """Write this process's file, or that of another one by its `name`, at once or not at all."""
    file = folder / f"{name or os.getpid()}{SUFFIX}"
    part = file.with_suffix(".part")
    part.write_bytes(pickle.dumps(list(found)))
    part.replace(file)


def read_recordings(folder: Path) -> list[Recording]:
    """All that was written to the folder, ranks in order."""
    found: list[Recording] = []
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        found += pickle.loads(file.read_bytes())  # our own, from a folder that only this user can write to
    return sorted(found, key=lambda one: (one.rank is not None, one.rank or 0))
