"""What a recorded process leaves for the command that started the script: one file per process."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loaderbench.new_files import write_whole
from loaderbench.profiler.other_loaders import waits_for_others
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Measured, Readings

MOST_LOADERS = 20
"""Limit on the loaders of a script that have a run folder of their own, such as one per client in federated training.

Once as many are recorded, another one is recorded together with an earlier one of the same lines and classes.
"""

SUFFIX = ".recording"
SENT = "sent"
"""A file in the same folder: the ranks of this machine sent their recordings to the machine named in it."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The epochs of one loader in one process.

    `rank` is the rank in a distributed training, else `None`. `steps` are the last steps, which are compared with those
    of other ranks; `None` if they were not timed. `ranks` is the number of ranks. `around_s` is the mean time of code
    around the loader per batch, which is part of the trial's data wait. `others_share` is the share of step time spent
    waiting for batches of other loaders. `has_ended`: the recording is complete.
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
        """The loader's name as a folder name, without the rank."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.name).strip("-.")[:60] or "loader"

    @property
    def took_s(self) -> float:
        """Seconds of all recorded batches. The loader with the most is the script's main one."""
        return self.measured.trials[0].steady_s or 0.0

    @property
    def waited_s(self) -> float:
        """Seconds that the loop waited for the batches."""
        return self.took_s * (self.measured.trials[0].data_wait_share or 0.0)

    @property
    def waits_for_others(self) -> bool:
        """Whether the loop waits for batches of other loaders rather than for its own."""
        return waits_for_others(self.others_share, self.measured.trials[0].data_wait_share)


def own_files(folder: Path) -> list[Path]:
    """The files of processes on this machine. A file is replaced whenever more is recorded."""
    return [file for file in sorted(folder.glob(f"*{SUFFIX}")) if file.stem.isdigit()]


def read_file(file: Path) -> list[Recording]:
    """The recordings of one process: its loaders in the order of their first epochs."""
    found: list[Recording] = pickle.loads(file.read_bytes())  # our own file: only this user can write to the folder
    return found


def write_recordings(folder: Path, found: Sequence[Recording], name: str = "") -> None:
    """Atomically write this process's file, or that of another process by its `name`."""
    write_whole(folder / f"{name or os.getpid()}{SUFFIX}", pickle.dumps(list(found)))


def read_recordings(folder: Path) -> list[Recording]:
    """All recordings in the folder, in the order of their ranks."""
    found = [one for file in sorted(folder.glob(f"*{SUFFIX}")) for one in read_file(file)]
    return sorted(found, key=lambda one: (one.rank is not None, one.rank or 0))
