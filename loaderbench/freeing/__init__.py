"""Makes one stage of a loader free in a trial's process: what the stage gave before is given again."""

from loaderbench.freeing.order import Freeing

__all__ = ["Freeing"]
