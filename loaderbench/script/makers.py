"""Where each loader of a script was made."""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from types import FrameType
from typing import Any

from loaderbench.code_places import CodeLine, is_library, is_ours
from loaderbench.script.frame_locals import locals_of


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
        found = self._made.get(loader)
        if found is None or found.by_library:
            dataset = getattr(loader, "dataset", None)
            here = ((other.dataset, at) for other, at in self._made.items() if not at.by_library)
            gone = ((known(), at) for known, at in self._of_dataset)
            found = next((at for own, at in (*here, *gone) if own is dataset is not None), found)
        return found
