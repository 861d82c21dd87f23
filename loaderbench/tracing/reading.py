"""Reads the workers' blocks: totals over all workers, between two moments."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import median

from loaderbench.code_places import CodeStack
from loaderbench.histogram import Histogram
from loaderbench.tracing import block as layout
from loaderbench.tracing.block import BLOCK_BYTES, NOBODY, Block
from loaderbench.tracing.clock import now_s
from loaderbench.tracing.tracer import Tracer

NOTHING_TAKEN = (0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Mark:
    """A moment, with every counter of every block and the clock of the process that takes the batches."""

    at_s: float
    counters: tuple[list[float], ...]
    taking: Sequence[float] = NOTHING_TAKEN


@dataclass
class PartTotal:
    """Calls and seconds of one part of a stage. Those in long samples, by class, are part of the others."""

    calls: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    long_wall_s: list[float] = field(default_factory=lambda: [0.0] * layout.LONG_CLASSES)
    long_cpu_s: list[float] = field(default_factory=lambda: [0.0] * layout.LONG_CLASSES)


@dataclass(frozen=True)
class Slow:
    """A slow sample: its seconds, dataset index (`None` if it has none), and the part that took the longest."""

    wall_s: float
    index: int | None
    stage: tuple[str, str]
    worker: int
    path: str


@dataclass(frozen=True)
class ReadSums:
    """Totals over samples that read files: their number, bytes, blocked seconds, and sums of products and squares."""

    samples: float = 0.0
    bytes: float = 0.0
    blocked_s: float = 0.0
    bytes_squared: float = 0.0
    bytes_times_s: float = 0.0
    s_squared: float = 0.0


@dataclass(frozen=True)
class LongSums:
    """A class of long samples, as `SampleChoice` defines them: how many were traced and skipped, and their seconds.

    `clocked_s` is the time of skipped ones whose CPU time is known, which is `clocked_cpu_s`.
    """

    traced: float = 0.0
    traced_s: float = 0.0
    skipped: float = 0.0
    skipped_s: float = 0.0
    clocked_s: float = 0.0
    clocked_cpu_s: float = 0.0


@dataclass(frozen=True)
class Traced:
    """What all workers did since a mark.

    The stages of `traced` samples were timed; of the others only the duration is known. `stacks` holds the estimated
    seconds of each stack, from `looks` stack samples.
    """

    batches: int
    samples: int
    traced: int
    parts: dict[tuple[str, str], PartTotal]
    times: Histogram
    slowest: tuple[Slow, ...]
    reads: ReadSums
    long: tuple[LongSums, ...]
    stacks: Mapping[CodeStack, float] = field(default_factory=dict)
    looks: int = 0
    taking: Sequence[float] = NOTHING_TAKEN
    reasons: tuple[str, ...] = field(default=())


def mark(blocks: Sequence[Block], taking: Sequence[float]) -> Mark:
    """Record the value of every counter, and let the workers make room for new slow samples."""
    at_s = now_s()
    for block in blocks:
        block.header[layout.SINCE_S] = at_s
    return Mark(at_s, tuple(block.counters() for block in blocks), taking)


def read(blocks: Sequence[Block], since: Mark | None, taking: Sequence[float]) -> Traced:
    """Add up what the blocks counted since a mark."""
    before = since.counters if since else tuple([0.0] * len(block.counters()) for block in blocks)
    deltas = [
        [now - then for now, then in zip(block.counters(), old, strict=True)]
        for block, old in zip(blocks, before, strict=True)
    ]
    began_s = since.at_s if since else 0.0
    slowest = sorted((slow for pair in enumerate(blocks) for slow in _slow(*pair, began_s)), key=lambda s: -s.wall_s)
    total = [sum(column) for column in zip(*deltas, strict=True)]
    bins, sums_s = total[layout.BINS_AT : layout.BIN_SUMS_AT], total[layout.BIN_SUMS_AT : layout.STACKS_AT]
    return Traced(
        batches=int(total[layout.BATCHES]),
        samples=int(total[layout.SAMPLES]),
        traced=int(total[layout.TRACED]),
        parts=_parts(blocks, deltas),
        times=Histogram(bins, sums_s, max((slow.wall_s for slow in slowest), default=_longest_s(bins, sums_s))),
        slowest=tuple(slowest[: layout.SLOWEST]),
        stacks=_stacks(blocks, deltas),
        looks=round(total[layout.LOOKS]),
        reads=ReadSums(*total[layout.READS_AT : layout.READS_AT + layout.READS]),
        long=tuple(
            LongSums(*total[at : at + layout.LONG]) for at in range(layout.LONG_AT, layout.LONG_WALL_AT, layout.LONG)
        ),
        taking=tuple(now - then for now, then in zip(taking, since.taking if since else NOTHING_TAKEN, strict=True)),
        reasons=tuple(sorted({block.reason for block in blocks} - {""})),
    )


def _stacks(blocks: Sequence[Block], deltas: Iterable[list[float]]) -> dict[CodeStack, float]:
    """The estimated seconds of each stack, over all workers."""
    totals: dict[CodeStack, float] = {}
    for block, delta in zip(blocks, deltas, strict=True):
        stacks: list[CodeStack] = []
        for place, (caller, frame) in enumerate(block.frames()):
            above = None if caller == NOBODY else stacks[caller]
            stack = CodeStack(frame.function, ()) if above is None else CodeStack(above.stage, (*above.frames, frame))
            stacks.append(stack)
            if seconds := delta[layout.STACKS_AT + place]:
                totals[stack] = totals.get(stack, 0.0) + seconds
    return totals


def _longest_s(bins: Sequence[float], sums_s: Sequence[float]) -> float:
    """The mean of the highest bin that is not empty."""
    return next((sum_s / count for count, sum_s in zip(bins[::-1], sums_s[::-1], strict=True) if count), 0.0)


def _parts(blocks: Sequence[Block], deltas: Iterable[list[float]]) -> dict[tuple[str, str], PartTotal]:
    """Add up the parts by name, because each worker numbers them in the order in which they appear."""
    totals: dict[tuple[str, str], PartTotal] = {}
    for block, delta in zip(blocks, deltas, strict=True):
        for place, name in enumerate(block.names()):
            calls = delta[layout.CALLS_AT + place]
            if calls > 0:
                total = totals.setdefault(name, PartTotal())
                total.calls += calls
                total.wall_s += delta[layout.WALL_AT + place]
                total.cpu_s += delta[layout.CPU_AT + place]
                for one in range(layout.LONG_CLASSES):
                    total.long_wall_s[one] += delta[layout.LONG_WALL_AT + one * layout.MAX_STAGES + place]
                    total.long_cpu_s[one] += delta[layout.LONG_CPU_AT + one * layout.MAX_STAGES + place]
    return totals


def _slow(worker: int, block: Block, since_s: float) -> Iterator[Slow]:
    names = block.names()
    for place in range(layout.SLOWEST):
        at = place * layout.SLOW_FIELDS
        wall_s, index, stage, ended_s = block.slow[at : at + layout.SLOW_FIELDS]
        if wall_s > 0 and ended_s >= since_s:
            yield Slow(wall_s, None if index < 0 else int(index), names[int(stage)], worker, block.path(place))


_SAMPLES = 100
_PAIRS = 7


def tracing_s_per_sample(traced: Traced) -> float | None:
    """Mean seconds that tracing adds to a sample, measured with as many stages; `None` if no sample was traced."""
    if not traced.traced:
        return None
    stages = sum(total.calls for (stage, _), total in traced.parts.items() if stage not in ("idle", "collate"))
    entered = max(0, round(stages / traced.traced) - 1)  # one is the sample itself
    return _cost_s(entered) * traced.traced / traced.samples


@cache
def _cost_s(stages: int) -> float:
    """Tracing cost of a sample with this many stages, in seconds.

    Cached, because the recording of a script is saved repeatedly while the script runs.
    """
    return max(0.0, median(_pair_s(stages) for _ in range(_PAIRS)) / _SAMPLES)


def _pair_s(stages: int) -> float:
    tracer = Tracer(Block(bytearray(BLOCK_BYTES)), max_cost_share=1e9)
    stage = tracer.timed(_nothing, tracer.place("transform"))

    def sample() -> None:
        for _ in range(stages):
            stage()

    tracer.block.header[layout.ENABLED] = 1.0
    began_s = time.perf_counter()
    for index in range(_SAMPLES):
        tracer.sample(index, sample)
    between_s = time.perf_counter()
    for _ in range(_SAMPLES):
        for _ in range(stages):
            _nothing()
    return 2 * between_s - began_s - time.perf_counter()


def _nothing() -> None:
    pass
