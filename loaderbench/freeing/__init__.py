"""Make one stage of a loader free in a trial's process, by replaying its earlier results."""

from loaderbench.freeing.order import Freeing

__all__ = ["Freeing"]
