"""Weights & Biases: offline runs in a folder, one with report and tables, and one for each configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaderbench.exporters.exporter import Exporter

if TYPE_CHECKING:
    from loaderbench.exporters.table import Row
    from loaderbench.result import Run


def _write(run: Run, out: str) -> str:
    from loaderbench.exporters.table import facts, rows, run_name, summary
    from loaderbench.report.heat_map_picture import heat_map_pictures

    os.environ["WANDB_ERROR_REPORTING"] = "false"  # the library would report its own errors to its makers
    import wandb

    Path(out).mkdir(parents=True, exist_ok=True)
    record, found = run.record, rows(run.record)
    with _offline(out, run, job="run", name=run_name(record), config=facts(record), notes=str(record.verdict)) as own:
        images = {
            f"heat map/{metric.label}": wandb.Image(picture) for metric, picture in heat_map_pictures(run.document)
        }
        trials = wandb.Table(dataframe=run.to_dataframe())
        own.log({"report": wandb.Html(run.to_html()), "configurations": _table(found), "trials": trials, **images})
        own.summary.update(summary(record))
    for row in found:
        with _offline(out, run, job="configuration", name=row.name, config=row.config) as own:
            for one in row.rounds:
                own.log({f"rounds/{name}": value for name, value in one.numbers.items()}, step=one.number)
            own.summary.update(row.numbers)
    wandb.teardown()  # waits until its service has written everything
    return out


def _offline(
    out: str, run: Run, *, job: str, name: str, config: Mapping[str, Any], notes: str = ""
) -> AbstractContextManager[Any]:
    """A run that stays in the folder until its owner syncs it. It records nothing of this process."""
    import wandb

    from loaderbench.exporters.table import in_a_path, run_name

    settings = wandb.Settings(
        console="off", silent=True, disable_git=True, disable_code=True, save_code=False,
        x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True, x_save_requirements=False,
    )  # fmt: skip
    started: AbstractContextManager[Any] = wandb.init(
        project=in_a_path(run.record.name), group=run_name(run.record), job_type=job, name=name, notes=notes,
        config=dict(config), dir=out, mode="offline", settings=settings,
    )  # fmt: skip
    return started


def _table(found: list[Row]) -> Any:
    """The configurations with their axes and numbers."""
    import wandb

    axes = dict.fromkeys(axis for row in found for axis in row.config)
    numbers = dict.fromkeys(name for row in found for name in row.numbers)
    data = [[*map(row.config.get, axes), *map(row.numbers.get, numbers), row.is_best] for row in found]
    return wandb.Table(columns=[*axes, *numbers, "is_best"], data=data)


EXPORTER = Exporter(
    _write, extra="wandb", libraries=("wandb",), next_step="upload it with: wandb sync {out}/wandb/offline-run-*"
)
