"""GPU memory by batch size, what is left of it, and the batch that would fill it."""

from __future__ import annotations

from loaderbench.records import BatchMemory, GpuMemory, in_bytes
from loaderbench.report import numbers
from loaderbench.report.model import Column, Fact, Facts, Row, Section, Table, Text, Value
from loaderbench.report.view import View

_TITLE = "GPU memory"
_COLUMNS = (
    Column("Batch size", numeric=True),
    Column("Allocated", numeric=True, title="peak of all tensors, by torch"),
    Column("Reserved", numeric=True, title="peak that torch took from the device"),
    Column("Whole GPU", numeric=True, title="peak of all programs, by the driver"),
    Column("Headroom", numeric=True, title="of the whole GPU"),
)


def section(view: View) -> Section | None:
    """The table, and the largest batch that fits; `None` where no trial used a GPU."""
    found = view.run.gpu_memory
    if found is None:
        return None
    table = Table(f"Peaks of {in_bytes(found.total_bytes)}", _COLUMNS, tuple(_row(one) for one in found.batches))
    fact = Fact("Largest batch that fits", _largest(found))
    failed = [Fact("Ran out of memory", Text(", ".join(f"batch size {size:,}" for size in found.too_large)))]
    facts = (fact, *(failed if found.too_large else []))
    return Section(
        id="gpu-memory", title=_TITLE, label=_TITLE, blocks=(table, Facts(facts)), glance=facts, only_verbose=True
    )


def _row(one: BatchMemory) -> Row:
    why = one.not_measured
    return Row(
        (
            Text(f"{one.batch_size:,}"),
            numbers.memory(one.peak_allocated_bytes, why.get("peak_allocated_bytes")),
            numbers.memory(one.peak_reserved_bytes),
            numbers.memory(one.used_bytes, why.get("used_bytes")),
            numbers.share(one.headroom_share, why.get("headroom_share")),
        )
    )


def _largest(found: GpuMemory) -> Text | Value:
    if found.largest_batch is None or found.bytes_per_sample is None or found.fixed_bytes is None:
        return numbers.missing(found.not_measured.get("largest_batch"))
    line = f"{in_bytes(int(found.fixed_bytes))} + {in_bytes(int(found.bytes_per_sample))} per sample"
    return Text(f"about {found.largest_batch:,} (extrapolated: {line})")
