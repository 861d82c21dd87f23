"""What an exporter is: how a run is written, and which library that takes; and what a tracker of a live run gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from shlex import quote
from typing import Protocol

from loaderbench.errors import MissingError, UsageError


@dataclass(frozen=True, kw_only=True)
class LivePoint:
    """What one loader of a running script did since its last point.

    `loader` is its name, unique in this run among those of the same `rank` and fit for a folder. `batches` is how many
    are recorded so far: the x-axis. `numbers` are by the id of their metric.
    """

    loader: str
    rank: int | None
    batches: int
    numbers: Mapping[str, float]

    @property
    def series(self) -> str:
        """`train_loader`, or `train_loader-rank1`: the name of its curve."""
        return self.loader if self.rank is None else f"{self.loader}-rank{self.rank}"


class LiveTracker(Protocol):
    """Takes numbers while a script runs. Any exception ends it, and harms nothing else."""

    def write(self, points: Sequence[LivePoint]) -> None:
        """Take the latest points, at most one of each series."""

    def close(self) -> None:
        """Finish: the script has ended. Also called after an exception of `write`."""


@dataclass(frozen=True)
class Exporter:
    """One value of `--to`. `takes_address`: whether its place may be an address, and not only a path.

    `write(run, out, **options)` hands the run over and returns where it is now. It may raise `OSError` and the errors
    of `loaderbench.errors`. `options` are the flags that it takes in addition. Any one of `libraries` will do, and none
    is needed where it is empty; `package` installs one. `next_step` is what to do with the result, with `{out}` for its
    place.

    `live(out, script, run)` opens a tracker for a script that is about to run, and may raise the same. `script` is the
    script's name, and `run` that of this run of it. `live` is `None` where only a finished run makes sense.
    """

    write: Callable[..., str]
    package: str = ""
    libraries: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    next_step: str = ""
    live: Callable[[str, str, str], LiveTracker] | None = None
    takes_address: bool = False

    def check_place(self, out: str, flag: str) -> None:
        """Raise `UsageError` for the address of a remote store where a path is needed: it would name a local folder."""
        if "://" in out and not self.takes_address:
            raise UsageError(f"{flag}: expected a local path; write it there, then copy it")

    def next_step_at(self, place: str) -> str:
        """What to do with the result at this place, as a command to paste; empty where there is nothing to do."""
        return self.next_step.format(out=quote(place))

    def require(self) -> None:
        """Raise `MissingError` where its library is not installed."""
        if self.libraries and not any(find_spec(name) for name in self.libraries):
            raise MissingError(f"{self.libraries[0]} is not installed; pip install {self.package}")
