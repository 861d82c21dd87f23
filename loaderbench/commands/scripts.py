"""Shared parts of `profile` and `tune`: the script to run, and the output about its loaders."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from loaderbench.commands.outputs import STDOUT, Outputs
from loaderbench.errors import MissingError, UsageError
from loaderbench.ranks import LAUNCHERS

if TYPE_CHECKING:
    from rich.console import Console

    from loaderbench.result import Run

LAUNCHER = "loaderbench.launcher"

ScriptAndArguments = Annotated[list[str] | None, typer.Argument(metavar="SCRIPT [ARGS]...", help="The script to run.")]
Module = Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m does.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but the script's output.")]


class ScriptCommand(TyperCommand):
    """A command whose flags end where the script begins.

    The script begins at its name, after `-m MODULE` or `-mMODULE`, or after `--`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `--` where the flags end."""
        place, with_value = 0, self._flags_with_value()
        while place < len(args) and args[place].startswith("-"):
            if args[place] == "--":
                ctx.meta[LAUNCHER] = True
                break
            words = self._words_with_module(args[place])
            if words:
                if place + words <= len(args):  # otherwise the module is missing, as click then says
                    args = [*args[: place + words], "--", *args[place + words :]]
                break
            place += 2 if args[place] in with_value else 1
        else:
            args = [*args[:place], "--", *args[place:]] if place < len(args) else args
        return super().parse_args(ctx, args)

    def _words_with_module(self, word: str) -> int:
        """The number of words that name a module, beginning with this one.

        2 for `-m`, also combined with other short flags, as in `-qm`. 1 for `-mMODULE`, which Python also accepts. 0
        for any other flag.
        """
        short = {name[1:] for option in self.params for name in option.opts if len(name) == 2}
        before, found, module = word[1:].partition("m")
        if not found or not short.issuperset(before):
            return 0
        return 1 if module else 2

    def _flags_with_value(self) -> set[str]:
        return {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}


def is_launcher(context: typer.Context, script: list[str], module: str | None) -> bool:
    """Whether the command starts other programs, which are recorded: after `--`, or by its name."""
    return LAUNCHER in context.meta or (module or Path(next(iter(script), "")).name) in LAUNCHERS


def script_command(script: list[str], module: str | None, *, launcher: bool = False) -> list[str]:
    """The command to start. Raises `UsageError` for a missing script, and `MissingError` for a missing launcher."""
    from loaderbench.script.launch import python_command

    if module is not None:
        return python_command([module, *script], module=True)
    if not script:
        raise UsageError("nothing to run: name a script, or -m MODULE; see --help")
    if launcher:
        if shutil.which(script[0]) is None:
            raise MissingError(f"{script[0]}: no such program")
        return script
    if not Path(script[0]).exists():
        raise UsageError(f"{script[0]}: no such script; to run another program, put -- before it")
    return python_command(script)


def script_name(script: list[str], module: str | None) -> str:
    """The name of the script, for its run folder."""
    return module or Path(script[0]).stem


def trained_script(script: list[str], module: str | None) -> str:
    """The name of the training script. After a launcher such as torchrun, this is the script it starts, if named."""
    started = next(([word] for word in script if word.endswith(".py")), None)
    launches = module is None or module in LAUNCHERS
    return script_name(started, None) if started and launches else script_name(script, module)


def script_files(script: Sequence[str]) -> list[Path]:
    """The Python files that a command line names: no result may replace them."""
    return [Path(word) for word in script if word.endswith(".py")]


def write_copies(run: Run | None, outputs: Outputs, *, after_script: bool = True) -> None:
    """Write the files that flags name, or say that they were not written, if nothing was recorded.

    On stdout, a result begins a line: a script with the same stdout may not have ended its own.
    """
    if run is None:
        outputs.say_unwritten("nothing was recorded")
        return
    if STDOUT in {outputs.json, outputs.md, str(outputs.junit)} and after_script:
        print()
    outputs.write_texts(run)
    outputs.write_junit(run.record)
    outputs.write_speedscope(run)


def stderr_console() -> Console:
    """A console for messages about a script, whose own output is on stdout."""
    from rich.console import Console

    return Console(stderr=True)


def raise_for_script(code: int) -> None:
    """Exit with the script's exit code. A negative `code` is the number of the signal that ended the script."""
    if code:
        raise typer.Exit(code if code > 0 else 128 - code)
