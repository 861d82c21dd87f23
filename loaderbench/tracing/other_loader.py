"""A loader of another library that is traced like torch's `DataLoader`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any


class OtherLoader(ABC):
    """A loader with the attributes of torch's `DataLoader`.

    `of_user` is the loader object that the user holds, and `passed` is what the library passes to torch's iterator.
    """

    of_user: Any
    passed: Any

    @abstractmethod
    def begin_epoch(self) -> Iterator[Any]:
        """Begin an epoch like the library."""
