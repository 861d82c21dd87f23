"""The cache of decoded images does not fit in memory, so the kernel moves parts of it to swap.

Triggers when the loader waits for memory that is swapped out, and `image_cache` is set.

What it does: decodes images again in every epoch, without a cache.

How to confirm: measure again; nothing is swapped out, and throughput rises.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option

REMEDY = CauseRemedy(
    id="uncached_images",
    title="Decode images in every epoch instead of caching them",
    effort=0,
    applies=lambda found: found.is_swapped and found.option("image_cache") is not None,
    change=option(image_cache=None),
    costs=("CPU time for decoding in every epoch",),
)
