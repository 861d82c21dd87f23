"""The command line application: the list of commands, and the exit code of each error."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import traceback
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, NoReturn

import typer

from loaderbench.commands import (
    ab,
    attach,
    check,
    compare,
    doctor,
    export,
    init,
    photos,
    profile,
    report,
    run,
    schema,
    show,
    tune,
)
from loaderbench.commands.scripts import ScriptCommand
from loaderbench.errors import Interrupted, LoaderbenchError, MissingError, Terminated, UsageError, printable

FAULT = 70
_INTERRUPTED = 128 + signal.SIGINT
_SIGPIPE = 13  # Windows has no name for it

_PATH_ERRNOS = frozenset({
    errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO,
    errno.ESTALE,
})  # fmt: skip
"""Errors of the user's disk or path, wherever they occur."""

app = typer.Typer(
    name="loaderbench",
    help="Find out why the GPU waits for images, and measure what fixes it.",
    add_completion=False,
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
)
app.command()(run.run)
app.command(cls=ScriptCommand, short_help="Find out what a training script waits for.")(profile.profile)
app.command(cls=ScriptCommand, short_help="Find faster DataLoader arguments for a training script.")(tune.tune)
app.command(short_help="Find out what a running training job waits for.")(attach.attach)
app.command()(check.check)
app.command()(show.show)
app.command(short_help="Compare two versions of your code.")(ab.ab)
app.command()(compare.compare)
app.command(short_help="Export a saved run to a tracker, a table or a trace.")(export.export)
for verb in (init.init, doctor.doctor, report.report, photos.photos, schema.schema):
    app.command()(verb)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"loaderbench {version('loaderbench')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Find out why the GPU waits for images, and measure what fixes it."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(UsageError.exit_code)


def main() -> None:
    """Run the command line, and exit with a code of docs/reference/exit-codes.md."""
    signal.signal(signal.SIGTERM, _terminate)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, _terminate)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name can contain characters that stdout cannot encode
    try:
        exit_code = _call()
        if sys.stdout is not None:  # None if the caller closed it, as with `>&-`
            sys.stdout.flush()
        _exit(exit_code)
    except Interrupted as stop:
        _exit_with(str(stop), stop.exit_code)
    except LoaderbenchError as error:
        _exit_with(f"loaderbench: {error}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _exit_with("loaderbench: interrupted", _INTERRUPTED)
    except Terminated:
        _exit_with("loaderbench: terminated", 128 + signal.SIGTERM)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _has_no_reader():
            _drop_output()
            sys.exit(128 + _SIGPIPE)
        _exit_for_error(error)


def _exit_for_error(error: Exception) -> NoReturn:
    """Print one line for an error that a user can fix, and a traceback for an internal error."""
    if hasattr(error, "format_message"):  # a usage error from click
        message = " ".join(error.format_message().split())  # click wraps some messages
        _exit_with(f"loaderbench: {message} (see loaderbench --help)", getattr(error, "exit_code", 2))
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        _exit_with(f"loaderbench: {error.strerror}; raise the limit with `ulimit -n`", MissingError.exit_code)
    if isinstance(error, OSError) and error.errno in _PATH_ERRNOS and error.filename:
        _exit_with(f"loaderbench: {str(error.filename)[:200]}: {error.strerror}", UsageError.exit_code)
    if isinstance(error, OSError) and error.errno in _PATH_ERRNOS and not _can_write_output():
        _drop_output()
        _exit_with(f"loaderbench: cannot write the output: {error.strerror}", UsageError.exit_code)
    traceback.print_exc()
    _exit_with(f"loaderbench: internal error ({type(error).__name__}); please report it with the lines above", FAULT)


def _call() -> int:
    """Run the command and return its exit code. Unlike click's own `main`, raise every exception."""
    command = typer.main.get_command(app)
    try:
        with command.make_context("loaderbench", sys.argv[1:]) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    return 0


def _drop_output() -> None:
    """Redirect buffered output to the null device. Python would otherwise report a write error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _can_write_output() -> bool:
    """Whether stdout accepts an empty line. After a failed write, another flush can report success."""
    try:
        os.write(1, b"\n")
    except OSError:
        return False
    return True


def _has_no_reader() -> bool:
    """Whether stdout or stderr is a pipe with its other end closed; true if the system cannot tell."""
    if not hasattr(select, "poll"):
        return True
    output = select.poll()
    for number in (1, 2):
        output.register(number, 0)  # a hang-up is always reported
    return bool(output.poll(0))


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


def _exit_with(line: str, exit_code: int) -> NoReturn:
    """Print one line, with unprintable characters escaped, and exit."""
    print(printable(line), file=sys.stderr)
    _exit(exit_code)


def _exit(exit_code: int) -> NoReturn:
    """Exit and ignore signals from now on: all output is written, and a signal must not change the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(exit_code)
