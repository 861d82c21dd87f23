"""What goes over the pipe between a run and its trial: the order in one message, then the phases, then the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from loaderbench.cuda_use import PeakMemory
from loaderbench.formats import StoredCopy
from loaderbench.freeing import Freeing
from loaderbench.recorder import Measurement
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import BatchTimes, CopySpeed, LoaderInside, PlannedTrial
from loaderbench.suite import Suite


@dataclass(frozen=True)
class TrialOrder:
    """All that a trial's process needs. `consumer` is a resolved kind; `samples` the files of an image folder.

    `in_time_slices`: after its steady state it takes batches in time slices, between those of other trials.
    `patience_s`: a trial that makes no progress for so long is ended; `None` waits until the time limit of the suite.
    `freeing` is what a trial of that role makes free. `copy` holds the files in the format that the trial reads.
    """

    planned: PlannedTrial
    suite: Suite
    suite_folder: Path
    samples: tuple[tuple[str, int], ...]
    consumer: str
    log: Path
    in_time_slices: bool = False
    patience_s: float | None = None
    freeing: Freeing | None = None
    copy: StoredCopy | None = None

    def lasting(self, seconds: float) -> TrialOrder:
        """The same order with another length of the steady state."""
        measure = self.suite.measure.model_copy(update={"seconds": seconds})
        return replace(self, suite=self.suite.model_copy(update={"measure": measure}))


BUILDING = "building the dataset"
"""The phase whose length says nothing of a hang: another value of an axis may index or cache a whole dataset."""


@dataclass(frozen=True)
class Phase:
    """What the trial does from now on."""

    name: str


@dataclass(frozen=True)
class Progress:
    """The trial took further batches since it last said so."""


@dataclass(frozen=True)
class Result:
    """The trial's measurement; the trial's processes still live and wait for leave to end.

    `worker_pids` are those of the loader's processes, `loading_threads` the kernel's numbers of threads that load.
    `can_be_stopped`: all of them can be stopped and continued, and others be measured meanwhile. `batches` are some of
    a sweep's trial, with moments of the monotonic clock. `cuda_devices` are those that its process uses, in CUDA's
    numbering, `cuda_memory` what it held of them at most. `consumer_note` says what was unusual about consuming them.
    `copy_speed` is that of a replay from the host.
    `computed_in` is the type that a training step computed in; empty where none did.

    Of a rank, `steps` say when its last steps began and ended, and `first_batch` is a fingerprint of its first batch,
    unless the dataset was divided among the ranks. `ranks` are the results of all ranks of a trial that has some, and
    `slowest_rank` is the place of one of them.
    """

    measurement: Measurement
    recorder_s_per_batch: float
    samples_per_epoch: int | None
    inside: LoaderInside
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
    """The loader has no more batches, though the trial had a time slice left."""


@dataclass(frozen=True)
class Raised:
    """The trial raised; the text is the exception's type and message. A `Clue` follows. `rank` is the one that did."""

    text: str
    rank: int | None = None


@dataclass(frozen=True)
class RankEnded:
    """A rank of the trial ended before it was measured."""

    rank: int
    exit_code: int


@dataclass(frozen=True)
class Clue:
    """What the trial's objects say of what it raised, in a sentence; empty where they say nothing."""

    text: str


GO_ON = "go on"
"""What the run sends when the trial may take batches until it gets leave; it is stopped between its time slices."""

LEAVE = "leave"
"""What the run sends when the trial may end."""

Message = Phase | Progress | Result | Ended | Raised | RankEnded | Clue
