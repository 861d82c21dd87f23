"""What a script calls a loader, and where it makes it and iterates over it, read from the frames of its code."""

from __future__ import annotations

import dis
import functools
import shlex
import sys
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from itertools import chain, islice
from pathlib import Path
from types import CodeType, FrameType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from loaderbench.code_places import CodeLine, is_library, is_ours
from loaderbench.tracing.other_loader import OtherLoader

_MOST_FRAMES = 60
_MOST_HELD = 100  # of a dictionary or a sequence that may hold loaders

_ASK_FOR_THEM = {"locals", "vars"}

_OF_NOBODY_ELSE = 3
"""References to the dictionary: the frame's, ours, and the one by which it is counted."""


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
    its dataset's type. The line is that of the innermost code that is no library's. What the script's variables hold
    may be anything: no code of theirs runs, and whatever is raised, the loader gets a name.
    """
    if issubclass(type(loader), OtherLoader):
        loader = loader.of_user
    frames = list(_frames())
    own = next((frame for frame in frames if not is_library(frame.f_code.co_filename)), frames[-1] if frames else None)
    file, line = (own.f_code.co_filename, own.f_lineno) if own else ("", 0)
    named = None
    with suppress(Exception):
        named = next((name for frame in reversed(frames) if (name := _variable_in(frame, loader))), None)
        named = named or next((name for frame in frames if (name := _name_in(frame, loader))), None)
    return Place(named or _name_by_dataset(loader), file, line, made)


def _name_by_dataset(loader: Any) -> str:
    kind = type(loader)
    with suppress(Exception):  # a loader of the user's may raise
        kind = type(getattr(loader, "dataset", loader))
    return f"{kind.__name__} loader"


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
    return _key_of(attributes_of(own.get("self")), loader)


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
    kind = type(value)
    pairs: Iterable[Any] | None = None
    if issubclass(kind, dict):
        pairs = dict.items(value)
    elif issubclass(kind, list | tuple):
        pairs = enumerate((list if issubclass(kind, list) else tuple).__iter__(value))
    if pairs is not None:
        return next((f"{name}[{key!r}]" for key, held in list(islice(pairs, _MOST_HELD)) if held is loader), None)
    if not str(kind.__module__).startswith("fastai."):
        return None
    of_learner = attributes_of(value).get("dls")
    name, loaders = (name, value) if of_learner is None else (f"{name}.dls", of_learner)
    parts = ((part, getattr(loaders, part, None)) for part in ("train", "valid"))
    return next((f"{name}.{part}" for part, own in parts if own is loader), None)


def _holds(value: Any, loader: Any) -> bool:
    return any(held is loader for held in list(attributes_of(value).values()))


def attributes_of(value: Any) -> Any:
    """The dictionary of an object's own attributes, or an empty one; a `__dict__` that code of its class makes is none.

    A lazy object, as werkzeug and Django have, would be made by any question that its class answers.
    """
    for kind in type(value).__mro__:
        own = vars(kind).get("__dict__")
        if own is not None:
            return own.__get__(value) if type(own) in (GetSetDescriptorType, MemberDescriptorType) else {}
    return {}


class Makers:
    """Notes the line that makes a loader, from inside of its `__init__`."""

    def __init__(self) -> None:
        self._of_dataset: list[tuple[weakref.ref[Any], CodeLine]] = []  # also of loaders that are gone
        self._made: weakref.WeakKeyDictionary[Any, CodeLine] = weakref.WeakKeyDictionary()

    def note(self, loader: Any) -> None:
        """The innermost code that is no library's, and not the loader's own class."""
        frame: FrameType | None = sys._getframe(1)
        by_library = False
        while frame is not None:
            file = frame.f_code.co_filename
            if not is_ours(file) and locals_of(frame).get("self") is not loader:
                if not is_library(file):
                    self._keep(loader, CodeLine(file, frame.f_lineno, by_library))
                    return
                by_library = True
            frame = frame.f_back

    def _keep(self, loader: Any, at: CodeLine) -> None:
        self._made[loader] = at
        if not at.by_library:
            with suppress(TypeError, AttributeError):  # a list, which nothing can refer to weakly
                self._of_dataset.append((weakref.ref(loader.dataset), at))

    def of(self, loader: Any) -> CodeLine | None:
        """Where it was made; a framework's copy of a loader was made where the loader was."""
        found = None
        with suppress(TypeError):  # a loader that has no hash
            found = self._made.get(loader)
        if found is None or found.by_library:
            dataset = _dataset_of(loader)
            here = ((_dataset_of(other), at) for other, at in list(self._made.items()) if not at.by_library)
            gone = ((known(), at) for known, at in self._of_dataset)
            found = next((at for own, at in (*here, *gone) if own is dataset is not None), found)
        return found


def _dataset_of(loader: Any) -> Any:
    with suppress(Exception):  # a loader may be anything
        return loader.dataset
    return None


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of the variables. Before Python 3.13, it is empty for a function that calls `locals()` or `vars()`.

    In those versions, a frame has a single dictionary of its variables, and reading it updates it. If the function kept
    that dictionary, it would change. Otherwise the variables are removed from it after the copy, since they would stay
    alive until the function returns. What `exec` has put there stays.
    """
    code = frame.f_code
    shared = sys.version_info < (3, 13) and code.co_flags & CO_OPTIMIZED
    if shared and _asks_for_them(code):
        return {}
    found = frame.f_locals
    copied = dict(found)
    if shared and sys.getrefcount(found) <= _OF_NOBODY_ELSE:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            found.pop(name, None)
    return copied


@functools.lru_cache(maxsize=1024)
def _asks_for_them(code: CodeType) -> bool:
    """Whether the function uses `locals` or `vars` as a global name, not as an attribute."""
    return not _ASK_FOR_THEM.isdisjoint(code.co_names) and any(
        step.opname == "LOAD_GLOBAL" and step.argval in _ASK_FOR_THEM for step in dis.get_instructions(code)
    )
