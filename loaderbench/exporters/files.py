"""Files of formats that a run can write by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loaderbench.errors import MissingError
from loaderbench.records import format_scalar

if TYPE_CHECKING:
    import pandas as pd

    from loaderbench.result import Run


def calibration(run: Run, out: str) -> str:
    """Step times by batch size."""
    run.to_calibration(out)
    return out


def csv(run: Run, out: str) -> str:
    """One row per trial of any role, as text; the value of an axis is as in the suite. Raises `MissingError`."""
    table, trials = trials_of(run), run.record.trials
    for axis in {axis: None for trial in trials for axis in trial.config}:
        texts = [format_scalar(trial.config[axis]) if axis in trial.config else "" for trial in trials]
        table[f"axis_{axis}" if f"axis_{axis}" in table else axis] = texts
    try:
        table.to_csv(out, index=False)
    except ImportError as error:  # of a compression that the name of the file asks for
        raise MissingError(f"--out {out}: {str(error).splitlines()[0]}") from None
    return out


def parquet(run: Run, out: str) -> str:
    """One row per trial of any role; an axis with values of several types is text."""
    from loaderbench.store.parquet import parquet as pyarrow

    pyarrow()  # raises in one line where it is not there
    text_where_mixed(trials_of(run)).to_parquet(out, index=False)
    return out


def trials_of(run: Run) -> pd.DataFrame:
    """One row per trial, of any role and of both versions."""
    from loaderbench.records.metrics import METRICS
    from loaderbench.report.metrics import meant_in
    from loaderbench.store import trials_frame

    table, meant = trials_frame(run.record.trials), meant_in(run.record, METRICS)
    return table.drop(columns=[metric.id for metric in METRICS if metric not in meant and metric.id in table])


def text_where_mixed(table: pd.DataFrame) -> pd.DataFrame:
    """The table, with text in each column that has values of several types."""
    for name in [name for name in table if table[name].dropna().map(type).nunique() > 1]:
        table[name] = table[name].map(format_scalar, na_action="ignore")
    return table


def perfetto(run: Run, out: str, trial: str | None = None) -> str:
    """A trace of one trial."""
    run.to_perfetto(out, trial)
    return out


def speedscope(run: Run, out: str) -> str:
    """The stacks of the threads that load."""
    run.to_speedscope(out)
    return out
