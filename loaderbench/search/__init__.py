"""Which configuration is measured next: a strategy proposes rounds, the session measures them."""

from loaderbench.search.grid import Grid
from loaderbench.search.strategy import Strategy

__all__ = ["Grid", "Strategy"]
