"""Waits until a script imports torch's `DataLoader`, and records each epoch that one begins."""

from __future__ import annotations

import atexit
import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from loaderbench.script.order import RecordOrder, take_order

if TYPE_CHECKING:
    from loaderbench.script.recorder import ScriptRecorder

HOME_OF_LOADERS = "torch.utils.data.dataloader"


def install() -> None:
    """Follow the order of this process, if it has one; nothing is imported before the script imports torch."""
    order = take_order()
    if order is not None:
        sys.meta_path.insert(0, _Watcher(order))


class _Watcher(MetaPathFinder):
    """Finds one module, as the others do, and has it changed once it is there."""

    def __init__(self, order: RecordOrder) -> None:
        self._order = order

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - part of the protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name != HOME_OF_LOADERS:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changed(spec.loader, self._order)
        return spec


class _Changed(Loader):
    """Loads a module as another loader does, and replaces the one place where an epoch begins."""

    def __init__(self, own: Loader, order: RecordOrder) -> None:
        self._own, self._order = own, order

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._own
        self._own.exec_module(module)
        record_epochs(module.DataLoader, self._order)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def record_epochs(kind: Any, order: RecordOrder) -> None:
    """Record the epochs of each loader of this kind in this process, until the script ends or enough is recorded."""
    own_pid, usual = os.getpid(), kind.__iter__
    made: list[ScriptRecorder] = []

    def recorder() -> ScriptRecorder:
        """Made with the first epoch: importing it costs more than all the rest."""
        if not made:
            drawn = random.getstate()  # a library that is imported for it draws
            from loaderbench.script.recorder import ScriptRecorder

            random.setstate(drawn)
            made.append(ScriptRecorder(order, usual, give_back))
        return made[0]

    def __iter__(loader: Any) -> Iterator[Any]:  # noqa: N807 - it replaces one of that name
        if os.getpid() != own_pid:  # a worker, or another child
            begun: Iterator[Any] = usual(loader)
            return begun
        return recorder().epoch(loader)

    def give_back() -> None:
        if kind.__iter__ is __iter__:
            kind.__iter__ = usual

    def finish() -> None:
        if os.getpid() == own_pid and made:
            made[0].finish()
            _keep_interrupted()

    kind.__iter__ = __iter__
    atexit.register(finish)


def _keep_interrupted() -> None:
    """Let Python still exit by SIGINT after Ctrl-C: it forgets that where code is compiled while it exits."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")
