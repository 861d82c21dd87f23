"""The configurations by rank, as a table: only columns that hold something."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from loaderbench.records import Configuration, RunRecord
from loaderbench.report import axes, words
from loaderbench.report.parts import Column, Row, Table
from loaderbench.report.readings import RANKING_METRICS, Metric, with_data
from loaderbench.report.trials import MOST_ROWS, axis_column, own_columns, value_cell


def ranking(run: RunRecord, choosable: Container[int] = ()) -> Table | None:
    """All configurations, the fastest first; `None` where none was measured. `choosable`: by number."""
    if not any(c.samples_per_s for c in run.configurations):
        return None
    metrics = with_data(RANKING_METRICS, run.configurations)
    names = own_columns(run)
    columns = (
        *(axis_column(axis) for axis in names),
        *(() if names else (Column("Configuration"),)),
        *(Column(m.label, numeric=True, title=m.hint) for m in metrics),
    )
    ranked = sorted(enumerate(run.configurations), key=lambda found: (found[1].rank is None, found[1].rank or 0))
    rows = tuple(replace(_ranked(run, c, names, metrics), choice=i if i in choosable else None) for i, c in ranked)
    return Table("All configurations, the fastest first", columns, rows[:MOST_ROWS])


def _ranked(run: RunRecord, found: Configuration, names: list[str], metrics: tuple[Metric, ...]) -> Row:
    config = [value_cell(found.config, axis) for axis in names]
    best = run.best is not None and axes.same(run.best.config, found.config)
    mark = "best" if best else "tied" if run.best is not None and found.tied_with_best else ""
    cells = config or [words.configuration(found.config)]
    return Row((*cells, *(m.read(found, run.environment) for m in metrics)), mark=mark)
