"""GPU memory by batch size, and the largest batch that fits by the line through what was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import linear_regression
from typing import Any

from loaderbench.loaders import backend_of
from loaderbench.records import BatchMemory, GpuMemory, GpuUse, Reasons, Trial

STRAIGHT = 0.05
"""Of a peak: a line that is further off says nothing of larger batches. torch reserves blocks of 2 MiB and more."""

NO_PEAKS = "no trial used GPU memory through torch"
NO_DEVICE_MEMORY = "the memory of the whole GPU could not be read"
_LINE = ("fixed_bytes", "bytes_per_sample", "largest_batch")


@dataclass(frozen=True)
class Line:
    """Bytes of a batch of no samples, and of each sample."""

    fixed_bytes: float
    bytes_per_sample: float

    def at(self, batch_size: int) -> float:
        """Bytes of a batch."""
        return self.fixed_bytes + self.bytes_per_sample * batch_size


def describe_gpu_memory(trials: Sequence[Trial], loader: Mapping[str, Any]) -> tuple[GpuMemory | None, str]:
    """What each batch size took at most over all its trials, or why that is not known. `loader` are fixed arguments."""
    by_size: dict[int, list[GpuUse]] = defaultdict(list)
    too_large = set[int]()
    for trial in trials:
        size = backend_of({**loader, **trial.config}).prefetch({**loader, **trial.config}).batch_size
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
    """What the device holds that is not torch's in the trial: of CUDA itself, and of other programs."""
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
        largest = min(largest, found.too_large[0] - 1) if found.too_large else largest
    return replace(
        found,
        fixed_bytes=line.fixed_bytes,
        bytes_per_sample=line.bytes_per_sample,
        largest_batch=largest,
        not_measured=reasons,
    )


def line_of(batches: Sequence[BatchMemory]) -> tuple[Line | None, str]:
    """The line through the reserved peaks by least squares, or why there is none."""
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
