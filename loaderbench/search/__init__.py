"""Which configuration is measured next: a strategy proposes rounds, the session measures them."""

from loaderbench.search.grid import Grid
from loaderbench.search.selection import MOST_CANDIDATES, ForwardSelection
from loaderbench.search.strategy import Strategy

__all__ = ["MOST_CANDIDATES", "ForwardSelection", "Grid", "Strategy"]
