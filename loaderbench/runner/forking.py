"""Starts processes by forking this one, for objects that exist only in this process."""

from __future__ import annotations

import multiprocessing
import threading
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from loaderbench.runner.scratch import claim_scratch
from loaderbench.runner.server import TrialServer


class ForkingServer(TrialServer):
    """Starts each process as a fork of this one, with its objects. CUDA does not work in forks, so none may use a GPU.

    Each process is forked from a new thread. OpenMP's threads do not survive a fork, and a forked thread that had used
    OpenMP would wait for them forever; the fork of a new thread starts its own.
    """

    uses_devices = False

    def __init__(self) -> None:
        self.method = "fork"
        self._context: Any = multiprocessing.get_context("fork")
        self._ends: weakref.WeakSet[Connection] = weakref.WeakSet()

    def warm_up(self) -> None:
        """Do nothing but claim the scratch folder: a forked process has everything imported."""
        claim_scratch()

    def pipe(self) -> tuple[Any, Any]:
        """Make a two-way pipe; the first end is closed in each process that this server starts."""
        parent_end, child_end = super().pipe()
        self._ends.add(parent_end)
        return parent_end, child_end

    def _start(self, target: Callable[..., None], *args: object) -> BaseProcess:
        """Start the process in a new thread; an exception there is raised here."""
        self.warm_up()
        process: BaseProcess = self._context.Process(target=_run, args=(list(self._ends), target, args), daemon=False)
        raised: list[BaseException] = []

        def start() -> None:
            try:
                process.start()
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]
        return process


def _run(ends: Sequence[Connection], target: Callable[..., None], args: Sequence[object]) -> None:
    """Call the target after closing the parent's pipe ends: with a copy open, the parent's death would go unnoticed."""
    for end in ends:
        end.close()
    target(*args)
