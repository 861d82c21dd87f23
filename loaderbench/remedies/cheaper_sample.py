"""The dataset's own code is the largest stage.

Triggers when `__getitem__` or the transform is the largest stage, and CPUs are saturated. One line of your own code
with most of the loading time is enough, too.

What it does: computes results once and keeps them, or moves the work to a compiled library.

How to confirm: measure again; the CPU time per sample falls.
"""

from loaderbench.remedies.own_line import costly_code

REMEDY = costly_code(
    "cheaper_sample", "Speed up __getitem__: cache or use a compiled library", stages={"sample", "transform"}
)
