"""`loaderbench export`: hand a run to another tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.options import RunPlace
from loaderbench.commands.outputs import writing
from loaderbench.errors import UsageError

if TYPE_CHECKING:
    from loaderbench.result import Run


def _csv(run: Run, out: Path, _: str | None) -> None:
    run.to_dataframe().to_csv(out, index=False)


def _parquet(run: Run, out: Path, _: str | None) -> None:
    run.to_dataframe().to_parquet(out, index=False)


def _perfetto(run: Run, out: Path, trial: str | None) -> None:
    run.to_perfetto(out, trial)


def _speedscope(run: Run, out: Path, _: str | None) -> None:
    run.to_speedscope(out)


def _calibration(run: Run, out: Path, _: str | None) -> None:
    run.to_calibration(out)


TARGETS: Mapping[str, Callable[[Run, Path, str | None], None]] = {
    "calibration": _calibration,
    "csv": _csv,
    "parquet": _parquet,
    "perfetto": _perfetto,
    "speedscope": _speedscope,
}
"""Formats by name. Each writes one file, perfetto that of the trial named; may raise `OSError` and `UsageError`."""


def export(
    run: RunPlace,
    to: Annotated[str, typer.Option("--to", metavar="TOOL", help=f"One of {', '.join(TARGETS)}.")],
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="File to write.")],
    trial: Annotated[str | None, typer.Option(help="Trial to draw, for perfetto.")] = None,
) -> None:
    """Hand a saved run to another tool: a table of trials, a trace of one, stacks, or step times as a calibration."""
    from loaderbench.result import load_concluded

    if to not in TARGETS:
        raise UsageError(f"--to {to}: unknown target; expected one of {', '.join(TARGETS)}")
    if trial is not None and to != "perfetto":
        raise UsageError(f"--trial {trial}: has no effect with --to {to}; it selects the trial of --to perfetto")
    saved = load_concluded(run)
    with writing(f"--out {out}"):
        TARGETS[to](saved, out, trial)
    print(out)
