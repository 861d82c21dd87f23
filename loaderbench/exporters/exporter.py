"""What an exporter is: how a run is written, and which library that takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from loaderbench.errors import MissingError


@dataclass(frozen=True)
class Exporter:
    """One value of `--to`.

    `write(run, out, **options)` hands the run over and returns where it is now. It may raise `OSError` and the errors
    of `loaderbench.errors`. `options` are the flags that it takes in addition. Any one of `libraries` will do, and none
    is needed where it is empty; `extra` is the one of `loaderbench` that installs it. `next_step` is what to do with
    the result, with `{out}` for its place.
    """

    write: Callable[..., str]
    extra: str = ""
    libraries: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    next_step: str = ""

    def require(self) -> None:
        """Raise `MissingError` where its library is not installed."""
        if self.libraries and not any(find_spec(name) for name in self.libraries):
            raise MissingError(f"{self.libraries[0]} is not installed; pip install 'loaderbench[{self.extra}]'")
