"""Proposes the next configuration to measure: of a sweep, and of fixes applied on top of each other."""

from loaderbench.search.adaptive import Adaptive
from loaderbench.search.grid import Grid, why_pruned
from loaderbench.search.selection import MOST_CANDIDATES, Propose, StepwiseSelection

__all__ = ["MOST_CANDIDATES", "Adaptive", "Grid", "Propose", "StepwiseSelection", "why_pruned"]
