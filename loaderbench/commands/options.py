"""Arguments and options shared by several commands."""

from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from loaderbench.errors import UsageError


def folder(text: str) -> Path:
    """Parser of `--data`. Raises `UsageError` for an empty string, which a `Path` would make the current folder."""
    if not text:
        raise UsageError("--data: expected a folder, got an empty string")
    return Path(text)


SuiteFile = Annotated[Path, typer.Argument(metavar="SUITE", help="Suite file, e.g. suites/images.yaml.")]
RunPlace = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, or its run.json.")]
Data = Annotated[Path | None, typer.Option(parser=folder, metavar="DIR", help="Image folder; replaces the suite's.")]
Axes = Annotated[
    list[str] | None,
    typer.Option("-P", metavar="AXIS=V1,V2", help="Set or add an axis: -P num_workers=0,2,4."),
]
Strategy = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="grid: all configs in all rounds. adaptive: drops slower ones."),
]
Rounds = Annotated[int | None, typer.Option(metavar="N", help="Repeats per config; default the suite's.")]
Seconds = Annotated[
    float | None, typer.Option(metavar="S", help="Minimum steady state per trial, in seconds; default the suite's.")
]
Budget = Annotated[str | None, typer.Option(metavar="TIME", help="Time limit: seconds, or e.g. 90s, 10m, 1h30m.")]


def finite(value: float | None) -> float | None:
    """Callback of an option. Raises `typer.BadParameter` for `nan` and infinity, which a range need not exclude."""
    if value is not None and not isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


class ProgressKind(str, Enum):
    """Kinds of progress display. `auto` is a bar on a terminal and plain lines elsewhere."""

    auto = "auto"
    bar = "bar"
    plain = "plain"
    none = "none"


ShowProgress = Annotated[ProgressKind, typer.Option("--progress", help="Progress display on stderr.")]
HideProgress = Annotated[bool, typer.Option("-q", "--quiet", help="Hide progress.")]
OpenPage = Annotated[bool, typer.Option("--open", help="Open the report in a browser.")]
