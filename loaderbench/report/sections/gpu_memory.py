"""GPU memory by batch size, its headroom, and the batch size that would fill it."""

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
    """The table, and the largest batch that fits; `None` if no trial used a GPU."""
    memory = view.run.gpu_memory
    if memory is None:
        return None
    table = Table(f"Peaks of {in_bytes(memory.total_bytes)}", _COLUMNS, tuple(_row(one) for one in memory.batches))
    fact = Fact("Largest batch that fits", _largest(memory))
    failed = [Fact("Ran out of memory", Text(", ".join(f"batch size {size:,}" for size in memory.too_large)))]
    facts = (fact, *(failed if memory.too_large else []))
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


def _largest(memory: GpuMemory) -> Text | Value:
    if memory.largest_batch is None or memory.bytes_per_sample is None or memory.fixed_bytes is None:
        return numbers.missing(memory.not_measured.get("largest_batch"))
    fixed_bytes, each = int(memory.fixed_bytes), f"{in_bytes(int(memory.bytes_per_sample))} per sample"
    line = f"{in_bytes(fixed_bytes)} + {each}"
    if fixed_bytes < 0:
        line = f"{each} {numbers.MINUS} {in_bytes(-fixed_bytes)}"
    return Text(f"about {memory.largest_batch:,} (extrapolated: {line})")
