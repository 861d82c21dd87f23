"""Whether the machine became slower or faster during the run: one fixed piece of work, timed beside each trial."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

import numpy as np

from loaderbench.records import RunRecord
from loaderbench.report import numbers
from loaderbench.report.parts import Column, Row, Table, Text
from loaderbench.report.parts_charts import DriftChart
from loaderbench.report.strips import min_max

_MOST = 600  # points


def drift(run: RunRecord) -> DriftChart | None:
    """The reference decode beside every trial, in the order of time."""
    began = numbers.moment(run.started_at)
    found = sorted(_decodes(run, began)) if began else []
    if len({at for at, _ in found}) < 2:
        return None
    times = [ms for _, ms in found]
    minutes, drawn = min_max((np.array([at for at, _ in found]), np.array(times)), _MOST)
    thinned = f" The fastest and slowest of each stretch of time are drawn, {len(drawn):,} of {len(times):,}."
    columns = tuple(Column(name, numeric=True) for name in ("Times", "Fastest, ms", "Median, ms", "Slowest, ms"))
    cells = (numbers.whole(len(times)), *(numbers.quantity(float(np.quantile(times, q))) for q in (0, 0.5, 1)))
    return DriftChart(
        tuple(round(at, 3) for at in minutes.tolist()),
        tuple(float(f"{ms:.4g}") for ms in drawn.tolist()),
        "One JPEG, decoded before and after each trial: on a still machine the points lie on one level."
        + (thinned if len(drawn) < len(times) else ""),
        Table("The reference decode", (Column("Work"), *columns), (Row((Text("decode of one JPEG"), *cells)),)),
    )


def _decodes(run: RunRecord, began: datetime) -> Iterator[tuple[float, float]]:
    for trial in run.sweep:
        started = numbers.moment(trial.started_at or "")
        if started is None:
            continue
        at = (started - began).total_seconds()
        times = ((0.0, trial.reference_decode_before_s), (trial.duration_s or 0.0, trial.reference_decode_after_s))
        for after_s, decode_s in times:
            if decode_s and math.isfinite(decode_s):
                yield (at + after_s) / 60, decode_s * 1e3
