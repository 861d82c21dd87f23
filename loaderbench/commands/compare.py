"""`loaderbench compare`: differences between two saved runs, with intervals and optional gates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loaderbench.commands.gates import FailIf, Gates, JunitFile, WarnIf, raise_for, write_job_summary
from loaderbench.commands.outputs import MarkdownFile, Outputs, load_to_show, make_console, write_output

Before = Annotated[Path, typer.Argument(metavar="BEFORE", help="Reference run: a run folder, or its run.json.")]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write comparison and gates; - is stdout.")
]
After = Annotated[Path, typer.Argument(metavar="AFTER", help="Run to compare with it: a run folder, or its run.json.")]


def compare(
    before: Before,
    after: After,
    fail_if: FailIf = None,
    warn_if: WarnIf = None,
    json_file: JsonFile = None,
    md_file: MarkdownFile = None,
    junit: JunitFile = None,
) -> None:
    """Compare two runs: what improved, what regressed."""
    import json

    from loaderbench.records import to_dict
    from loaderbench.report.compare import comparison_markdown, print_comparison

    outputs = Outputs(json_file, md_file, junit)
    outputs.check(runs=[before, after])
    then, now = load_to_show(before).record, load_to_show(after).record
    comparison, gates = Gates(fail_if, warn_if, then, now.consumer).judge(now)
    assert comparison is not None
    text = comparison_markdown(comparison, gates)
    if json_file is not None:
        result = {"comparison": to_dict(comparison), "gates": [to_dict(gate) for gate in gates]}
        write_output("--json", json_file, json.dumps(result, indent=1, allow_nan=False) + "\n")
    if md_file is not None:
        write_output("--md", md_file, text)
    if not outputs.to_stdout:
        print_comparison(make_console(), comparison, gates)
    outputs.write_junit(now, gates)
    write_job_summary(text)
    raise_for(gates)
