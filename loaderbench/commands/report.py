"""`loaderbench report`: redraw the page of a saved run and apply today's rules to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loaderbench.commands.options import RunPlace
from loaderbench.commands.outputs import STDOUT, MarkdownFile, write_output


def report(
    run: RunPlace,
    out: Annotated[Path | None, typer.Option(help="The page; default report.html beside run.json.")] = None,
    md_file: MarkdownFile = None,
) -> None:
    """Redraw the page and run the rules again from a saved run; measures nothing."""
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
        raise UsageError(f"{page}: cannot be written to: {error.strerror or error}") from None
    update_index(run if run.is_dir() else run.parent)
    if md_file is not None:
        write_output("--md", md_file, again.to_markdown())
    if md_file != STDOUT:
        print(page)
