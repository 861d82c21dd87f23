"""Starts processes in the folder of one version of a user's code, which import only that version's modules.

The fork server imports no user code, so both versions fork from the same server. Two servers would differ in memory
layout, a bias that every pair would repeat. Source: Mytkowicz et al. 2009, "Producing Wrong Data Without Doing Anything
Obviously Wrong!", ASPLOS.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.metadata import distributions
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlparse

from loaderbench.runner.server import TrialServer

_OURS = __name__.partition(".")[0]
_EDITABLE = "__editable__"
"""Prefix of the modules that setuptools writes for editable installs; their `MAPPING` maps packages to folders."""


@dataclass(frozen=True)
class Place:
    """The location of a version: `root` holds all of its files; `folder` is the working folder of its processes.

    `home` is the tree that this process would import from; its paths are mapped to `root`. `foreign` is the root of the
    other version. `copies` are modules that are installed as a copy of `home`.
    """

    root: Path
    folder: Path
    home: Path
    foreign: Path
    copies: frozenset[str] = frozenset()

    def enter(self) -> None:
        """Make this process work in and import from this place."""
        os.chdir(self.folder)
        sys.path[:] = self.moved(sys.path)
        for name, module in list(sys.modules.items()):
            if name.startswith(_EDITABLE) and isinstance(mapping := getattr(module, "MAPPING", None), dict):
                mapping.update({package: next(self.moved([path]), "") for package, path in mapping.items()})
        if self.foreign != self.root:
            sys.meta_path.insert(0, _RefusingFinder(self))
        importlib.invalidate_caches()

    def moved(self, entries: Sequence[str]) -> Iterator[str]:
        """Map import folders to this version, leaving out those that it does not have."""
        for entry in entries:
            path = Path(entry).resolve()
            if not path.is_relative_to(self.home) or path.is_relative_to(self.root) or _is_installed(path):
                yield entry
            elif (moved_path := self.root / path.relative_to(self.home)).exists():
                yield str(moved_path)

    def is_foreign(self, origin: str) -> bool:
        """Whether a module's file belongs to the other version."""
        path = Path(origin).resolve()
        own = path.is_relative_to(self.root) and not self.foreign.is_relative_to(self.root)
        return path.is_relative_to(self.foreign) and not own and not _is_installed(path)


def installed_copies(home: Path) -> frozenset[str]:
    """Top-level modules of packages installed as a copy of a tree, which would be the same for both versions."""
    found: set[str] = set()
    for package in distributions():
        with suppress(ValueError):  # invalid JSON
            origin = json.loads(package.read_text("direct_url.json") or "{}")
            folder = Path(unquote(urlparse(origin.get("url", "")).path)).resolve()
            is_copy = origin.get("url", "").startswith("file:") and not origin.get("dir_info", {}).get("editable")
            if is_copy and folder.is_relative_to(home):
                found |= {file.parts[0].removesuffix(".py") for file in package.files or () if file.suffix == ".py"}
    return frozenset(found) - {_OURS}


def _is_installed(path: Path) -> bool:
    """Whether a file belongs to the Python environment, which can be inside a user's repository."""
    return path.is_relative_to(Path(sys.prefix).resolve()) or "site-packages" in path.parts


class _RefusingFinder:
    """The first module finder: delegates to the others, and refuses modules of the other version."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module with the other finders. Raises `ImportError` if it belongs to the other version, or to both."""
        others = (finder for finder in tuple(sys.meta_path) if finder is not self)
        found = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if found is not None and found.origin and name.partition(".")[0] != _OURS:
            self._refuse(name, found.origin)
        return found

    def _refuse(self, name: str, origin: str) -> None:
        if self._place.is_foreign(origin):
            raise ImportError(f"{name} would be imported from {origin}, which belongs to the other version")
        if name in self._place.copies and _is_installed(Path(origin).resolve()):
            raise ImportError(f"{name} is an installed copy, the same for both versions; use `pip install -e .`")


class PlacedServer(TrialServer):
    """Starts its processes in the place of one version."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place

    def _start(self, target: Callable[..., None], *args: object) -> BaseProcess:
        return super()._start(_run, self._place, target, args)


def _run(place: Place, target: Callable[..., None], args: Sequence[Any]) -> None:
    place.enter()
    target(*args)
