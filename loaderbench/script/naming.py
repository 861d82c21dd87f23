"""Finds the name of a loader, and the lines that create it and iterate over it, from the script's frames."""

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
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from loaderbench.code_places import CodeLine, is_library, is_ours
from loaderbench.tracing.other_loader import OtherLoader

_MOST_FRAMES = 60
MOST_HELD = 100  # entries of a dictionary or sequence that are searched for loaders

_LOCALS_FUNCTIONS = {"locals", "vars"}

_OF_TARGETS = ("STORE_", "UNPACK_", "EXTENDED_ARG", "CACHE")
"""Instructions that assign the variables of a `for` loop."""

UNKNOWN = "A library"
"""The module of library code without a name."""

_UNSHARED_REFERENCES = 3
"""Reference count of a dictionary that only the frame, this module, and `getrefcount` itself refer to."""


@dataclass(frozen=True)
class Place:
    """The line of the user's code where an epoch begins, and the loader's name there.

    `made` is the line that created the loader; `None` if unknown.
    """

    name: str
    file: str
    line: int
    made: CodeLine | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.made or f'{Path(self.file).name}:{self.line}'})"


def command_of_script() -> str:
    """The script's command line. The script may have emptied `sys.argv` since."""
    program, *arguments = sys.argv or sys.orig_argv[1:] or ["python"]
    return shlex.join([Path(program).name, *arguments])


def place_of(loader: Any, made: CodeLine | None = None) -> Place:
    """Find the loader's name on the stack that begins its epoch.

    The outermost function with a name for it wins: `train_loader` of the script, not `loader` of a function that
    receives it. There, a variable comes first, then keys of dictionaries and attributes of `self`, then parameters and
    variables of `for` loops. Without any of these, it is an object that holds the loader, innermost first, or else the
    dataset's type. The line is that of the innermost code outside of libraries. The script's variables can hold
    arbitrary objects: none of their code is run, and the loader gets a name even if an exception is raised.
    """
    if issubclass(type(loader), OtherLoader):
        loader = loader.of_user
    frames = list(_frames())
    own = next((frame for frame in frames if not is_library(frame.f_code.co_filename)), frames[-1] if frames else None)
    file, line = (own.f_code.co_filename, own.f_lineno) if own else ("", 0)
    named = None
    with suppress(Exception):
        named = next((name for frame in reversed(frames) if (name := _own_name_in(frame, loader))), None)
        named = named or next((name for frame in frames if (name := _name_in(frame, loader))), None)
    return Place(named or _name_by_dataset(loader), file, line, made)


def description_of(loader: Any) -> str:
    """The loader's place, or its class if the place cannot be found."""
    try:
        return str(place_of(loader))
    except Exception:  # possibly the reason why it cannot be recorded
        return f"a {type(loader).__name__}"


def _name_by_dataset(loader: Any) -> str:
    kind = type(loader)
    with suppress(Exception):  # the user's loader can raise
        kind = type(getattr(loader, "dataset", loader))
    return f"{kind.__name__} loader"


def _frames() -> Iterator[FrameType]:
    """The frames that began the epoch, innermost first, without our own."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        if not is_ours(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _own_name_in(frame: FrameType, loader: Any) -> str | None:
    """The variable of the user's code that is the loader itself, a key of a dictionary, or an attribute of `self`."""
    if is_library(frame.f_code.co_filename):
        return None
    own = locals_of(frame)
    variables = [(name, value) for name, value in (*own.items(), *list(frame.f_globals.items())) if _is_users(name)]
    attributes = [(name, value) for name, value in list(attributes_of(own.get("self")).items()) if _is_users(name)]
    names = [name for name, value in variables if value is loader]
    received = _receiving_names(frame.f_code)
    found = next((name for name in names if name not in received), None)
    found = found or next((key for name, value in variables if (key := _key_in(name, value, loader))), None)
    found = found or next((name for name, value in attributes if value is loader), None)
    found = found or next((key for name, value in attributes if (key := _key_in(name, value, loader))), None)
    return found or next(iter(names), None)


