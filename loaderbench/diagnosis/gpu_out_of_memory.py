"""What an out-of-memory message of torch's CUDA allocator says of the GPU: how much there is, and who holds it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loaderbench.records import in_bytes

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = r"([\d.]+) (bytes|[KMGT]iB)"


NOTICED = 0.01
"""Of a GPU, held by other programs: a smaller share may be the CUDA context."""

FRAGMENTS = 0.1
"""Of what the process holds, unused by its allocator: some of that is there in every process."""

FRAGMENTED = "memory is fragmented: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


@dataclass(frozen=True, kw_only=True)
class GpuShortage:
    """Sizes from the message in bytes, or `None`.

    `asked` is the allocation that was refused, `own` what this process holds, and `unused` what its allocator keeps
    of that without using it.
    """

    asked: int | None
    total: int | None
    free: int | None
    own: int | None
    unused: int | None

    @property
    def needed(self) -> int | None:
        """Bytes that this process would hold with the allocation that was refused."""
        return None if self.asked is None or self.own is None else self.own + self.asked

    def __str__(self) -> str:
        """A clause for a hint; empty where the message has no sizes."""
        if self.total is None or self.needed is None or self.own is None or self.asked is None:
            return ""
        said = [f"The GPU has {in_bytes(self.total)}; this process held {in_bytes(self.own)}"]
        said[0] += f" and asked for {in_bytes(self.asked)}"
        others = self.total - self.own - self.free if self.free is not None else 0
        if others > NOTICED * self.total:
            said.append(f"other programs hold {in_bytes(others)}")
        if self.unused and self.unused >= max(self.asked, FRAGMENTS * self.own):
            said.append(FRAGMENTED)
        return "; ".join(said)


def gpu_shortage(message: str) -> GpuShortage:
    """Read the message. Source: PyTorch, `c10/cuda/CUDACachingAllocator.cpp`, the text of `OutOfMemoryError`."""
    allocated = _bytes(rf"{_SIZE} is allocated by PyTorch", message)
    unused = _bytes(rf"{_SIZE} is reserved by PyTorch but unallocated", message)
    by_torch = None if allocated is None else allocated + (unused or 0)
    with_all = _bytes(rf"this process has {_SIZE} memory in use", message)
    return GpuShortage(
        asked=_bytes(rf"Tried to allocate {_SIZE}", message),
        total=_bytes(rf"total capacity of {_SIZE}", message),
        free=_bytes(rf"of which {_SIZE} is free", message),
        own=by_torch if with_all is None else with_all,
        unused=unused,
    )


def _bytes(pattern: str, message: str) -> int | None:
    found = re.search(pattern, message)
    return round(float(found[1]) * _UNITS[found[2]]) if found else None
