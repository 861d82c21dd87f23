"""`loaderbench export`: hand a run to another tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.options import RunPlace
from loaderbench.errors import UsageError

if TYPE_CHECKING:
    from loaderbench.result import Run


def _csv(run: Run, out: Path) -> None:
    run.to_dataframe().to_csv(out, index=False)


def _parquet(run: Run, out: Path) -> None:
    run.to_dataframe().to_parquet(out, index=False)


def _perfetto(run: Run, out: Path) -> None:
    run.to_perfetto(out)


TARGETS: Mapping[str, Callable[[Run, Path], None]] = {"csv": _csv, "parquet": _parquet, "perfetto": _perfetto}
"""What a run can be handed to, by name. Each writes one file, and may raise `OSError` and `UsageError`."""


def export(
    run: RunPlace,
    to: Annotated[str, typer.Option("--to", metavar="TOOL", help=f"One of {', '.join(TARGETS)}.")],
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="File to write.")],
    trial: Annotated[str | None, typer.Option(help="Trial to draw, for perfetto.")] = None,
) -> None:
    """Hand a saved run to another tool: its trials as a table, or one trial as a trace for ui.perfetto.dev."""
    from loaderbench.conclusion import conclude
    from loaderbench.result import Run, load

    if to not in TARGETS:
        raise UsageError(f"--to {to}: unknown target; expected one of {', '.join(TARGETS)}")
    if trial is not None and to != "perfetto":
        raise UsageError(f"--trial {trial}: has no effect with --to {to}; it selects the trial of --to perfetto")
    loaded = load(run)
    saved = Run(conclude(loaded.record), loaded.readings)
    try:
        if trial is None:
            TARGETS[to](saved, out)
        else:
            saved.to_perfetto(out, trial)
    except OSError as error:
        raise UsageError(f"--out {out}: cannot write: {error.strerror or error}") from None
    print(out)
