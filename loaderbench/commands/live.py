"""`profile --live TOOL=PLACE`: trackers that follow a script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.outputs import writing
from loaderbench.errors import UsageError
from loaderbench.exporters import EXPORTERS

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
    """The places by tool. Raises `UsageError` for what cannot be followed, `MissingError` without its library."""
    found: dict[str, str] = {}
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
        if tool in found:
            raise UsageError(f"--live {text}: {tool} is named twice; name each tool once")
        EXPORTERS[tool].check_place(place, f"--live {text}")
        EXPORTERS[tool].require()
        found[tool] = place
    return found


def live_trackers(places: dict[str, str], script: str, run: str, *, quiet: bool) -> list[LiveTo]:
    """What opens each of them, for this run of a script."""
    from loaderbench.script.live import LiveTo

    return [
        LiveTo(f"{tool}={place}", partial(_open, tool, place, script, run, quiet=quiet))
        for tool, place in places.items()
    ]


def _open(tool: str, place: str, script: str, run: str, *, quiet: bool) -> LiveTracker:
    """Open one; a line says where to look."""
    with writing(f"--live {tool}={place}"):
        tracker = _OPENERS[tool](place, script, run)
    if (next_step := EXPORTERS[tool].next_step_at(place)) and not quiet:
        print(f"loaderbench: --live {tool}: {next_step}", file=sys.stderr)
    return tracker
