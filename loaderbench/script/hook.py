"""Waits until a script imports torch's or fastai's `DataLoader`, then records every epoch that begins."""

from __future__ import annotations

import atexit
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from loaderbench.script.launcher import HOME_OF_LAUNCHER, is_rank, note_launcher, note_rank
from loaderbench.script.naming import Makers
from loaderbench.script.order import RecordOrder, take_order
from loaderbench.script.own_imports import note_path, own_imports
from loaderbench.script.own_iterators import OwnIterators
from loaderbench.stderr import say

if TYPE_CHECKING:
    from loaderbench.script.recorder import ScriptRecorder

HOME_OF_LOADERS = "torch.utils.data.dataloader"
HOME_OF_FASTAI = "fastai.data.load"
Change = Callable[[ModuleType], None]
_MARK = "is_recorded_by_loaderbench"


def install() -> None:
    """Follow this process's record order, if there is one. Nothing is imported until the script imports torch."""
    order = take_order()
    if order is not None:
        note_path()
        watcher = _Watcher(order)
        sys.meta_path.insert(0, watcher)
        watcher.change_imported()
        if order.inherited and is_rank():
            note_rank(Path(order.folder))


class _Watcher(MetaPathFinder):
    """Import hook that changes the modules in which epochs begin, right after they are loaded."""

    def __init__(self, order: RecordOrder) -> None:
        self._order = order
        self._awaited: dict[str, Change] = {HOME_OF_LOADERS: self._record_torch}
        if order.inherited and not is_rank():
            self._awaited[HOME_OF_LAUNCHER] = lambda _: note_launcher(Path(order.folder))

    def change_imported(self) -> None:
        """Change modules that are already imported, for example by the user's own `sitecustomize`."""
        for name in [*self._awaited]:
            module = sys.modules.get(name)
            begins = getattr(getattr(module, "__spec__", None), "_initializing", False)
            if module is not None and not begins and (change := self._awaited.pop(name, None)):
                change(module)

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - part of the protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        change = self._awaited.pop(name, None)
        if change is None:
            return None
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changed(spec.loader, change)
        return spec

    def _record_torch(self, module: ModuleType) -> None:
        recorded = record_epochs(module.DataLoader, self._order)
        recorded.undo.append(self._leave)

        def record_fastai(of_fastai: ModuleType) -> None:
            from loaderbench.script.fastai import record_iterators

            record_iterators(of_fastai, recorded)

        self._awaited[HOME_OF_FASTAI] = record_fastai
        if HOME_OF_FASTAI in sys.modules:
            self.change_imported()

    def _leave(self) -> None:
        with suppress(ValueError):  # the script has already removed it
            sys.meta_path.remove(self)


class _Changed(Loader):
    """Loads a module with its usual loader, then changes the function that begins an epoch."""

    def __init__(self, own: Loader, change: Change) -> None:
        self._own, self._change = own, change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._own
        self._own.exec_module(module)
        self._change(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def record_epochs(kind: Any, order: RecordOrder) -> RecordedKind:
    """Record epochs of loaders of this kind in this process, until the script ends or enough is recorded."""
    changed = RecordedKind(kind, order)
    changed.change()
    atexit.register(changed.finish)
    return changed


def is_recorded(kind: Any) -> bool:
    """Whether the epochs of this kind of loader are already recorded."""
    return bool(getattr(kind.__iter__, _MARK, False))


class RecordedKind:
    """A kind of loader with two methods replaced: `__init__` notes the line, `__iter__` records the epoch.

    Subclasses that define `__iter__` are changed as well. `undo` holds the functions that undo all other changes; the
    recording's end calls them, too.
    """

    def __init__(self, kind: Any, order: RecordOrder) -> None:
        self.undo: list[Callable[[], None]] = []
        self._kind, self._order, self._own_pid = kind, order, os.getpid()
        self._usual, self._usual_init = kind.__iter__, kind.__init__
        self._makers = Makers()
        self._subclasses = OwnIterators(kind, self._epoch, lambda: self._is_here, self._note_pause)
        self._made: ScriptRecorder | None = None

    @property
    def _is_here(self) -> bool:
        """Whether this is the script's process, rather than a worker or another child process."""
        return os.getpid() == self._own_pid

    def change(self) -> None:
        """Replace `__init__` and `__iter__`."""

        @wraps(self._usual_init)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - replaces a method of this name
            self._usual_init(loader, *args, **kwargs)
            if self._is_here:
                with suppress(Exception):  # a loader can be an arbitrary object
                    self._makers.note(loader)

        @wraps(self._usual)
        def __iter__(loader: Any) -> Iterator[Any]:  # noqa: N807
            if self._is_here and self._subclasses.begins(loader, self._kind):
                return self._epoch(loader)
            begun: Iterator[Any] = self._usual(loader)
            return begun

        setattr(__iter__, _MARK, True)
        self._kind.__init__, self._kind.__iter__ = __init__, __iter__
        self._ours = __init__, __iter__
        self._subclasses.change()
        self.undo.append(self._subclasses.undo)

    def _epoch(self, loader: Any) -> Iterator[Any]:
        recorder = self.recorder()
        return self._begin(loader) if recorder is None else recorder.epoch(loader)

    def _note_pause(self, loader: Any) -> None:
        """Note that the script starts an epoch that may reuse an iterator being recorded."""
        if self._made is not None:
            self._made.note_pause(loader)

    def recorder(self) -> ScriptRecorder | None:
        """The recorder, created with the first epoch because importing its module costs more than all the rest.

        `None` in another process, or if creating the recorder fails, which a line on stderr reports.
        """
        if not self._is_here:
            return None
        if self._made is None:
            drawn = random.getstate()  # an imported library may use `random`
            try:
                with own_imports():
                    from loaderbench.script.recorder import ScriptRecorder

                self._made = ScriptRecorder(self._order, self._begin, self._give_back, self._makers)
            except Exception as error:
                self._give_back()
                say(f"cannot record this script: {type(error).__name__}: {error}")
            finally:
                random.setstate(drawn)
        return self._made

    def _begin(self, loader: Any) -> Iterator[Any]:
        """Begin an epoch the usual way. A loader of another library has its own method for that."""
        if not isinstance(loader, self._kind):
            of_library: Iterator[Any] = loader.begin_epoch()
            return of_library
        begun: Iterator[Any] = (self._subclasses.usual(loader) or self._usual)(loader)
        return begun

    def _give_back(self) -> None:
        """Undo the changes, unless other code has replaced the methods since."""
        while self.undo:
            self.undo.pop()()
        own_init, own_iter = self._ours
        if self._kind.__iter__ is own_iter:
            self._kind.__iter__ = self._usual
        if self._kind.__init__ is own_init:
            self._kind.__init__ = self._usual_init

    def finish(self) -> None:
        """Finish recording, at the end of the script or of its recording."""
        if not self._is_here:
            return
        self._subclasses.say_missed()
        if self._made is None:
            self._give_back()
            return
        self._made.finish()
        _keep_interrupted()


def _keep_interrupted() -> None:
    """Make sure that Python exits by SIGINT after Ctrl-C, which it forgets if code is compiled during exit."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")
