"""From what was traced to the records that tell one cause from another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loaderbench.recorder.stalls import Spans, StallSums, Wait, divide_waits
from loaderbench.records import Reads, Taking, WaitParts
from loaderbench.tracing.reading import ReadSums, Span, Traced

FEWEST_READS = 20
LEAST_VARIETY = 0.1  # standard deviation over mean of the bytes: files of one size tell no slope

NO_WORKERS = "without workers every batch is made while it is awaited"
NO_SPANS = "which worker made which batch is not known"
NO_READS = "no file was seen to be read"
ONE_SIZE = "the files are too much of one size, or too few"


def stalls_of(waits: Sequence[Wait], spans: Iterable[Span], workers: int) -> StallSums:
    """Put the waits of one epoch together with the batches that the workers made for it."""
    rows = [(span.worker, span.number, span.began_s, span.ended_s) for span in spans]
    return divide_waits(waits, Spans.of(workers, rows))


def wait_parts(stalls: StallSums, taking: Taking | None) -> WaitParts | None:
    """Means over the batches; of what came after a batch was made, the sampler's time is the main process's own."""
    if not stalls.usable:
        return None
    after_s = stalls.after_s / stalls.batches
    sampler_s = min(after_s, taking.sampler_s) if taking else 0.0
    return WaitParts(
        batches=stalls.batches,
        not_begun_s=stalls.not_begun_s / stalls.batches,
        making_s=stalls.making_s / stalls.batches,
        order_s=stalls.order_s / stalls.batches,
        transport_s=after_s - sampler_s,
        main_process_s=sampler_s,
    )


def taking_of(traced: Traced) -> Taking | None:
    """Means over the batches that were taken; `None` where `next()` was not timed."""
    calls, wall_s, cpu_s, sampler_s = traced.taking
    return Taking(wall_s=wall_s / calls, cpu_s=cpu_s / calls, sampler_s=sampler_s / calls) if calls else None


def reads_of(sums: ReadSums) -> Reads | None:
    """Draw the line of blocked seconds over bytes, by least squares; `None` where nothing was read."""
    count = sums.samples
    if not count:
        return None
    mean_bytes, mean_s = sums.bytes / count, sums.blocked_s / count
    variance = sums.bytes_squared / count - mean_bytes**2
    share = None
    if count >= FEWEST_READS and variance > (LEAST_VARIETY * mean_bytes) ** 2 and mean_s > 0:
        slope = (sums.bytes_times_s / count - mean_bytes * mean_s) / variance
        share = min(1.0, max(0.0, slope * mean_bytes / mean_s))
    return Reads(
        samples=int(count),
        bytes_per_sample=mean_bytes,
        blocked_s=mean_s,
        bytes_share=share,
        not_measured={} if share is not None else {"bytes_share": ONE_SIZE},
    )
