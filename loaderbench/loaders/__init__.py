"""The things under test that batches come from."""

from loaderbench.loaders.build import Batches, build_loader

__all__ = ["Batches", "build_loader"]
