"""`loaderbench profile`: run a training script unchanged, record its loaders, and print what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.gates import JunitFile
from loaderbench.commands.options import OpenPage, finite
from loaderbench.commands.outputs import JsonFile, MarkdownFile, Outputs, SpeedscopeFile, show_page, writing
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
from loaderbench.errors import UsageError
from loaderbench.exporters import EXPORTERS
from loaderbench.stderr import say

if TYPE_CHECKING:
    from loaderbench.exporters.exporter import LiveTracker
    from loaderbench.script.live import LiveTo


_OPENERS = {name: found.live for name, found in EXPORTERS.items() if found.live}
TOOLS = tuple(_OPENERS)

Live = Annotated[
    list[str] | None,
    typer.Option(
        "--live",
        metavar="TOOL=PLACE",
        help=f"Send numbers to a tracker while the script runs: {', '.join(TOOLS)}; repeatable.",
    ),
]


def check_live(asked: Sequence[str]) -> dict[str, str]:
    """Destinations by tool.

    Raises `UsageError` for an invalid one, `MissingError` if a tool's library is not installed.
    """
    places: dict[str, str] = {}
    for text in asked:
        tool, _, place = text.partition("=")
        if tool in EXPORTERS and tool not in TOOLS:
            raise UsageError(
                f"--live {text}: {tool} takes finished runs only, by loaderbench export; live: {', '.join(TOOLS)}"
            )
        if tool not in TOOLS or not place:
            raise UsageError(
                f"--live {text}: expected TOOL=PLACE such as tensorboard=logs; TOOL is one of {', '.join(TOOLS)}"
            )
        if tool in places:
            raise UsageError(f"--live {text}: {tool} is named twice; name each tool once")
        EXPORTERS[tool].check_place(place, f"--live {text}")
        EXPORTERS[tool].require()
        places[tool] = place
    return places


def live_trackers(places: dict[str, str], script: str, run: str, *, quiet: bool) -> list[LiveTo]:
    """Openers of the trackers, for one execution of a script."""
    from loaderbench.script.live import LiveTo

    return [
        LiveTo(f"{tool}={place}", partial(_open, tool, place, script, run, quiet=quiet))
        for tool, place in places.items()
    ]


def _open(tool: str, place: str, script: str, run: str, *, quiet: bool) -> LiveTracker:
    """Open a tracker, and print a line on how to view it."""
    with writing(f"--live {tool}={place}"):
        tracker = _OPENERS[tool](place, script, run)
    if (next_step := EXPORTERS[tool].next_step_at(place)) and not quiet:
        say(f"--live {tool}: {next_step}")
    return tracker


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
    from loaderbench.script.run_folders import kept_if_started, make_run_folder, write_run_folders
    from loaderbench.script.summary import print_loaders

    launcher = is_launcher(context, script or [], module)
    command = script_command(script or [], module, launcher=launcher)
    outputs = Outputs(json_file, md_file, junit, speedscope=speedscope)
    outputs.check(folder=out, inputs=script_files(script or []))
    places = check_live(live or [])
    folder = make_run_folder(f"profile-{script_name(script or [], module)}", out)
    trackers = live_trackers(places, trained_script(script or [], module), folder.name, quiet=quiet)
    with kept_if_started(folder):
        ended = run_script(command, steps=steps, seconds=seconds, launcher=launcher, live=trackers)
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
