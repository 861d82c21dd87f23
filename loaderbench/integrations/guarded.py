"""Measures the loader of a test, which exists only in the test's process and in forked copies of it."""

from __future__ import annotations

import copy
import gc
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loaderbench.datasets.target import Target
from loaderbench.errors import MissingError, UsageError
from loaderbench.runner.forking import ForkingServer
from loaderbench.session import run_suite
from loaderbench.suite import LoadedSuite, Suite
from loaderbench.tuning.forked import NO_FORK, call_in_copy

TARGET = "loaderbench.integrations.guarded:guarded_loader"
_guarded: list[Any] = []


@dataclass(frozen=True)
class GuardOrder:
    """What to measure of a loader, and for how long. `name` is the name of the test, and `file` its path."""

    name: str
    file: Path
    rounds: int
    seconds: float
    demand: float | None = None


class GuardedLoader(Target):
    """A dataset of kind `target` for a test's loader. `of` is the name of the test."""

    of: str = ""

    def describe(self, sweep: Mapping[str, Any], folder: Path) -> str:  # noqa: ARG002 - part of the protocol
        """The name of the test, which makes the runs of its loader comparable."""
        return f"loader of {self.of}"

    def targets(self, sweep: Mapping[str, Any]) -> list[str]:  # noqa: ARG002
        """An empty list: there is nothing to import."""
        return []


def guarded_loader() -> Any:
    """The loader, newly created if the test passed a function. Pinning is off: a forked process cannot use a GPU."""
    from torch.utils.data import DataLoader

    given = _guarded[0]
    loader = given() if callable(given) else given
    if isinstance(loader, DataLoader):
        loader = copy.copy(loader)
        vars(loader).update(_iterator=None, pin_memory=False)
    return loader


def measure_guarded(loader: Any, order: GuardOrder, folder: Path) -> None:
    """Measure a loader, or the loader that a function returns, in forked processes, and write a run folder.

    Raises `MissingError` if the system cannot fork, and `UsageError` if the loader cannot be measured.
    """
    if not hasattr(os, "fork"):
        raise MissingError(NO_FORK)
    from loaderbench.runner import preload  # noqa: F401 - imported once here instead of in every trial

    gc.unfreeze()  # undoes a freeze in that import, meant for a process that only forks
    _guarded[:] = [loader]
    try:
        found = call_in_copy(lambda: _measure(_suite(order), folder))
    finally:
        _guarded.clear()
    if found.interrupted:
        raise KeyboardInterrupt
    if found.raised:
        raise UsageError(found.raised)


def _measure(loaded: LoadedSuite, folder: Path) -> None:
    gc.freeze()  # the copy must not free what it inherited
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # pytest's streams bypass the trial's log
    run_suite(loaded, folder, server=ForkingServer())


def _suite(order: GuardOrder) -> LoadedSuite:
    consumer = {"kind": "none"} if order.demand is None else {"kind": "emulated", "demand": order.demand}
    suite = Suite.model_validate(
        {
            "name": order.name,
            "dataset": {"kind": "target", "target": TARGET},
            "consumer": consumer,
            "measure": {"rounds": order.rounds, "seconds": order.seconds, "verify": False},
        }
    )
    own = GuardedLoader.model_validate({"kind": "target", "target": TARGET, "of": order.name})
    return LoadedSuite(suite.model_copy(update={"dataset": own}), order.file)
