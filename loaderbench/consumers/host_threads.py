"""CPU time taken in the main process, by one thread or by several, as a training step on the CPU takes it."""

from __future__ import annotations

import math
import threading
import time
import zlib

REGION_S = 0.001
"""Of one parallel region: about what an operator of a training step on the CPU takes."""

_COMPUTED = bytes(1 << 16)


def compute_for(cpu_s: float) -> None:
    """Take so much CPU time in this thread, and leave the interpreter to others: a checksum releases its lock."""
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        zlib.crc32(_COMPUTED)


class ComputingThreads:
    """The calling thread and `count - 1` others, which divide what is to be computed, as OpenMP's threads do.

    They compute in regions, which all of them end together: a thread that is done spins until the others are. On CPUs
    that workers use as well, each region takes as long as its slowest thread. Between calls the others sleep.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._regions_ended = [0] * count
        self._regions, self._region_s = 0, 0.0
        self._begin = threading.Barrier(count)
        for number in range(1, count):
            threading.Thread(target=self._help, args=(number,), daemon=True).start()

    def compute_for(self, cpu_s: float) -> None:
        """Take so much CPU time in all threads together, and more where they spin."""
        if self._count == 1:
            compute_for(cpu_s)
            return
        self._regions_ended = [0] * self._count
        self._regions = math.ceil(cpu_s / self._count / REGION_S)
        self._region_s = cpu_s / self._count / max(1, self._regions)
        self._begin.wait()
        self._take_part(0)

    def _help(self, number: int) -> None:
        while True:
            self._begin.wait()
            self._take_part(number)

    def _take_part(self, number: int) -> None:
        ended = self._regions_ended
        for region in range(1, self._regions + 1):
            compute_for(self._region_s)
            ended[number] = region
            while min(ended) < region:
                zlib.crc32(_COMPUTED)
