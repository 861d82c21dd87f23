"""Files of formats that a run can write by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """One row per trial."""
    run.to_dataframe().to_parquet(out, index=False)
    return out


def perfetto(run: Run, out: str, trial: str | None = None) -> str:
    """A trace of one trial."""
    run.to_perfetto(out, trial)
    return out


def speedscope(run: Run, out: str) -> str:
    """The stacks of the threads that load."""
    run.to_speedscope(out)
    return out
