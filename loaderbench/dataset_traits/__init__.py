"""Traits of a dataset that decide which fixes fit and which figures to distrust; found without calling it."""

from loaderbench.dataset_traits.streams import is_undivided
from loaderbench.dataset_traits.traits import traits_of

__all__ = ["is_undivided", "traits_of"]
