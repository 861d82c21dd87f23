"""Where a run can be handed to: one file a tool, and a line in the registry.

Nothing here imports a tool's library, nor anything heavy of our own, before an export: `--help` lists the names.
"""

from __future__ import annotations

from collections.abc import Mapping

from loaderbench.exporters import files, mlflow, prometheus, tensorboard, visdom, wandb
from loaderbench.exporters.exporter import Exporter

EXPORTERS: Mapping[str, Exporter] = {
    "calibration": Exporter(files.calibration),
    "csv": Exporter(files.csv),
    "mlflow": mlflow.EXPORTER,
    "parquet": Exporter(files.parquet),
    "perfetto": Exporter(files.perfetto, options=("trial",)),
    "prometheus": prometheus.EXPORTER,
    "speedscope": Exporter(files.speedscope),
    "tensorboard": tensorboard.EXPORTER,
    "visdom": visdom.EXPORTER,
    "wandb": wandb.EXPORTER,
}
"""By the name that `--to` takes."""
