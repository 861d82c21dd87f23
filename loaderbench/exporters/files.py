"""Exporters to files that need no tracker's library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loaderbench.errors import MissingError

if TYPE_CHECKING:
    import pandas as pd

    from loaderbench.result import Run


def calibration(run: Run, out: str) -> str:
    """Write step times by batch size."""
    run.to_calibration(out)
    return out


def csv(run: Run, out: str) -> str:
    """Write one row per trial of any role, as text, with axis values as in the suite. Raises `MissingError`."""
    from loaderbench.records.words import axis_text

    table, trials = trials_of(run), run.record.trials
    for axis in {axis: None for trial in trials for axis in trial.config}:
        texts = [axis_text(trial.config, axis) for trial in trials]
        table[f"axis_{axis}" if f"axis_{axis}" in table else axis] = texts
    try:
        table.to_csv(out, index=False)
    except ImportError as error:  # for the compression that the file extension implies
        raise MissingError(f"--out {out}: {str(error).splitlines()[0]}") from None
    return out


def parquet(run: Run, out: str) -> str:
    """Write one row per trial of any role. An axis with values of several types becomes text."""
    from loaderbench.store.parquet import parquet as pyarrow

    pyarrow()  # raises a one-line error if pyarrow is missing
    text_where_mixed(trials_of(run)).to_parquet(out, index=False)
    return out


def trials_of(run: Run) -> pd.DataFrame:
    """One row per trial, of every role and of both versions."""
    from loaderbench.records.metrics import METRICS
    from loaderbench.report.metrics import meant_in
    from loaderbench.store import trials_frame

    table, meant = trials_frame(run.record.trials), meant_in(run.record, METRICS)
    return table.drop(columns=[metric.id for metric in METRICS if metric not in meant and metric.id in table])


def text_where_mixed(table: pd.DataFrame) -> pd.DataFrame:
    """Convert each column with values of several types to text, in place, and return the table."""
    from loaderbench.records import format_scalar

    for name in [name for name in table if table[name].dropna().map(type).nunique() > 1]:
        table[name] = table[name].map(format_scalar, na_action="ignore")
    return table


def perfetto(run: Run, out: str, trial: str | None = None) -> str:
    """Write a trace of one trial."""
    run.to_perfetto(out, trial)
    return out


def speedscope(run: Run, out: str) -> str:
    """Write the stack samples of the threads that load."""
    run.to_speedscope(out)
    return out
