"""What a recorded process leaves for the command that started the script: one file a process."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loaderbench.profiler.other_loaders import waits_for_others
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Measured, Readings

SUFFIX = ".recording"
SENT = "sent"
"""A file next to them: the ranks of this machine sent theirs to the machine that it names."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One loader's epochs in one process.

    `rank` is that of a distributed training; `None` outside of one. `steps` are the last ones, which are compared with
    those of other ranks; `None` where they were not timed. `ranks` is how many the training has. `around_s` is the mean
    of code around the loader, per batch: it is part of the trial's data wait. `others_share` is the share of its steps
    that waited for batches of other loaders. `has_ended`: nothing will be added to it.
    """

    name: str
    place: str
    rank: int | None
    measured: Measured
    readings: Readings
    steps: StepTimes | None = None
    ranks: int | None = None
    around_s: float = 0.0
    others_share: float = 0.0
    has_ended: bool = False

    @property
    def folder_name(self) -> str:
        """Its name as one of a folder, without its rank."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.name).strip("-.")[:60] or "loader"

    @property
    def took_s(self) -> float:
        """The seconds of all recorded batches: the loader that takes most of them is the script's main one."""
        return self.measured.trials[0].steady_s or 0.0

    @property
    def waited_s(self) -> float:
        """The seconds that its loop waited for them."""
        return self.took_s * (self.measured.trials[0].data_wait_share or 0.0)

    @property
    def waits_for_others(self) -> bool:
        """Whether its loop waits for batches of other loaders, and for them rather than for its own."""
        return waits_for_others(self.others_share, self.measured.trials[0].data_wait_share)


def own_files(folder: Path) -> list[Path]:
    """The files of processes of this machine, each replaced whenever more is recorded."""
    return [file for file in sorted(folder.glob(f"*{SUFFIX}")) if file.stem.isdigit()]


def read_file(file: Path) -> list[Recording]:
    """What one process recorded, its loaders in the order of their first epochs."""
    found: list[Recording] = pickle.loads(file.read_bytes())  # our own: only this user can write to the folder
    return found


def write_recordings(folder: Path, found: Sequence[Recording], name: str = "") -> None:
    """Write this process's file, or that of another one by its `name`, at once or not at all."""
    file = folder / f"{name or os.getpid()}{SUFFIX}"
    part = file.with_suffix(".part")
    part.write_bytes(pickle.dumps(list(found)))
    part.replace(file)


def read_recordings(folder: Path) -> list[Recording]:
    """All that was written to the folder, ranks in order."""
    found = [one for file in sorted(folder.glob(f"*{SUFFIX}")) for one in read_file(file)]
    return sorted(found, key=lambda one: (one.rank is not None, one.rank or 0))
