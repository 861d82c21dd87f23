"""Describes objects by values that are the same in another process, and that differ for a changed transform."""

from __future__ import annotations

import inspect
import re
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from mmap import mmap
from operator import itemgetter
from pathlib import Path, PurePath
from types import BuiltinMethodType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from loaderbench.code_places import is_library

MOST_OBJECTS = 2_000
MOST_OF_ONE = 50  # enough, since the files of a list are alike
MOST_WORDS = 2_000

_PLAIN = (bool, int, float, complex, type(None))
_BYTES = (bytes, bytearray, memoryview, array, mmap)
_SEQUENCES = (list, tuple, deque)
_SETS = (set, frozenset)
_WITHOUT_REPR = (*_BYTES, *_SEQUENCES, *_SETS, dict, partial)
"""Types whose `repr` covers everything that they hold."""

_OPAQUE = {"_thread", "_weakref", "asyncio", "concurrent", "logging", "multiprocessing", "threading", "weakref"}
"""Packages whose objects hold values that change between calls. Only their `repr` is used."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def described(*parts: Any) -> list[Any]:
    """Describe these objects and what they hold, level by level.

    Includes attributes, items, defaults, closures and arguments of functions. An object seen before is replaced by its
    number, so cycles end. After `MOST_OBJECTS`, an object is described by its class alone. At most `MOST_OF_ONE` items
    of a container are used, so a list of a million paths is as fast as a short one.
    """
    return _Description().of(parts)


class _Description:
    """One breadth-first walk, so a long container does not hide the objects alongside it."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, Any]] = {}  # with the object itself, because ids of freed objects are reused
        self._waiting = deque[Any]()
        self._files: dict[type, str] = {}
        self._classes = set[type]()  # whose methods were already visited
        self._digests: dict[str, str] = {}

    def of(self, parts: Iterable[Any]) -> list[Any]:
        """Describe the parts, then everything found in them."""
        found = [self._named(part) for part in parts]
        while self._waiting:
            found.append(self._one(self._waiting.popleft()))
        return found

    def _named(self, part: Any) -> Any:
        """A plain value itself. For any other object, a number under which it is described later."""
        kind = type(part)
        if kind in _PLAIN:
            return part
        if issubclass(kind, str):
            return _class_name(kind), len(part), str.__str__(part)[:MOST_WORDS]
        if id(part) not in self._met:
            if len(self._met) >= MOST_OBJECTS:
                return _class_name(kind)
            self._met[id(part)] = len(self._met), part
            self._waiting.append(part)
        return "object", self._met[id(part)][0]

    def _one(self, part: Any) -> tuple[Any, ...]:
        held = [self._named(one) for one in chain(_contents(part), self._globals(part))]
        return _class_name(type(part)), _length(part), _repr_without_addresses(part), held, self._code(part)

    def _globals(self, part: Any) -> Iterator[Any]:
        """Plain values of the global names in a user's function, or in the methods of a class, once per class.

        If the file of a class is missing, as in a notebook, the methods themselves are included.
        """
        kind = type(part)
        if kind is FunctionType:
            yield from _plain_globals([part])
        elif kind not in self._classes:
            self._classes.add(kind)
            members = chain.from_iterable(vars(base).values() for base in kind.__mro__)
            methods = [member for member in members if type(member) is FunctionType]
            yield from _plain_globals(methods)
            if not self._digest(_file_of(kind)):
                yield from methods

    def _code(self, part: Any) -> str:
        """A digest of the file that defines the object or its class; empty if there is no file."""
        if inspect.isroutine(part) or isinstance(part, type):
            return self._digest(_file_of(part))
        kind = type(part)
        if kind not in self._files:
            self._files[kind] = _file_of(kind)
        return self._digest(self._files[kind])

    def _digest(self, file: str) -> str:
        if file not in self._digests:
            self._digests[file] = ""
            with suppress(OSError):
                self._digests[file] = sha256(Path(file).read_bytes()).hexdigest()
        return self._digests[file]


def _file_of(defined: Any) -> str:
    with suppress(OSError, TypeError):
        return inspect.getsourcefile(defined) or ""
    return ""


