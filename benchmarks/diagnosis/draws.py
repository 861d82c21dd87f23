"""Random times, sizes and counts of scenarios: other ones for each value of the variable LOADERBENCH_DRAWS."""

from __future__ import annotations

import os
import random

DRAWS = int(os.environ.get("LOADERBENCH_DRAWS", "0"))


class Draws(random.Random):
    """The draws of one family of scenarios."""

    def __init__(self, family: int) -> None:
        super().__init__(family + 1_000_000_000 * DRAWS)

    def ms(self, least: float, most: float) -> float:
        """Milliseconds, to a tenth."""
        return round(self.uniform(least, most), 1)
