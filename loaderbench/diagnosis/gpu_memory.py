"""GPU memory: the peak per batch size, the largest batch that fits by linear regression, and out-of-memory messages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import linear_regression
from typing import Any

from loaderbench.loaders import prefetch_of
from loaderbench.records import BatchMemory, GpuMemory, GpuUse, Reasons, Trial, in_bytes

STRAIGHT = 0.05
"""Maximum deviation from the line, as a share of a peak. torch reserves memory in blocks of 2 MiB or more."""

NO_PEAKS = "no trial used GPU memory through torch"
NO_DEVICE_MEMORY = "the memory of the whole GPU could not be read"
_LINE = ("fixed_bytes", "bytes_per_sample", "largest_batch")

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = r"([\d.]+) (bytes|[KMGT]iB)"

HELD_BY_OTHERS = 0.01
"""Share of a GPU held by other programs; less can be the CUDA context."""

HELD_UNUSED = 0.1
"""Share of the process's memory that its allocator holds unused; every process has some."""

FRAGMENTED = "memory is fragmented: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


@dataclass(frozen=True)
class Line:
    """Linear fit of memory: bytes independent of the batch size, and bytes per sample."""

    fixed_bytes: float
    bytes_per_sample: float

    def at(self, batch_size: int) -> float:
        """Bytes at this batch size."""
        return self.fixed_bytes + self.bytes_per_sample * batch_size


def describe_gpu_memory(trials: Sequence[Trial], loader: Mapping[str, Any]) -> tuple[GpuMemory | None, str]:
    """The peak memory of each batch size over all trials, or why it is unknown. `loader` are the fixed arguments."""
    by_size: dict[int, list[GpuUse]] = defaultdict(list)
    too_large = set[int]()
    for trial in trials:
        size = prefetch_of(loader, trial.config).batch_size
        if size and trial.failure and trial.failure.kind == "device_memory":
            too_large.add(size)
        used = [gpu for gpu in trial.gpus if gpu.peak_reserved_bytes and gpu.memory_total_bytes]
        if size and used and trial.status == "completed":
            by_size[size].append(max(used, key=lambda gpu: gpu.peak_reserved_bytes or 0))
    if not by_size:
        return None, NO_PEAKS
    uses = [use for found in by_size.values() for use in found]
    total_bytes = min(use.memory_total_bytes or 0 for use in uses)
    found = GpuMemory(
        total_bytes=total_bytes,
        batches=tuple(_of_size(size, by_size[size], total_bytes) for size in sorted(by_size)),
        others_bytes=_others_bytes(uses),
        too_large=tuple(sorted(too_large)),
    )
    return _with_line(found), ""


def _of_size(size: int, uses: Sequence[GpuUse], total_bytes: int) -> BatchMemory:
    allocated = max((use.peak_allocated_bytes for use in uses if use.peak_allocated_bytes is not None), default=None)
    used = max((use.memory_used_bytes for use in uses if use.memory_used_bytes is not None), default=None)
    headroom = None if used is None else 1 - used / total_bytes
    known = (
        ("peak_allocated_bytes", allocated, "torch did not count what it allocated"),
        ("used_bytes", used, NO_DEVICE_MEMORY),
        ("headroom_share", headroom, NO_DEVICE_MEMORY),
    )
    return BatchMemory(
        batch_size=size,
        peak_allocated_bytes=allocated,
        peak_reserved_bytes=max(use.peak_reserved_bytes or 0 for use in uses),
        used_bytes=used,
        headroom_share=headroom,
        not_measured={name: why for name, value, why in known if value is None},
    )


def _others_bytes(uses: Sequence[GpuUse]) -> int | None:
    """Memory that the device holds beyond torch's in the trial: that of CUDA itself, and of other programs."""
    pairs = [(use.memory_used_bytes, use.peak_reserved_bytes) for use in uses]
    beyond = [used - own for used, own in pairs if used is not None and own is not None]
    return max(0, *beyond) if beyond else None


def _with_line(found: GpuMemory) -> GpuMemory:
    line, why = line_of(found.batches)
    if line is None:
        return replace(found, not_measured=dict.fromkeys(_LINE, why))
    reasons: Reasons = {}
    largest = None
    if found.others_bytes is None:
        reasons["others_bytes"] = reasons["largest_batch"] = NO_DEVICE_MEMORY
    else:
        free = found.total_bytes - found.others_bytes - line.fixed_bytes
        largest = max(0, int(free // line.bytes_per_sample))
        fitted = max(batch.batch_size for batch in found.batches)
        failed = [size for size in found.too_large if size > fitted]  # a smaller one failed for another reason
        largest = min(largest, failed[0] - 1) if failed else largest
    return replace(
        found,
        fixed_bytes=line.fixed_bytes,
        bytes_per_sample=line.bytes_per_sample,
        largest_batch=largest,
        not_measured=reasons,
    )


def line_of(batches: Sequence[BatchMemory]) -> tuple[Line | None, str]:
    """The least-squares line through the reserved peaks, or why there is none."""
    if len(batches) < 2:
        return None, "one batch size was measured"
    sizes, peaks = [one.batch_size for one in batches], [one.peak_reserved_bytes for one in batches]
    slope, fixed = linear_regression(sizes, peaks)
    line = Line(fixed, slope)
    if slope <= 0:
        return None, "memory does not grow with the batch"
    if any(abs(line.at(size) - peak) > STRAIGHT * peak for size, peak in zip(sizes, peaks, strict=True)):
        return None, "memory does not grow in proportion to the batch"
    return line, ""


@dataclass(frozen=True, kw_only=True)
class GpuShortage:
    """Sizes in bytes from an out-of-memory message; `None` if missing.

    `asked` is the refused allocation, `own` the memory that this process holds, and `unused` the part of that which its
    allocator keeps unused.
    """

    asked: int | None
    total: int | None
    free: int | None
    own: int | None
    unused: int | None

    @property
    def needed(self) -> int | None:
        """Bytes that this process would hold with the refused allocation."""
        return None if self.asked is None or self.own is None else self.own + self.asked

    def __str__(self) -> str:
        """A clause for a hint; empty if the message has no sizes."""
        if self.total is None or self.needed is None or self.own is None or self.asked is None:
            return ""
        clauses = [f"The GPU has {in_bytes(self.total)}; this process held {in_bytes(self.own)}"]
        clauses[0] += f" and asked for {in_bytes(self.asked)}"
        others = self.total - self.own - self.free if self.free is not None else 0
        if others > HELD_BY_OTHERS * self.total:
            clauses.append(f"other programs hold {in_bytes(others)}")
        if self.unused and self.unused >= max(self.asked, HELD_UNUSED * self.own):
            clauses.append(FRAGMENTED)
        return "; ".join(clauses)


def gpu_shortage(message: str) -> GpuShortage:
    """Parse the message. Source: PyTorch, `c10/cuda/CUDACachingAllocator.cpp`, the text of `OutOfMemoryError`."""
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
