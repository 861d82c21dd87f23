"""`profile --live TOOL=PLACE`: trackers that receive metrics while a script runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.outputs import writing
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
