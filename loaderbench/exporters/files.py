"""Files of formats that a run can write by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loaderbench.records import format_scalar

if TYPE_CHECKING:
    from loaderbench.result import Run


def calibration(run: Run, out: str) -> str:
    """Step times by batch size."""
    run.to_calibration(out)
    return out


def csv(run: Run, out: str) -> str:
    """One row per trial, as text."""
    run.to_dataframe().to_csv(out, index=False)
    return out


def parquet(run: Run, out: str) -> str:
    """One row per trial; an axis with values of several types is text."""
    from loaderbench.store.parquet import parquet as pyarrow

    pyarrow()  # raises in one line where it is not there
    table = run.to_dataframe()
    for name in [name for name in table if table[name].dropna().map(type).nunique() > 1]:
        table[name] = table[name].map(format_scalar, na_action="ignore")
    table.to_parquet(out, index=False)
    return out


def perfetto(run: Run, out: str, trial: str | None = None) -> str:
    """A trace of one trial."""
    run.to_perfetto(out, trial)
    return out


def speedscope(run: Run, out: str) -> str:
    """The stacks of the threads that load."""
    run.to_speedscope(out)
    return out
