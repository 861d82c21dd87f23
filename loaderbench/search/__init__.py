"""Which configuration next: of a sweep, and of remedies that are tried on top of one another."""

from loaderbench.search.adaptive import Adaptive
from loaderbench.search.grid import Grid, why_pruned
from loaderbench.search.selection import MOST_CANDIDATES, Propose, StepwiseSelection

__all__ = ["MOST_CANDIDATES", "Adaptive", "Grid", "Propose", "StepwiseSelection", "why_pruned"]
