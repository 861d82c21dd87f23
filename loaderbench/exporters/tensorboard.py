"""TensorBoard: a run for each configuration with its rounds and axes, heat maps as images, and the report as text.

Live: a run for each loader, with a point each time the recording is saved.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaderbench.errors import UsageError
from loaderbench.exporters.exporter import Exporter, LivePoint
from loaderbench.new_files import numbered

if TYPE_CHECKING:
    from loaderbench.exporters.table import Row
    from loaderbench.result import Run

_MOST_RUNS = 999  # of one name in a folder


def _write(run: Run, out: str) -> str:
    import numpy as np

    from loaderbench.exporters.table import rows, summary
    from loaderbench.report.heat_map_picture import heat_map_pictures

    writer_of, session_of = _library()
    place, all_rows = Path(out), rows(run.record)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(f"--out {out}: exists and is not an empty folder; choose a new one")
    with writer_of(str(place / "report")) as writer:
        writer.add_text("report", run.to_markdown())
        for name, value in summary(run.record).items():
            writer.add_scalar(name, value)
        for metric, picture in heat_map_pictures(run.document):
            writer.add_image(f"heat map/{metric.label}", np.asarray(picture), dataformats="HWC")
        writer.file_writer.add_summary(_experiment(all_rows, session_of))
    for row in all_rows:
        with writer_of(str(place / row.name)) as writer:
            _, start, end = session_of(row.config, row.numbers)
            writer.file_writer.add_summary(start)
            writer.file_writer.add_summary(end)
            for name, value in row.numbers.items():
                writer.add_scalar(name, value)
            for one in row.rounds:
                for name, value in one.numbers.items():
                    writer.add_scalar(f"rounds/{name}", value, one.number)
    return out


def _experiment(found: Sequence[Row], session_of: Any) -> Any:
    """The hparams experiment: every axis, and every metric that a configuration has."""
    axes = {axis: value for row in found for axis, value in row.config.items() if value is not None}
    return session_of(axes, {name: 0.0 for row in found for name in row.numbers})[0]


def _library() -> tuple[Any, Any]:
    """The event writer and the `hparams` function, from torch or tensorboardX."""
    try:
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams
    except ImportError:  # torch's writer needs the package `tensorboard`
        from tensorboardX import SummaryWriter
        from tensorboardX.summary import hparams
    return SummaryWriter, hparams


class _LiveRuns:
    """A folder with a run for each loader, created at the loader's first point."""

    def __init__(self, out: str, run: str) -> None:
        _event_library()
        self._folder = _new_folder(Path(out) / run)
        self._files: dict[str, _EventFile] = {}

    def write(self, points: Sequence[LivePoint]) -> None:
        """Add a step to the run of each loader."""
        for point in points:
            if point.series not in self._files:
                self._files[point.series] = _EventFile(self._folder / point.series)
            self._files[point.series].add(point.numbers, point.batches)

    def close(self) -> None:
        """Close all files, and remove the folder if it is empty."""
        for file in self._files.values():
            file.close()
        with suppress(OSError):
            self._folder.rmdir()


class _EventFile:
    """An event file that is flushed when `add` returns. `add` raises `OSError` if writing fails.

    The writers of both libraries use a thread, which prints a traceback if the disk is full. Torch's writer also needs
    torch, a second import alongside the script.
    """

    def __init__(self, folder: Path) -> None:
        self._event, self._summary, writer_of = _event_library()
        folder.mkdir()
        self._writer = writer_of(folder / f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}.{os.getpid()}")
        self._write(file_version="brain.Event:2")

    def add(self, numbers: Mapping[str, float], step: int) -> None:
        """Write all metrics of a step."""
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        self._write(step=step, summary=self._summary(value=values))

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _write(self, **content: Any) -> None:
        self._writer.write(self._event(wall_time=time.time(), **content).SerializeToString())
        self._writer.flush()


def _event_library() -> tuple[Any, Any, Any]:
    """The event class, the summary class and a function that opens an event file, from tensorboard or tensorboardX."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary
        from tensorboardX.record_writer import RecordWriter

        return Event, Summary, lambda file: RecordWriter(str(file))
    return Event, Summary, lambda file: RecordWriter(file.open("wb"))


def _new_folder(wanted: Path) -> Path:
    """Create a folder with this name, or with a number appended if it exists.

    Two runs in one folder would share a curve.
    """
    wanted.parent.mkdir(parents=True, exist_ok=True)
    for place in map(wanted.with_name, islice(numbered(wanted.name), _MOST_RUNS)):
        with suppress(FileExistsError):
            place.mkdir()
            return place
    raise UsageError(f"{wanted.parent}: has too many runs of this name; choose another folder")


EXPORTER = Exporter(
    _write,
    live=lambda out, _, run: _LiveRuns(out, run),
    package="tensorboard",
    libraries=("tensorboard", "tensorboardX"),
    next_step="open it with: tensorboard --logdir {out}",
)
