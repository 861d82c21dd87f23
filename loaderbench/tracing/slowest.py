"""The slowest samples of a worker, kept in its shared block."""

from __future__ import annotations

import operator
from typing import Any

from loaderbench.tracing import block as layout
from loaderbench.tracing.block import Block
from loaderbench.tracing.clock import now_s


class SlowestSamples:
    """Keeps as many samples as the block has room for.

    A sample is among them if it took longer than `floor_s` seconds.
    """

    def __init__(self, block: Block) -> None:
        self._block, self._since_s = block, 0.0
        self._walls_s: list[float] = list(map(float, block.slow[:: layout.SLOW_FIELDS]))
        self.floor_s = min(self._walls_s)

    def keep(self, wall_s: float, index: Any, stage: int, path: str) -> None:
        """Replace the fastest of the kept samples. `stage` is where the new sample spent the most time."""
        slow, walls_s = self._block.slow, self._walls_s
        place = walls_s.index(self.floor_s)
        at = place * layout.SLOW_FIELDS
        slow[at] = 0.0  # readers skip the slot while it is rewritten
        slow[at + 1] = _number(index)
        slow[at + 2], slow[at + 3] = float(stage), now_s()
        self._block.set_path(place, path)
        slow[at] = walls_s[place] = wall_s
        self.floor_s = min(walls_s)

    def forget_before(self, since_s: float) -> None:
        """Drop slow samples from before a mark, to make room: nobody reads them any more."""
        if since_s == self._since_s:
            return
        self._since_s = since_s
        for place in range(layout.SLOWEST):
            if self._block.slow[place * layout.SLOW_FIELDS + 3] < since_s:
                self._block.slow[place * layout.SLOW_FIELDS] = self._walls_s[place] = 0.0
        self.floor_s = min(self._walls_s)


def _number(index: Any) -> float:
    """The index as a number; -1 for a key that is not an integer."""
    try:
        return float(operator.index(index))
    except TypeError:
        return -1.0
