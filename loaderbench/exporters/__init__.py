"""Exporters: one module per tool, and a registry of them.

To keep `--help` fast, which lists the names, no module imports a tool's library or a heavy module of this package
before an export.
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
"""Exporters by their name in `--to`."""
