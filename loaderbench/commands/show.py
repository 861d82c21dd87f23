"""`loaderbench show`: verdict and table of a saved run, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from loaderbench.commands.options import RunPlace
from loaderbench.commands.outputs import STDOUT, MarkdownFile, PerfettoFile, make_console, write_output, write_perfetto


def show(
    run: RunPlace,
    md_file: MarkdownFile = None,
    perfetto: PerfettoFile = None,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Add limits, isolation runs and notes.")] = False,
) -> None:
    """Print the verdict, fixes and best configurations of a saved run."""
    from loaderbench.conclusion import conclude
    from loaderbench.report.terminal import print_summary
    from loaderbench.result import Run, load

    loaded = load(run)
    saved = Run(conclude(loaded.record), loaded.readings)
    if perfetto is not None:
        write_perfetto("--perfetto", perfetto, saved)
    if md_file is not None:
        write_output("--md", md_file, saved.to_markdown())
    if md_file == STDOUT:
        return
    page = (run if run.is_dir() else run.parent) / "report.html"
    print_summary(saved.document, make_console(), report_path=page if page.is_file() else None, verbose=verbose)
