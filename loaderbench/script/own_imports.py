"""Imports of our own inside a script's process, where a file of the script may have the name of a module we need."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import get_ident
from types import ModuleType

_before_script: list[str] = []


def note_path() -> None:
    """Remember where modules are found before the script begins, whose own folder then comes first."""
    _before_script[:] = sys.path


@contextmanager
def own_imports() -> Iterator[None]:
    """Modules that this thread imports meanwhile are not the script's.

    Where the script has a file of the same name, such as `statistics.py`, the module is forgotten at the end, and the
    script's own import still finds its file. What the script has imported already stays what it is.
    """
    finder = _Finder(_before_script)
    if _before_script:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.meta_path.remove(finder)
        finder.forget_those_of_the_script()


class _Finder(MetaPathFinder):
    """Finds top-level modules of one thread on a path of its own."""

    def __init__(self, path: Sequence[str]) -> None:
        self._path, self._thread, self._found = list(path), get_ident(), list[str]()

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if path is not None or get_ident() != self._thread:
            return None
        found = PathFinder.find_spec(name, self._path, target)
        if found is not None:
            self._found.append(name)
        return found

    def forget_those_of_the_script(self) -> None:
        """Of what was found."""
        of_script = [place for place in sys.path if place not in self._path]
        for name in self._found:
            if PathFinder.find_spec(name, of_script) is not None:
                sys.modules.pop(name, None)
