"""A fixed piece of work, timed beside every trial, which tells how fast the machine is just then."""

from __future__ import annotations

import io
import time

from PIL import Image

from loaderbench.datasets.photos import reference_jpeg

REPEATS = 5


class ReferenceDecode:
    """Decodes one known JPEG in this process."""

    def __init__(self) -> None:
        self._jpeg = reference_jpeg()

    def time_s(self) -> float:
        """Return the median seconds of a decode now; some ten milliseconds of work."""
        return sorted(self._once_s() for _ in range(REPEATS))[REPEATS // 2]

    def _once_s(self) -> float:
        began_s = time.perf_counter()
        with Image.open(io.BytesIO(self._jpeg)) as image:
            image.convert("RGB")
        return time.perf_counter() - began_s
