"""Batches that say when they are freed."""

from __future__ import annotations

import weakref


class Batch(list[int]):
    """One that a weak reference can follow."""


class Followed:
    """Batches of a loop, with whether the one before each was already freed when it was asked for."""

    def __init__(self, number: int) -> None:
        self.number, self.freed = number, list[bool]()

    def __iter__(self) -> Followed:
        self._last: weakref.ref[Batch] | None = None
        return self

    def __next__(self) -> Batch:
        if self._last is not None:
            self.freed.append(self._last() is None)
        self.number -= 1
        if self.number < 0:
            raise StopIteration
        made = Batch([0] * 4)
        self._last = weakref.ref(made)
        return made
