"""Watches all ranks of a running training for some seconds, and returns what was seen of each."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from loaderbench.attach.job import Training
from loaderbench.attach.measured import Seen
from loaderbench.attach.reading import read_stacks
from loaderbench.attach.stacks import StackRecorder
from loaderbench.attach.watch import JobWatch, TrainingWatch
from loaderbench.errors import Terminated
from loaderbench.monitors.machine import is_alive
from loaderbench.records.words import utc_now


def look_at(trainings: Sequence[Training], seconds: float) -> list[Seen]:
    """Watch all trainings at once. Returns those that wait most for data first.

    Ctrl-C or SIGTERM ends the watch early, and `stopped_by` is then the signal. A second Ctrl-C, while stacks are being
    collected, raises `KeyboardInterrupt`.
    """
    began_at, stopped_by = utc_now(), None
    job = JobWatch(trainings)
    with TemporaryDirectory(prefix="loaderbench-attach-") as folder:
        recorders = [StackRecorder(training.pid, seconds, Path(folder)) for training in trainings]
        try:
            job.look_for(seconds)
        except (KeyboardInterrupt, Terminated) as stop:
            stopped_by = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
            for recorder in recorders:
                recorder.stop()
        found = [
            _seen(watch, recorder, job.looked_s, began_at, stopped_by)
            for watch, recorder in zip(job.watches, recorders, strict=True)
        ]
    return sorted(found, key=lambda seen: -(seen.wait_share or 0.0))


def _seen(
    watch: TrainingWatch, recorder: StackRecorder, looked_s: float, began_at: str, stopped_by: int | None
) -> Seen:
    training, folder = watch.training, ""
    with suppress(OSError):
        folder = str(Path(f"/proc/{training.pid}/cwd").readlink())
    stacks = recorder.stacks().without(watch.idle_workers)
    looks = read_stacks(stacks, training.pid, watch.most_workers, folder)
    why = ""
    if stopped_by is not None:
        why = "interrupted"
    elif not is_alive(training.pid):
        why = f"the process ended after {looked_s:.0f} s"
    stopped = f"{why}; results until then are shown" if why else ""
    return Seen(watch, looks, looked_s, began_at, utc_now(), stopped, stopped_by)
