"""Weights & Biases: offline runs in a folder, one with the report and tables, and one for each configuration.

Live: an offline run for each loader.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaderbench.exporters.exporter import Exporter, LivePoint

if TYPE_CHECKING:
    from loaderbench.exporters.table import Row
    from loaderbench.result import Run

_LONGEST_NAME = 128  # characters in the name of a run, group or project


def _write(run: Run, out: str) -> str:
    from loaderbench.exporters.files import text_where_mixed, trials_of
    from loaderbench.exporters.table import facts, in_a_path, rows, run_name, summary
    from loaderbench.report.heat_map_picture import heat_map_pictures

    wandb = _library(out)
    record, all_rows = run.record, rows(run.record)
    of = _Group(out, project=in_a_path(record.name), name=run_name(record))
    with _offline(of, job="run", name=of.name, config=facts(record), notes=str(record.verdict)) as own:
        images = {
            f"heat map/{metric.label}": wandb.Image(picture) for metric, picture in heat_map_pictures(run.document)
        }
        trials = wandb.Table(dataframe=text_where_mixed(trials_of(run)))
        own.log({"report": wandb.Html(run.to_html()), "configurations": _table(all_rows), "trials": trials, **images})
        own.summary.update(summary(record))
    for row in all_rows:
        with _offline(of, job="configuration", name=row.name, config=row.config) as own:
            for one in row.rounds:
                own.log({f"rounds/{name}": value for name, value in one.numbers.items()}, step=one.number)
            own.summary.update(row.numbers)
    wandb.teardown()  # waits until the wandb service has written everything
    return out


def _library(out: str) -> Any:
    """Create the folder, and import wandb."""
    os.environ["WANDB_ERROR_REPORTING"] = "false"  # turn off error reports to the vendor
    import wandb

    Path(out).mkdir(parents=True, exist_ok=True)
    return wandb


@dataclass(frozen=True)
class _Group:
    """A group of related runs and its folder."""

    folder: str
    project: str
    name: str


def _offline(
    of: _Group, *, job: str, name: str, config: Mapping[str, Any], notes: str = ""
) -> AbstractContextManager[Any]:
    """Start an offline run, which stays in the folder until the user syncs it.

    It records nothing about this process.
    """
    import wandb

    project, group, name = (text[:_LONGEST_NAME] for text in (of.project, of.name, name))
    settings = wandb.Settings(
        console="off", silent=True, disable_git=True, disable_code=True, save_code=False,
        x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True, x_save_requirements=False,
    )  # fmt: skip
    started: AbstractContextManager[Any] = wandb.init(
        project=project, group=group, job_type=job, name=name, notes=notes, config=dict(config), dir=of.folder,
        mode="offline", settings=settings, id=os.urandom(4).hex(), reinit="create_new",
    )  # fmt: skip
    return started


def _table(found: list[Row]) -> Any:
    """A table of the configurations with their axes and metrics."""
    import wandb

    from loaderbench.exporters.table import of_one_type

    axes = dict.fromkeys(axis for row in found for axis in row.config)
    numbers = dict.fromkeys(name for row in found for name in row.numbers)
    values = [of_one_type([row.config.get(axis) for row in found]) for axis in axes]
    data = [
        [*(column[place] for column in values), *map(row.numbers.get, numbers), row.is_best]
        for place, row in enumerate(found)
    ]
    return wandb.Table(columns=[*axes, *numbers, "is_best"], data=data)


class _LiveRuns:
    """A run for each loader, created at the loader's first point."""

    def __init__(self, out: str, script: str, run: str) -> None:
        from loaderbench.exporters.table import in_a_path

        self._library = _library(out)
        self._of = _Group(out, project=in_a_path(script), name=run)
        self._runs: dict[str, Any] = {}

    def write(self, points: Sequence[LivePoint]) -> None:
        """Add a step to the run of each loader."""
        for point in points:
            if point.series not in self._runs:
                self._runs[point.series] = _offline(self._of, job="loader", name=point.series, config={})
            self._runs[point.series].log(dict(point.numbers), step=point.batches)

    def close(self) -> None:
        """Finish all runs."""
        for run in self._runs.values():
            run.finish()
        self._library.teardown()  # waits until the wandb service has written everything


EXPORTER = Exporter(
    _write,
    package="wandb",
    libraries=("wandb",),
    next_step="upload it with: wandb sync {out}/wandb/offline-run-*",
    live=_LiveRuns,
)
