"""`loaderbench report`: rebuild the report of a saved run with this version's rules."""

from __future__ import annotations

from typing import Annotated

import typer

from loaderbench.commands.options import RunPlace
from loaderbench.commands.outputs import MarkdownFile, Outputs, load_to_show, write_output


def report(
    run: RunPlace,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="HTML file; default report.html next to run.json; - is stdout.")
    ] = None,
    md_file: MarkdownFile = None,
) -> None:
    """Rebuild a saved run's report with this version's rules."""
    from loaderbench.report.index import update_index
    from loaderbench.store import PAGE_FILE, folder_of

    saved = load_to_show(run)
    page = out or str(folder_of(run) / PAGE_FILE)
    outputs = Outputs(md=md_file, page=page)
    outputs.check(runs=[run])
    write_output("--out", page, saved.to_html())
    update_index(folder_of(run))
    outputs.write_texts(saved)
    if not outputs.to_stdout:
        print(page)
