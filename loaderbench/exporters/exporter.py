"""Interfaces of an exporter of finished runs and of a live tracker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Protocol

from loaderbench.errors import MissingError, UsageError
from loaderbench.libraries import is_installed


@dataclass(frozen=True, kw_only=True)
class LivePoint:
    """The activity of one loader of a running script since its last point.

    `loader` is the loader's name, unique among the loaders of the same `rank` and usable as a folder name. `batches` is
    the number of batches recorded so far: the x-axis. `numbers` are values by metric id.
    """

    loader: str
    rank: int | None
    batches: int
    numbers: Mapping[str, float]

    @property
    def series(self) -> str:
        """The name of the loader's curve: `train_loader`, or `train_loader-rank1`."""
        return self.loader if self.rank is None else f"{self.loader}-rank{self.rank}"


class LiveTracker(Protocol):
    """Receives metrics while a script runs.

    An exception ends the tracker and does not affect the script or other trackers.
    """

    def write(self, points: Sequence[LivePoint]) -> None:
        """Record the latest points, at most one per series."""

    def close(self) -> None:
        """Finish after the script has ended. Also called after `write` has raised."""


@dataclass(frozen=True)
class Exporter:
    """One value of `--to`. `takes_address` is true if the destination can be an address instead of a path.

    `write(run, out, **options)` exports the run and returns its destination. It can raise `OSError` and the errors of
    `loaderbench.errors`. `options` are the additional flags that it accepts. Any one of `libraries` is sufficient; if
    the tuple is empty, none is needed. `package` is the package to install for one of them. `next_step` says what to do
    with the result, with `{out}` as a placeholder for the destination.

    `live(out, script, run)` opens a tracker for a script that is about to run, and can raise the same errors. `script`
    is the script's name, and `run` the name of this execution. `live` is `None` for formats that need a finished run.
    """

    write: Callable[..., str]
    package: str = ""
    libraries: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    next_step: str = ""
    live: Callable[[str, str, str], LiveTracker] | None = None
    takes_address: bool = False

    def check_place(self, out: str, flag: str) -> None:
        """Raise `UsageError` for a remote address if a path is required. The address would name a local folder."""
        if "://" in out and not self.takes_address:
            raise UsageError(f"{flag}: expected a local path; write it there, then copy it")

    def next_step_at(self, place: str) -> str:
        """The next step for a result at this destination, as a command to paste; empty if there is none."""
        return self.next_step.format(out=quote(place))

    def require(self) -> None:
        """Raise `MissingError` if none of the libraries is installed."""
        if self.libraries and not any(map(is_installed, self.libraries)):
            raise MissingError(f"{self.libraries[0]} is not installed; pip install {self.package}")
