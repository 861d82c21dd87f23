"""Imports loaderbench's modules in a script's process without picking up the script's files of the same name."""

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
    """Save `sys.path` before the script starts, which puts the script's folder first."""
    _before_script[:] = sys.path


@contextmanager
def own_imports() -> Iterator[None]:
    """Within this block, imports in this thread use the saved path.

    If the script has a file of the same name, such as `statistics.py`, the imported module is removed from
    `sys.modules` at the end, so a later import in the script finds the script's file. Modules that the script has
    already imported are reused.
    """
    finder = _Finder(_before_script)
    if _before_script:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.meta_path.remove(finder)
        finder.remove_names_of_script()


class _Finder(MetaPathFinder):
    """Finds top-level modules on a given path, for imports in one thread."""

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

    def remove_names_of_script(self) -> None:
        """Remove modules from `sys.modules` if the script has a file of the same name."""
        of_script = [place for place in sys.path if place not in self._path]
        for name in self._found:
            if PathFinder.find_spec(name, of_script) is not None:
                sys.modules.pop(name, None)
