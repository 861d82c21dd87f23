"""`loaderbench profile`: run a training script unchanged, record its loaders, say what it waits for."""

from __future__ import annotations

import shutil
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from loaderbench.commands.outputs import JsonFile, MarkdownFile, check_outputs, write_output
from loaderbench.errors import MissingError, UsageError

if TYPE_CHECKING:
    from loaderbench.result import Run
    from loaderbench.script.run_folders import RecordedLoader

_LAUNCHER = "loaderbench.launcher"


class ProfileCommand(TyperCommand):
    """Flags end where the script begins: at its name, after `-m MODULE`, or after `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Mark where the flags end."""
        place, with_value = 0, self._flags_with_value()
        while place < len(args) and args[place].startswith("-"):
            if args[place] == "--":
                ctx.meta[_LAUNCHER] = True
                break
            if args[place] == "-m":
                args = [*args[: place + 2], "--", *args[place + 2 :]]
                break
            place += 2 if args[place] in with_value else 1
        else:
            args = [*args[:place], "--", *args[place:]] if place < len(args) else args
        return super().parse_args(ctx, args)

    def _flags_with_value(self) -> set[str]:
        return {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}


def profile(
    context: typer.Context,
    script: Annotated[list[str] | None, typer.Argument(metavar="SCRIPT [ARGS]...", help="The script to run.")] = None,
    module: Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m does.")] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Record so many batches of each loader.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(metavar="S", min=0, help="Record for so many seconds.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run folder; default reports/profile-<script>-<UTC time>.")
    ] = None,
    json_file: JsonFile = None,
    md_file: MarkdownFile = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print no summary.")] = False,
) -> None:
    """Run a training script unchanged and find out what it waits for.

    After --, any command that starts Python, such as torchrun.
    """
    from loaderbench.script.launch import run_script
    from loaderbench.script.run_folders import make_run_folder, write_run_folders

    launcher = _LAUNCHER in context.meta
    command = _command(script or [], module, launcher=launcher)
    check_outputs(json_file, md_file)
    name = module or Path(command[0] if launcher else (script or [""])[0]).stem
    folder = make_run_folder(name, out)
    ended = run_script(command, steps=steps, seconds=seconds, launcher=launcher)
    found = write_run_folders(ended.recordings, folder)
    if found:
        _write_copies(found[0].run, json_file, md_file)
    if not quiet:
        _print(found)
    if found and open_page:
        webbrowser.open(found[0].page.absolute().as_uri())
    if ended.code:
        raise typer.Exit(ended.code if ended.code > 0 else 128 - ended.code)


def _command(script: list[str], module: str | None, *, launcher: bool) -> list[str]:
    from loaderbench.script.launch import python_command

    if module is not None:
        return python_command([module, *script], module=True)
    if not script:
        raise UsageError(
            "nothing to run: name a script, -m MODULE, or -- and a command; see loaderbench profile --help"
        )
    if launcher:
        if shutil.which(script[0]) is None:
            raise MissingError(f"{script[0]}: no such program")
        return script
    if not Path(script[0]).exists():
        raise UsageError(f"{script[0]}: no such script; to run another program, put -- before it")
    return python_command(script)


def _write_copies(run: Run, json_file: str | None, md_file: str | None) -> None:
    from loaderbench.store import run_json

    if json_file is not None:
        write_output("--json", json_file, run_json(run.record) + "\n")
    if md_file is not None:
        write_output("--md", md_file, run.to_markdown())


def _print(found: Sequence[RecordedLoader]) -> None:
    """To stderr: stdout is the script's."""
    from rich.console import Console

    from loaderbench.report.terminal import print_summary

    console = Console(stderr=True)
    if not found:
        console.print("loaderbench: no DataLoader was iterated over; nothing was recorded", highlight=False)
        return
    main, *others = found
    print_summary(main.run.document, console, report_path=str(main.page))
    for other in others:
        said = f"Loader: {other.place}: {other.run.verdict.headline}; {other.page}"
        console.print(said, highlight=False, markup=False, soft_wrap=True)
