"""The messages on the pipe between a run and its trial: one order, then phases and progress, then the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loaderbench.cuda_use import PeakMemory
from loaderbench.formats import StoredCopy
from loaderbench.freeing import Freeing
from loaderbench.recorder import Measurement
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import BatchTimes, CopySpeed, Epochs, LoaderInside, PlannedTrial
from loaderbench.suite import Suite


@dataclass(frozen=True)
class TrialOrder:
    """All that a trial's process needs. `consumer` is a resolved kind; `samples` are the files of an image folder.

    `in_time_slices`: after its steady state, the trial takes batches in time slices, interleaved with other trials.
    `compares_rates`: the trial is for a gain or another version, which a demand on samples/s would hide.
    `patience_s`: a trial without progress for this many seconds is ended; `None` waits until the suite's time limit.
    `freeing` is what a free-stage trial makes free. `copy` holds the files in the format that the trial reads.
    """

    planned: PlannedTrial
    suite: Suite
    suite_folder: Path
    samples: tuple[tuple[str, int], ...]
    consumer: str
    log: Path
    in_time_slices: bool = False
    compares_rates: bool = False
    patience_s: float | None = None
    freeing: Freeing | None = None
    copy: StoredCopy | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the loader and the dataset: those that the suite fixes, and the configuration."""
        return {**self.suite.loader, **self.planned.config}

    def lasting(self, seconds: float) -> TrialOrder:
        """The order with another length of the steady state."""
        measure = self.suite.measure.model_copy(update={"seconds": seconds})
        return replace(self, suite=self.suite.model_copy(update={"measure": measure}))


BUILDING = "building the dataset"
"""The phase whose duration does not indicate a hang: some configurations index or cache a complete dataset."""


@dataclass(frozen=True)
class Phase:
    """The trial enters this phase."""

    name: str


@dataclass(frozen=True)
class Progress:
    """The trial has taken more batches since the last message."""


@dataclass(frozen=True)
class Result:
    """The trial's measurement; its processes are still alive and wait for leave to end.

    `worker_pids` are the loader's processes, `loading_threads` the native thread IDs of threads that load.
    `can_be_stopped`: all of them can be stopped and continued while other trials are measured. `batches` are some
    batches of a sweep trial, with times of the monotonic clock. `cuda_devices` are the devices that the process uses,
    by CUDA index, and `cuda_memory` their peak memory. `epochs` is `None` if no epoch has ended. `consumer_note` says
    what was unusual about consuming the batches. `copy_speed` is measured in a replay from the host. `computed_in` is
    the data type of the training step; empty without one.

    For a rank, `steps` are the start and end times of its last steps, and `first_batch` is a fingerprint of its first
    batch, unless the dataset was divided among the ranks. `ranks` are the results of all ranks of a trial with ranks,
    and `slowest_rank` is an index into them.
    """

    measurement: Measurement
    recorder_s_per_batch: float
    samples_per_epoch: int | None
    inside: LoaderInside
    epochs: Epochs | None = None
    worker_pids: tuple[int, ...] = ()
    loading_threads: tuple[int, ...] = ()
    can_be_stopped: bool = False
    batches: tuple[BatchTimes, ...] = ()
    cuda_devices: tuple[int, ...] = ()
    cuda_memory: tuple[PeakMemory, ...] = ()
    consumer_note: str = ""
    copy_speed: CopySpeed | None = None
    computed_in: str = ""
    steps: StepTimes | None = None
    first_batch: str = ""
    ranks: tuple[Result, ...] = ()
    slowest_rank: int | None = None


@dataclass(frozen=True)
class Ended:
    """The loader ran out of batches before the trial's time slices were over."""


@dataclass(frozen=True)
class Raised:
    """The trial raised; `text` is the exception's type and message. A `Clue` follows. `rank` is the one that raised."""

    text: str
    rank: int | None = None


@dataclass(frozen=True)
class RankEnded:
    """A rank of the trial ended before it was measured."""

    rank: int
    exit_code: int


@dataclass(frozen=True)
class Clue:
    """A sentence in which the trial explains its exception; empty if nothing is known."""

    text: str


GO_ON = "go on"
"""The message that lets the trial take batches until it gets leave to end; it is stopped between its time slices."""

LEAVE = "leave"
"""The message that lets the trial end."""

Message = Phase | Progress | Result | Ended | Raised | RankEnded | Clue
