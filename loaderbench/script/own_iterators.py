"""Records subclasses of torch's `DataLoader` whose own `__iter__` begins an epoch, like torchdata's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import update_wrapper
from itertools import islice
from types import CodeType, MethodType
from typing import Any

from loaderbench.script.naming import MOST_HELD
from loaderbench.stderr import say

_HOOK = "__init_subclass__"
_MOST_DECORATORS = 10
Iterate = Callable[[Any], Iterator[Any]]


@dataclass(frozen=True)
class _Changed:
    """A class with its original and its replaced `__iter__`."""

    kind: Any
    usual: Any
    ours: Any


class _Recorded:
    """An `__iter__` that records epochs. Pickled by value, as by cloudpickle, it becomes the original `__iter__`."""

    def __init__(self, usual: Any, iterate: Iterate) -> None:
        self._usual, self._iterate = usual, iterate
        update_wrapper(self, usual)

    def __get__(self, loader: Any, owner: Any = None) -> Any:
        return self if loader is None else MethodType(self._iterate, loader)

    def __call__(self, loader: Any) -> Iterator[Any]:
        return self._iterate(loader)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._usual,)


def _itself(usual: Any) -> Any:
    """What a pickled `_Recorded` is loaded as: the original `__iter__`."""
    return usual


class OwnIterators:
    """Replaces the `__iter__` of all subclasses of a kind of loader, including subclasses defined later.

    An epoch is recorded in one place: in the class whose `__iter__` begins the epoch without calling a base class, or
    in `kind`. `epoch` records an epoch, and `is_here` says whether this process is recorded. `on_other_epoch` is called
    with the loader when an unrecorded `__iter__` runs, which can reuse an iterator that the loader keeps.
    """

    def __init__(
        self, kind: Any, epoch: Iterate, is_here: Callable[[], bool], on_other_epoch: Callable[[Any], None]
    ) -> None:
        self._kind, self._epoch, self._is_here, self._on_other_epoch = kind, epoch, is_here, on_other_epoch
        self._changed: dict[int, _Changed] = {}  # by the id of the class, whose hash can be user code
        self._is_over = False
        self._passed_on: set[str] = set()
        self._begun: set[str] = set()
        self._usual_hook = vars(kind).get(_HOOK)

    def change(self) -> None:
        """Replace `__iter__` of all present and future subclasses."""
        kind, usual = self._kind, self._usual_hook

        def __init_subclass__(cls: type[Any], /, **options: Any) -> None:  # noqa: N807 - replaces a method of this name
            if usual is None:
                super(kind, cls).__init_subclass__(**options)
            else:
                usual.__get__(None, cls)(**options)
            self._replace_iter(cls)

        self._hook = classmethod(__init_subclass__)
        setattr(kind, _HOOK, self._hook)
        waiting = list(kind.__subclasses__())
        while waiting:
            found = waiting.pop()
            self._replace_iter(found)
            waiting += type.__subclasses__(found)

    def undo(self) -> None:
        """Undo the changes, except where other code has changed the classes since."""
        self._is_over = True
        if vars(self._kind).get(_HOOK) is self._hook:
            if self._usual_hook is None:
                delattr(self._kind, _HOOK)
            else:
                setattr(self._kind, _HOOK, self._usual_hook)
        for one in self._changed.values():
            with suppress(Exception):  # a class can be arbitrary
                if vars(one.kind).get("__iter__") is one.ours:
                    one.kind.__iter__ = one.usual

    def begins(self, loader: Any, owner: Any) -> bool:
        """Whether an epoch over this loader is recorded in the `__iter__` of class `owner`."""
        name = type(loader).__name__
        if self._owner(loader) is owner:
            self._begun.add(name)
            return True
        return False

    def usual(self, loader: Any) -> Iterate | None:
        """The function that usually begins an epoch over this loader; `None` if that is `__iter__` of `kind`."""
        changed = self._changed.get(id(self._owner(loader)))
        return None if changed is None else _bound(changed.usual)

    def say_missed(self) -> None:
        """Print a line for every class that was expected to call `__iter__` of its base class, but never did."""
        for name in sorted(self._passed_on - self._begun):
            say(f"cannot record a {name}: its __iter__ does not start an epoch the way its base class does")
        self._passed_on.clear()

    def _owner(self, loader: Any) -> Any:
        known = [] if self._holds_loaders(loader) else type(loader).__mro__
        return next((one for one in known if id(one) in self._changed and not _calls_base(one)), self._kind)

    def _holds_loaders(self, loader: Any) -> bool:
        """Whether the loader contains other loaders, which are recorded in its place."""
        for name, value in getattr(loader, "__dict__", {}).items():
            several = value.values() if type(value) is dict else value if type(value) in (list, tuple) else (value,)
            some = () if name == "dataset" else tuple(islice(several, MOST_HELD))
            if any(issubclass(type(one), self._kind) and one is not loader for one in some):
                return True
        return False

    def _replace_iter(self, found: Any) -> None:
        usual = vars(found).get("__iter__")
        if usual is None or usual is self._kind.__iter__ or id(found) in self._changed or self._is_over:
            return
        try:
            iterate = _bound(usual)

            def iterate_recorded(loader: Any) -> Iterator[Any]:
                if not self._is_here():
                    return iterate(loader)
                if self.begins(loader, found):
                    return self._epoch(loader)
                self._on_other_epoch(loader)
                if not self._holds_loaders(loader):
                    self._passed_on.add(type(loader).__name__)
                return iterate(loader)

            found.__iter__ = ours = _Recorded(usual, iterate_recorded)
            self._changed[id(found)] = _Changed(found, usual, ours)
        except Exception as error:  # a class can be arbitrary
            name = getattr(found, "__name__", "DataLoader")
            say(f"cannot record a {name}: {type(error).__name__}: {error}; the script continues")


def _bound(iterate: Any) -> Iterate:
    """The class's `__iter__` as a function of a loader."""
    bind = getattr(type(iterate), "__get__", None)
    return iterate if bind is None else lambda loader: bind(iterate, loader, type(loader))()


def _calls_base(found: Any) -> bool:
    """Whether the code of a class refers to `__iter__` of a base class, where epochs then begin."""
    bases = {"super", *(one.__name__ for one in found.__mro__[1:])}
    used = (
        names for value in list(vars(found).values()) for code in _codes_of(value) for names in _names_by_function(code)
    )
    return any("__iter__" in names and not bases.isdisjoint(names) for names in used)


def _codes_of(value: Any) -> Iterator[CodeType]:
    """The code of a function, and of the functions that its decorators wrap."""
    with suppress(Exception):  # an attribute can be an arbitrary object
        for _ in range(_MOST_DECORATORS):
            code = getattr(value, "__code__", None)
            if isinstance(code, CodeType):
                yield code
            value = getattr(value, "__wrapped__", None)


def _names_by_function(code: CodeType) -> Iterator[set[str]]:
    """The names used in a function, then those in each nested function."""
    yield {*code.co_names}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_by_function(constant)
