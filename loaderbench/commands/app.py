"""The command line: the list of verbs, and what becomes of an error."""

from __future__ import annotations

import signal
import sys
import traceback

import typer

from loaderbench.commands import check, photos, report, run, schema, show
from loaderbench.errors import Interrupted, LoaderbenchError, Terminated

app = typer.Typer(
    name="loaderbench",
    help="Says why the accelerator waits for images, and finds the loader configuration that feeds it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
)
for verb in (run.run, check.check, report.report, show.show, photos.photos, schema.schema):
    app.command()(verb)

FAULT = 70


def main() -> None:
    """Run the command line and exit with the code that `interfaces.md` gives to what happened."""
    try:
        app()
    except Interrupted as stop:
        _say(str(stop))
        sys.exit(stop.exit_code)
    except LoaderbenchError as error:
        _say(f"loaderbench: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt as stop:
        _say("loaderbench: interrupted before anything was measured")
        sys.exit(128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT))
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has left; there is nobody to tell
        sys.exit(128 + signal.SIGPIPE)
    except Exception as error:
        traceback.print_exc()
        _say(f"loaderbench: a fault of its own ({type(error).__name__}); please report it with the lines above")
        sys.exit(FAULT)


def _say(line: str) -> None:
    print(line, file=sys.stderr)
