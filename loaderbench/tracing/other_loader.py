"""A loader of another library that is traced as torch's `DataLoader` is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any


class OtherLoader(ABC):
    """It has the attributes of torch's.

    `of_user` is the loader that the user knows, and `passed` what the library passes to torch's iterator.
    """

    of_user: Any
    passed: Any

    @abstractmethod
    def begin_epoch(self) -> Iterator[Any]:
        """Begin an epoch as the library does."""
