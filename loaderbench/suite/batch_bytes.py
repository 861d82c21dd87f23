"""Estimates how many bytes of batches a configuration has in flight, from the suite and the loader."""

from __future__ import annotations

from loaderbench.loaders import prefetch_of
from loaderbench.ranks import process_count
from loaderbench.records import Config
from loaderbench.suite.model import Suite


def batch_bytes(suite: Suite, config: Config) -> int | None:
    """Bytes of one batch; `None` if unknown."""
    found = prefetch_of(suite.loader, config)
    each = suite.dataset.with_axes(config).sample_bytes()
    return None if each is None or found.batch_size is None else found.batch_size * each


def prefetched_bytes(suite: Suite, config: Config) -> int | None:
    """Bytes of all batches that are ready or in flight, in all ranks; `None` if their size or count is unknown.

    0 if the consumer's own process loads, because nothing is shared then.
    """
    found = prefetch_of(suite.loader, config)
    if not found.shares_memory:
        return 0
    each = batch_bytes(suite, config)
    return None if each is None or found.batches is None else found.batches * each * process_count(config)
