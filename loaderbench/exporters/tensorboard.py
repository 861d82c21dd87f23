"""TensorBoard: a run for each configuration with its rounds and axes, heat maps as images, and the report as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaderbench.errors import UsageError
from loaderbench.exporters.exporter import Exporter

if TYPE_CHECKING:
    from loaderbench.exporters.table import Row
    from loaderbench.result import Run


def _write(run: Run, out: str) -> str:
    import numpy as np

    from loaderbench.exporters.table import rows
    from loaderbench.report.heat_map_picture import heat_map_pictures

    writer_of, session_of = _library()
    place, found = Path(out), rows(run.record)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(f"--out {out}: exists and is not an empty folder; choose a new one")
    with writer_of(str(place / "report")) as writer:
        writer.add_text("report", run.to_markdown())
        for metric, picture in heat_map_pictures(run.document):
            writer.add_image(f"heat map/{metric.label}", np.asarray(picture), dataformats="HWC")
        writer.file_writer.add_summary(_experiment(found, session_of))
    for row in found:
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
    """The columns of the table of hyperparameters: every axis, and every metric that a configuration has."""
    axes = {axis: value for row in found for axis, value in row.config.items() if value is not None}
    return session_of(axes, {name: 0.0 for row in found for name in row.numbers})[0]


def _library() -> tuple[Any, Any]:
    """The writer of event files, and what makes summaries of hyperparameters: torch's, or tensorboardX's."""
    try:
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams
    except ImportError:  # torch has the writer, but it needs `tensorboard`
        from tensorboardX import SummaryWriter
        from tensorboardX.summary import hparams
    return SummaryWriter, hparams


EXPORTER = Exporter(
    _write,
    extra="tensorboard",
    libraries=("tensorboard", "tensorboardX"),
    next_step="open it with: tensorboard --logdir {out}",
)
