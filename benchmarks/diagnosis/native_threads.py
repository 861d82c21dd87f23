"""A library works in native threads while the worker's own thread waits for it: Arrow, reading Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from torch.utils.data import DataLoader, Dataset

from benchmarks.diagnosis.data import ROW_GROUPS, parquet_file
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

_DRAW = Draws(20261128)


class RowGroups(Dataset[int]):
    """Each sample is one row of a row group, and reads all of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: Any = None

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> int:
        if self.file is None:
            self.file = pq.ParquetFile(self.path)
        group = self.file.read_row_group(index % ROW_GROUPS)
        return int(group.column(0)[index % group.num_rows].as_py())


def row_groups(*, rows: int, columns: int, batch: int, step_ms: float) -> Loop:
    dataset = RowGroups(parquet_file(rows, columns))
    return Loop(lambda: DataLoader(dataset, batch, num_workers=1), device(step_ms))


def _drawn(number: int) -> Scenario:
    arguments = {
        "rows": _DRAW.randint(20_000, 120_000),
        "columns": _DRAW.randint(1, 4),
        "batch": _DRAW.choice([2, 4, 8]),
        "step_ms": _DRAW.ms(1, 4),
    }
    why = "One worker reads {rows:,} rows of {columns} columns for a sample, in threads of Arrow.".format(**arguments)
    words = because_of("sample read", "workers cpu")
    return Scenario(
        f"native_threads_drawn_{number}", why, row_groups, arguments, words, {"cheaper_sample": {"rows": 100}}
    )


SCENARIOS = tuple(map(_drawn, range(6)))