def _class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _length(part: Any) -> int | None:
    with suppress(Exception):  # the user's `__len__` can raise any exception
        return len(part)
    return None


def _repr_without_addresses(part: Any) -> str:
    """The object's `repr` without addresses; empty if it could list a million paths."""
    kind = type(part)
    if issubclass(kind, _WITHOUT_REPR) or is_dataclass(kind):
        return ""
    with suppress(Exception):  # the user's `__repr__` can raise any exception
        return _ADDRESS.sub("", repr(part))[:MOST_WORDS]
    return ""


def _contents(part: Any) -> Iterator[Any]:
    """What the object holds that defines it. Only arrays and bytes run their own code; no user code is called."""
    kind = type(part)
    if issubclass(kind, type | ModuleType | PurePath) or kind.__module__.partition(".")[0] in _OPAQUE:
        return
    if issubclass(kind, _BYTES) or (hasattr(kind, "shape") and hasattr(kind, "__array__")):
        yield _first_bytes(part) if issubclass(kind, _BYTES) else _shape(part)
        return
    yield from _items(part, kind)
    yield from made_with(part)
    attributes = sorted(_attributes(part), key=itemgetter(0))
    yield from chain.from_iterable(attributes)


def _first_bytes(part: Any) -> str:
    with suppress(Exception):  # the object may be closed
        return bytes(part[:MOST_WORDS]).hex()
    return ""


def _shape(part: Any) -> str:
    with suppress(Exception):  # the array may belong to a closed file
        return f"{part.shape} {getattr(part, 'dtype', '')}"
    return ""


def _items(part: Any, kind: type) -> Iterator[Any]:
    """Items of a container in an order that is stable between processes; none of a large set, whose order is not."""
    if issubclass(kind, dict):
        yield from chain.from_iterable(islice(dict.items(part), MOST_OF_ONE))
    elif issubclass(kind, _SETS):
        yield from sorted(part, key=_repr_without_addresses) if (_length(part) or 0) <= MOST_OF_ONE else ()
    else:
        for sequence in _SEQUENCES:
            if issubclass(kind, sequence):
                first = list(islice(sequence.__iter__(part), MOST_OF_ONE))
                yield from () if _are_indices(first) else first


def _are_indices(first: list[Any]) -> bool:
    """Whether a long list holds integers, such as those of a random split, which differ in another process."""
    return len(first) == MOST_OF_ONE and all(type(one) is int for one in first)


def made_with(part: Any) -> Iterator[Any]:
    """What a function, method or partial runs and the values bound to it; empty for other objects."""
    kind = type(part)
    if issubclass(kind, partial):
        yield from (part.func, part.args, part.keywords)
    elif issubclass(kind, MethodType):
        yield from (part.__func__, part.__self__)
    elif issubclass(kind, BuiltinMethodType):
        yield part.__self__
    elif issubclass(kind, CodeType):
        yield from (part.co_name, part.co_firstlineno, part.co_code.hex(), part.co_names, part.co_consts)
    elif issubclass(kind, FunctionType):
        yield from (part.__code__, part.__defaults__, part.__kwdefaults__)
        for cell in part.__closure__ or ():
            with suppress(ValueError):  # the cell is empty until the enclosing function sets the value
                yield cell.cell_contents


def _plain_globals(functions: Iterable[FunctionType]) -> Iterator[Any]:
    """Names and plain values of the globals that these functions use, sorted."""
    own = [function for function in functions if not is_library(function.__code__.co_filename)]
    names = {name: one.__globals__[name] for one in own for name in one.__code__.co_names if name in one.__globals__}
    plain = {name: value for name, value in names.items() if type(value) in (*_PLAIN, str)}
    yield from chain.from_iterable(sorted(plain.items()))


def _attributes(part: Any) -> Iterator[tuple[str, Any]]:
    with suppress(Exception):  # the user's class can run arbitrary code
        yield from ((str(name), value) for name, value in object.__getattribute__(part, "__dict__").items())
    for base in type(part).__mro__:
        if "__slots__" in vars(base):
            for name, slot in vars(base).items():
                with suppress(AttributeError):  # the slot was never set
                    if isinstance(slot, MemberDescriptorType):
                        yield name, slot.__get__(part)
