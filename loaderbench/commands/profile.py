"""`loaderbench profile`: run a training script unchanged, record its loaders, and print what it waits for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from loaderbench.commands.gates import JunitFile
from loaderbench.commands.live import Live, check_live, live_trackers
from loaderbench.commands.options import OpenPage, finite
from loaderbench.commands.outputs import JsonFile, MarkdownFile, Outputs, SpeedscopeFile, show_page
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
    trained_script,
    write_copies,
)
from loaderbench.ending_signals import signals_put_off
from loaderbench.errors import LoaderbenchError


def profile(
    context: typer.Context,
    script: ScriptAndArguments = None,
    module: Module = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Batches to record per loader; default all.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="S", min=0, callback=finite, help="Seconds to record; default until the script ends."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run folder; default reports/profile-<script>-<UTC time>.")
    ] = None,
    json_file: JsonFile = None,
    md_file: MarkdownFile = None,
    junit: JunitFile = None,
    speedscope: SpeedscopeFile = None,
    live: Live = None,
    open_page: OpenPage = False,
    quiet: Quiet = False,
) -> None:
    """Run a training script unchanged and find out what it waits for.

    Put -- before a launcher: loaderbench profile -- torchrun train.py
    """
    from loaderbench.script.launch import run_script
    from loaderbench.script.run_folders import make_run_folder, write_run_folders
    from loaderbench.script.summary import print_loaders

    launcher = is_launcher(context, script or [], module)
    command = script_command(script or [], module, launcher=launcher)
    outputs = Outputs(json_file, md_file, junit, speedscope=speedscope)
    outputs.check(folder=out, inputs=script_files(script or []))
    places = check_live(live or [])
    folder = make_run_folder(f"profile-{script_name(script or [], module)}", out)
    trackers = live_trackers(places, trained_script(script or [], module), folder.name, quiet=quiet)
    try:
        ended = run_script(command, steps=steps, seconds=seconds, launcher=launcher, live=trackers)
    except LoaderbenchError:  # the script was not started
        with suppress(OSError):
            folder.rmdir()
        raise
    with signals_put_off():
        loaders = write_run_folders(ended.recordings, folder)
        write_copies(loaders[0].run if loaders else None, outputs)
        if not quiet:
            print_loaders(
                loaders, stderr_console(), ended.sent_to, begun=ended.begun, lost=ended.lost, failure=ended.failure
            )
    if loaders and open_page:
        show_page(loaders[0].page)
    raise_for_script(ended.code)
