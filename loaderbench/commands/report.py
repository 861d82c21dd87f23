"""`loaderbench report`: redraw the page of a saved run and apply today's rules to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loaderbench.commands.options import RunPlace


def report(
    run: RunPlace,
    out: Annotated[Path | None, typer.Option(help="The page; default report.html beside run.json.")] = None,
) -> None:
    """Redraw the page and run the rules again from a saved run; measures nothing."""
    from loaderbench.conclusion import conclude_again
    from loaderbench.errors import UsageError
    from loaderbench.result import Run, load
    from loaderbench.store import read_timeline

    saved = load(run)
    page = out or (run if run.is_dir() else run.parent) / "report.html"
    try:
        Run(conclude_again(saved.record), read_timeline(run)).to_html(page)
    except OSError as error:
        raise UsageError(f"{page}: cannot be written to: {error.strerror or error}") from None
    print(page)
