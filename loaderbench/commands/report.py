"""`loaderbench report`: rebuild the report of a saved run with the rules of this version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loaderbench.commands.options import RunPlace
from loaderbench.commands.outputs import STDOUT, MarkdownFile, write_output


def report(
    run: RunPlace,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="HTML file; default report.html next to run.json.")
    ] = None,
    md_file: MarkdownFile = None,
) -> None:
    """Rebuild a saved run's report with this version's rules."""
    from loaderbench.conclusion import conclude
    from loaderbench.errors import UsageError
    from loaderbench.report.index import update_index
    from loaderbench.result import Run, load
    from loaderbench.store import read_timeline

    saved = load(run)
    page = out or (run if run.is_dir() else run.parent) / "report.html"
    again = Run(conclude(saved.record), read_timeline(run))
    try:
        again.to_html(page)
    except OSError as error:
        raise UsageError(f"{page}: cannot write: {error.strerror or error}") from None
    update_index(run if run.is_dir() else run.parent)
    if md_file is not None:
        write_output("--md", md_file, again.to_markdown())
    if md_file != STDOUT:
        print(page)
