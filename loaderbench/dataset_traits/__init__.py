"""What a dataset is or holds that decides which fixes fit it, and what to distrust; found without calling it."""

from loaderbench.dataset_traits.streams import is_undivided
from loaderbench.dataset_traits.traits import traits_of

__all__ = ["is_undivided", "traits_of"]