@functools.lru_cache(maxsize=1024)
def _receiving_names(code: CodeType) -> frozenset[str]:
    """The parameters of a function, and the variables of its `for` loops."""
    found = [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
    in_target = False
    for step in dis.get_instructions(code):
        if in_target and step.opname.startswith("STORE_"):
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            found += names[:1] if "LOAD" in step.opname else names
        in_target = step.opname == "FOR_ITER" or (in_target and step.opname.startswith(_OF_TARGETS))
    return frozenset(found)


def _key_in(name: str, value: Any, loader: Any) -> str | None:
    """The expression for the value of a dictionary, such as `loaders['train']`."""
    return _element_name(name, value, loader) if issubclass(type(value), dict) else None


def _is_users(name: str) -> bool:
    """Whether a name was written by hand: tools that rewrite code add variables with other names."""
    return name.isidentifier() and name != "self"


def _name_in(frame: FrameType, loader: Any) -> str | None:
    """The variable of the user's code that holds the loader, or the attribute of `self` that does."""
    if is_library(frame.f_code.co_filename):
        return None
    own = locals_of(frame)
    found = _name_among(own, loader) or _name_among(frame.f_globals, loader)
    if found is not None:
        return found
    return _name_among(attributes_of(own.get("self")), loader)


def _name_among(names: Any, loader: Any) -> str | None:
    """The name of the loader, or else of an object that wraps it, like a framework's own loader."""
    own = [(name, value) for name, value in list(names.items()) if _is_users(name)]
    found = next((name for name, value in own if value is loader), None)
    found = found or next((part for name, value in own if (part := _element_name(name, value, loader))), None)
    return found or next((name for name, value in own if _holds(value, loader)), None)


def _element_name(name: str, value: Any, loader: Any) -> str | None:
    """The expression for an element, such as `loaders['train']` of a dictionary or `loaders[0]` of a sequence.

    For fastai's `DataLoaders`: `dls.train` or `dls.valid`. A `Learner` holds them as its `dls`.
    """
    kind = type(value)
    pairs: Iterable[Any] | None = None
    if issubclass(kind, dict):
        pairs = dict.items(value)
    elif issubclass(kind, list | tuple):
        pairs = enumerate((list if issubclass(kind, list) else tuple).__iter__(value))
    if pairs is not None:
        return next((f"{name}[{key!r}]" for key, held in list(islice(pairs, MOST_HELD)) if held is loader), None)
    if not str(kind.__module__).startswith("fastai."):
        return None
    of_learner = attributes_of(value).get("dls")
    name, loaders = (name, value) if of_learner is None else (f"{name}.dls", of_learner)
    parts = ((part, getattr(loaders, part, None)) for part in ("train", "valid"))
    return next((f"{name}.{part}" for part, own in parts if own is loader), None)


def _holds(value: Any, loader: Any) -> bool:
    return any(held is loader for held in list(attributes_of(value).values()))


def attributes_of(value: Any) -> Any:
    """The dictionary of an object's own attributes; empty if its class computes `__dict__` in code.

    Lazy objects, as in werkzeug and Django, would be created by any attribute access that their class answers.
    """
    for kind in type(value).__mro__:
        own = vars(kind).get("__dict__")
        if own is not None:
            return own.__get__(value) if type(own) in (GetSetDescriptorType, MemberDescriptorType) else {}
    return {}


class Makers:
    """Records the line that creates each loader, from inside the loader's `__init__`."""

    def __init__(self) -> None:
        self._of_dataset: list[tuple[weakref.ref[Any], CodeLine]] = []  # also of freed loaders
        self._most_kept = 64
        self._made: weakref.WeakKeyDictionary[Any, CodeLine] = weakref.WeakKeyDictionary()

    def note(self, loader: Any) -> None:
        """Record the innermost line that is neither in a library nor in the loader's own class."""
        frame: FrameType | None = sys._getframe(1)
        library = ""
        while frame is not None:
            file = frame.f_code.co_filename
            if not is_ours(file) and not _is_called_on(loader, frame):
                if not is_library(file):
                    self._keep(loader, CodeLine(file, frame.f_lineno, library))
                    return
                library = str(frame.f_globals.get("__name__", "")) or UNKNOWN
            frame = frame.f_back

    def _keep(self, loader: Any, at: CodeLine) -> None:
        self._made[loader] = at
        if not at.library:
            with suppress(TypeError, AttributeError):  # a list, for example, has no weak references
                self._of_dataset.append((weakref.ref(loader.dataset), at))
        if len(self._of_dataset) >= self._most_kept:
            first = {
                id(own): (known, line) for known, line in reversed(self._of_dataset) if (own := known()) is not None
            }
            self._of_dataset = list(first.values())  # one of each dataset that is in use
            self._most_kept = max(self._most_kept, 2 * len(first))

    def of(self, loader: Any) -> CodeLine | None:
        """The line that created the loader. A framework's copy of a loader counts as created where the original was."""
        found = None
        with suppress(TypeError):  # the loader is not hashable
            found = self._made.get(loader)
        if found is None or found.library:
            dataset = _dataset_of(loader)
            here = ((_dataset_of(other), at) for other, at in list(self._made.items()) if not at.library)
            gone = ((known(), at) for known, at in self._of_dataset)
            found = next((at for own, at in (*here, *gone) if own is dataset is not None), found)
        return found


def _is_called_on(loader: Any, frame: FrameType) -> bool:
    """Whether a function's first argument is the loader, as in its methods and in what a library wraps them with."""
    given = locals_of(frame).get(next(iter(frame.f_code.co_varnames), ""))
    return (given[0] if type(given) is tuple and given else given) is loader


def _dataset_of(loader: Any) -> Any:
    with suppress(Exception):  # a loader can be an arbitrary object
        return loader.dataset
    return None


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of the frame's variables. Before Python 3.13, empty for a function that calls `locals()` or `vars()`.

    In those versions, a frame has a single dictionary of its variables, and reading it updates it. If the function kept
    that dictionary, its contents would change. Otherwise the variables are removed from it after the copy, since they
    would stay alive until the function returns. Variables that `exec` added stay.
    """
    code = frame.f_code
    shared = sys.version_info < (3, 13) and code.co_flags & CO_OPTIMIZED
    if shared and _calls_locals(code):
        return {}
    found = frame.f_locals
    copied = dict(found)
    if shared and sys.getrefcount(found) <= _UNSHARED_REFERENCES:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            found.pop(name, None)
    return copied


@functools.lru_cache(maxsize=1024)
def _calls_locals(code: CodeType) -> bool:
    """Whether the function uses `locals` or `vars` as a global name, not as an attribute."""
    return not _LOCALS_FUNCTIONS.isdisjoint(code.co_names) and any(
        step.opname == "LOAD_GLOBAL" and step.argval in _LOCALS_FUNCTIONS for step in dis.get_instructions(code)
    )
