"""What a script calls a loader, and where it makes it and iterates over it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from types import FrameType
from typing import Any

from loaderbench.code_places import CodeLine, is_library, is_ours
from loaderbench.script.frame_locals import locals_of
from loaderbench.tracing.other_loader import OtherLoader

_MOST_FRAMES = 60
_MOST_HELD = 100  # of a dictionary or a sequence that may hold loaders


@dataclass(frozen=True)
class Place:
    """A line of the user's own code where an epoch begins, and the name that the loader has there.

    `made` is the line that made it; `None` where that was not seen.
    """

    name: str
    file: str
    line: int
    made: CodeLine | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.made or f'{Path(self.file).name}:{self.line}'})"


def command_of_script() -> str:
    """What the script was started with; it may have emptied `sys.argv` since."""
    program, *arguments = sys.argv or sys.orig_argv[1:] or ["python"]
    return shlex.join([Path(program).name, *arguments])


def place_of(loader: Any, made: CodeLine | None = None) -> Place:
    """Look for the loader's name where its epoch begins, and in what called that.

    The outermost variable wins: `train_loader` of the script, not `loader` of a function that it is passed to. Next
    come attributes of `self` and objects that hold the loader, from the innermost on. Without a name it is called by
    its dataset's type. The line is that of the innermost code that is no library's.
    """
    if isinstance(loader, OtherLoader):
        loader = loader.of_user
    frames = list(_frames())
    own = next((frame for frame in frames if not is_library(frame.f_code.co_filename)), frames[-1] if frames else None)
    file, line = (own.f_code.co_filename, own.f_lineno) if own else ("", 0)
    named = next((name for frame in reversed(frames) if (name := _variable_in(frame, loader))), None)
    named = named or next((name for frame in frames if (name := _name_in(frame, loader))), None)
    return Place(named or f"{type(getattr(loader, 'dataset', loader)).__name__} loader", file, line, made)


def _frames() -> Iterator[FrameType]:
    """Those that began the epoch, from the innermost on, without ours."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        if not is_ours(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _variable_in(frame: FrameType, loader: Any) -> str | None:
    """The variable of the user's code that is the loader."""
    if is_library(frame.f_code.co_filename):
        return None
    names = chain(locals_of(frame).items(), list(frame.f_globals.items()))
    return next((name for name, value in names if value is loader and _is_users(name)), None)


def _is_users(name: str) -> bool:
    """Whether a name is written by hand: tools that rewrite code add variables of other shapes."""
    return name.isidentifier() and name != "self"


def _name_in(frame: FrameType, loader: Any) -> str | None:
    """The variable of the user's code that holds the loader, or the attribute of its `self`."""
    if is_library(frame.f_code.co_filename):
        return None
    own = locals_of(frame)
    found = _key_of(own, loader) or _key_of(frame.f_globals, loader)
    if found is not None:
        return found
    return _key_of(getattr(own.get("self"), "__dict__", {}), loader)


def _key_of(names: Any, loader: Any) -> str | None:
    """The name of the loader itself, or else of an object that wraps it, as a framework's own loader does."""
    own = [(name, value) for name, value in list(names.items()) if _is_users(name)]
    found = next((name for name, value in own if value is loader), None)
    found = found or next((part for name, value in own if (part := _one_of(name, value, loader))), None)
    return found or next((name for name, value in own if _holds(value, loader)), None)


def _one_of(name: str, value: Any, loader: Any) -> str | None:
    """`loaders['train']` of a dictionary or `loaders[0]` of a sequence.

    `dls.train` or `dls.valid` for one of fastai's `DataLoaders`; a `Learner` holds them as its `dls`.
    """
    if isinstance(value, dict | list | tuple):
        pairs = list(value.items()) if isinstance(value, dict) else enumerate(value)
        return next((f"{name}[{key!r}]" for key, held in islice(pairs, _MOST_HELD) if held is loader), None)
    if not type(value).__module__.startswith("fastai."):
        return None
    of_learner = getattr(value, "__dict__", {}).get("dls")
    name, loaders = (name, value) if of_learner is None else (f"{name}.dls", of_learner)
    parts = ((part, getattr(loaders, part, None)) for part in ("train", "valid"))
    return next((f"{name}.{part}" for part, own in parts if own is loader), None)


def _holds(value: Any, loader: Any) -> bool:
    return any(held is loader for held in list(getattr(value, "__dict__", {}).values()))
