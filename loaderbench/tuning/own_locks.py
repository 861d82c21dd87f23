"""Locks for a trial alone: one that is killed while it holds a lock of the script would block the script forever."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Sequence
from multiprocessing.sharedctypes import SynchronizedBase
from multiprocessing.synchronize import Condition, SemLock
from typing import Any

from loaderbench.tuning.obstacles import held_by


def renew_locks(parts: Sequence[Any], start_method: str) -> None:
    """In a forked copy: make every lock of `multiprocessing` in these objects anew, for the copy and its workers.

    `start_method` is that of the workers. A lock that somebody holds now is free in the copy. Values in shared memory
    stay shared.
    """
    held = list(held_by(parts))
    context: Any = multiprocessing.get_context(start_method)
    for lock in _of(SemLock, held):
        own = lock._semlock
        value = 1 if own.maxvalue == 1 else own._get_value()
        SemLock.__init__(lock, own.kind, value, own.maxvalue, ctx=context)
    for condition in _of(Condition, held):  # which keeps the lock's methods as its own, as values do
        condition._make_methods()
    for shared in _of(SynchronizedBase, held):
        lock = shared.get_lock()
        vars(shared).update(acquire=lock.acquire, release=lock.release)


def _of(kind: type, held: Iterable[Any]) -> list[Any]:
    """By their types alone: no code of the user's is asked."""
    return [one for one in held if issubclass(type(one), kind)]
