"""`loaderbench show`: print the verdict and table of a saved run."""

from __future__ import annotations

from typing import Annotated

import typer

from loaderbench.commands.options import RunPlace
from loaderbench.commands.outputs import VERBOSE, MarkdownFile, Outputs, PerfettoFile, load_to_show, make_console


def show(
    run: RunPlace,
    md_file: MarkdownFile = None,
    perfetto: PerfettoFile = None,
    verbose: Annotated[
        bool, typer.Option(VERBOSE, "--verbose", help="Add throughput limits, isolation runs and notes.")
    ] = False,
) -> None:
    """Print the verdict, fixes and best configs of a saved run."""
    from loaderbench.report.terminal import print_summary
    from loaderbench.store import PAGE_FILE, folder_of

    saved = load_to_show(run)
    outputs = Outputs(md=md_file, perfetto=perfetto)
    outputs.check(runs=[run])
    outputs.write_perfetto(saved)
    outputs.write_texts(saved)
    if outputs.to_stdout:
        return
    page = folder_of(run) / PAGE_FILE
    path = page if page.is_file() else None
    print_summary(saved.document, make_console(), report_path=path, verbose=verbose, verbose_flag=VERBOSE)
