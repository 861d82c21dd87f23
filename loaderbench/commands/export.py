"""`loaderbench export`: export a run to another tool."""

from __future__ import annotations

from typing import Annotated

import typer

from loaderbench.commands.options import RunPlace
from loaderbench.commands.outputs import STDOUT, keep_runs, load_to_show, writing
from loaderbench.errors import UsageError
from loaderbench.exporters import EXPORTERS
from loaderbench.stderr import say


def export(
    run: RunPlace,
    to: Annotated[str, typer.Option("--to", metavar="TOOL", help=f"One of {', '.join(EXPORTERS)}.")],
    out: Annotated[
        str, typer.Option("--out", metavar="PATH", help="File or folder to write, or the address of a server.")
    ],
    trial: Annotated[
        str | None, typer.Option(metavar="ID", help="Trial for --to perfetto; default one of the best config.")
    ] = None,
) -> None:
    """Export a saved run to another tool: a tracker, a dashboard, a table of trials, a trace, stacks."""
    if to not in EXPORTERS:
        raise UsageError(f"--to {to}: unknown target; expected one of {', '.join(EXPORTERS)}")
    exporter = EXPORTERS[to]
    if trial is not None and "trial" not in exporter.options:
        raise UsageError(f"--trial {trial}: has no effect with --to {to}; it selects the trial of --to perfetto")
    if out == STDOUT:
        raise UsageError(f"--out {out}: expected a path; an export cannot be written to stdout")
    exporter.check_place(out, f"--out {out}")
    keep_runs(f"--out {out}", out, [run])
    exporter.require()

    saved = load_to_show(run)
    with writing(f"--out {out}"):
        place = exporter.write(saved, out, **({"trial": trial} if trial is not None else {}))
    print(place)
    if next_step := exporter.next_step_at(place):
        say(next_step)
