"""Starts processes by forking this one, where what they measure exists in it alone."""

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
    """Each process is a copy of this one, with its objects; it must not touch a GPU, which CUDA does not allow.

    Each is forked from a thread of its own. A thread of OpenMP's survives no fork, and a copy of a thread that has used
    OpenMP waits for them forever; that of a new thread starts others.
    """

    uses_devices = False

    def __init__(self) -> None:
        self.method = "fork"
        self._context: Any = multiprocessing.get_context("fork")
        self._ends: weakref.WeakSet[Connection] = weakref.WeakSet()

    def warm_up(self) -> None:
        """Nothing is to be imported."""
        claim_scratch()

    def pipe(self) -> tuple[Any, Any]:
        """Make a two-way pipe; the first end is closed in each process that is started here."""
        ours, theirs = super().pipe()
        self._ends.add(ours)
        return ours, theirs

    def _start(self, target: Callable[..., None], *args: object) -> BaseProcess:
        """Raises what starting it raises."""
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
    """Call it without the parent's ends of pipes: while one is open, nobody notices the parent's death."""
    for end in ends:
        end.close()
    target(*args)
