"""`loaderbench tune`: run a training script, measure other arguments for its loader, and print the best ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.gates import JunitFile
from loaderbench.commands.options import OpenPage
from loaderbench.commands.outputs import JsonFile, MarkdownFile, Outputs, show_page
from loaderbench.commands.scripts import (
    Module,
    Quiet,
    ScriptAndArguments,
    is_launcher,
    raise_for_script,
    script_command,
    script_files,
    script_name,
    stderr_console,
    write_copies,
)
from loaderbench.ending_signals import signals_put_off

if TYPE_CHECKING:
    from rich.console import Console

    from loaderbench.script.tuner import TunedLoader

OF_SCRIPT = "script"
"""The subfolder of the run folder for the recording of the script itself."""

_NO_LOOP = "no loop with an optimizer step reached 30 batches"


def tune(
    context: typer.Context,
    script: ScriptAndArguments = None,
    module: Module = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time for tuning, e.g. 30s or 5m.")] = "2m",
    keep_training: Annotated[
        bool, typer.Option("--keep-training", help="Continue the script after tuning. Without this flag, it ends.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run folder; default reports/tune-<script>-<UTC time>.")
    ] = None,
    json_file: JsonFile = None,
    md_file: MarkdownFile = None,
    junit: JunitFile = None,
    open_page: OpenPage = False,
    quiet: Quiet = False,
) -> None:
    """Run a training script, pause it, and find faster arguments for its DataLoader.

    Put -- before a launcher, whose rank 0 then tunes: loaderbench tune -- torchrun train.py
    """
    from loaderbench.result import load_concluded
    from loaderbench.script.launch import Tuning, run_script
    from loaderbench.script.run_folders import kept_if_started, make_run_folder, write_run_folders
    from loaderbench.script.summary import print_loaders
    from loaderbench.store import PAGE_FILE
    from loaderbench.tuning.api import checked_budget_s

    launcher = is_launcher(context, script or [], module)
    command = script_command(script or [], module, launcher=launcher)
    budget_s = checked_budget_s(budget, "--budget")
    outputs = Outputs(json_file, md_file, junit)
    outputs.check(folder=out, inputs=script_files(script or []))
    folder = make_run_folder(f"tune-{script_name(script or [], module)}", out)
    with kept_if_started(folder):
        ended = run_script(command, launcher=launcher, tuning=Tuning(budget_s, folder, keep_training, quiet))
    tuned, measured = ended.tuned, ended.tuned and ended.tuned.tuned.folder
    with signals_put_off():
        has_trials = folder.exists() and any(folder.iterdir())  # the script can remove the folder
        loaders = write_run_folders(ended.recordings, folder / OF_SCRIPT if has_trials else folder)
        run = load_concluded(measured) if measured else loaders[0].run if loaders else None
        write_copies(run, outputs)
        if not quiet:
            console = stderr_console()
            print_loaders(
                loaders,
                console,
                begun=ended.begun,
                lost=ended.lost,
                failure=ended.failure,
                verb="tune",
                with_next_step=measured is None,
            )
            if loaders or not ended.failure:
                _print(tuned, ended.untuned or _NO_LOOP, folder / PAGE_FILE, console)
    if run is not None and open_page:
        show_page(folder / PAGE_FILE)
    raise_for_script(ended.code)


def _print(tuned: TunedLoader | None, why_none: str, page: Path, console: Console) -> None:
    """Print the arguments, their gain and the line to edit, or why nothing was tuned."""
    from loaderbench.report.terminal import say_whole
    from loaderbench.tuning.words import details, headline

    say = partial(say_whole, console)
    if tuned is None:
        say(f"loaderbench: nothing was tuned: {why_none}")
        return
    say("")
    say(f"Tuned {headline(tuned.name, tuned.tuned)}", "bold")
    for part in details(tuned.tuned, tuned.made_at, tuned.own):
        say(part)
    if tuned.tuned.folder is not None:
        say(f"Report: {page}")
