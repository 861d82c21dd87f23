"""Turns traces into records of what happened inside a loader, and separates the causes of waits."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from inspect import getattr_static
from typing import Any

from loaderbench.recorder.code_looks import TOO_FEW, code_looks_of
from loaderbench.recorder.stalls import Spans, StallSums, Wait, divide_waits
from loaderbench.recorder.trials import spread_of
from loaderbench.records import LoaderInside, Reads, Reasons, SampleTimes, SlowSample, StageCost, Taking, WaitParts
from loaderbench.records.words import count
from loaderbench.tracing.made import Made
from loaderbench.tracing.reading import LongSums, PartTotal, ReadSums, Slow, Traced

ORDER = ("read", "decode", "transform", "sample", "collate")
UNTRACED = ("sample", "untraced")  # the part for the time of long samples if none of them was traced
SHOWN_SLOWEST = 10
TIMES_MEDIAN = 4.0  # samples that take longer than this many medians form the tail

NOT_ASKED = "tracing is off; Profiler(trace=True) times the stages inside the loader"
_NO_SAMPLE = "no sample was loaded while tracing"
_PATH_LISTS = ("samples", "imgs", "paths", "files", "image_paths", "filenames")


def loader_inside(
    traced: Traced | None,
    find_path: Callable[[int], str | None],
    why_not: str = NOT_ASKED,
    root: str | None = None,
    stalls: StallSums | None = None,
) -> LoaderInside:
    """The record of what was traced, with reasons for missing values in `not_measured`.

    `find_path` returns the path of a sample by its index. Paths below `root` are made relative to it.
    """
    if traced is None or not traced.samples:
        reason = why_not if traced is None else "; ".join((_NO_SAMPLE, *traced.reasons))
        missing = dict.fromkeys(("stages", "stage_parts", "sample_times", "reads", "wait_parts", "code_looks"), reason)
        taken = taking_of(traced) if traced is not None else None
        return LoaderInside(taking=taken, not_measured={**missing, "taking": reason})
    parts = _parts(traced)
    times = _sample_times(traced, find_path, root)
    reasons: Reasons = {} if times else {"sample_times": "this loader creates whole batches; samples cannot be timed"}
    taking, reads = taking_of(traced), reads_of(traced.reads)
    waits = wait_parts(stalls, taking) if stalls else None
    reasons |= {
        "code_looks": TOO_FEW,
        "taking": NOT_ASKED,
        "reads": NO_READS,
        "wait_parts": NO_SPANS if stalls else NO_WORKERS,
    }
    reasons |= {} if parts else dict.fromkeys(("stages", "stage_parts"), _NO_SAMPLE)
    return LoaderInside(
        stages=_stages(parts) if parts else None,
        stage_parts={f"{stage}/{part}": cost for (stage, part), cost in parts.items() if part} if parts else None,
        sample_times=times,
        reads=reads,
        taking=taking,
        wait_parts=waits,
        code_looks=code_looks_of(traced.stacks, traced.looks, _working_folder()),
        sampled=_sampled(traced),
        not_measured=reasons,
    )


def _working_folder() -> str:
    """The working directory; empty if the script has removed it."""
    try:
        return os.getcwd()  # noqa: PTH109 - as text
    except OSError:
        return ""


def path_of(dataset: Any, index: int) -> str | None:
    """The path of a sample, if the dataset (or the one nested in it) has a list of paths by index."""
    try:
        return _path_of(dataset, index)
    except Exception:  # other code's attributes can hold anything
        return None


def _path_of(dataset: Any, index: int) -> str | None:
    within, indices = _attribute(dataset, "dataset"), _attribute(dataset, "indices")
    if within is not None and indices is not None:  # torch's Subset
        return _path_of(within, indices[index])
    parts, sizes = _attribute(dataset, "datasets"), _attribute(dataset, "cumulative_sizes")
    if parts is not None and sizes is not None:  # torch's ConcatDataset
        place = bisect_right(sizes, index)
        return _path_of(parts[place], index - (sizes[place - 1] if place else 0))
    for name in _PATH_LISTS:
        entries = _attribute(dataset, name)
        if isinstance(entries, list | tuple) and 0 <= index < len(entries):
            entry = entries[index]
            first = entry[0] if isinstance(entry, list | tuple) and entry else entry
            if isinstance(first, str | os.PathLike):
                return os.fspath(first)
    return None


def _attribute(dataset: Any, name: str) -> Any:
    """An attribute, or `None` if a property computes it: that runs user code, and can take long."""
    computed = isinstance(getattr_static(dataset, name, None), property | cached_property)
    return None if computed else getattr(dataset, name, None)


def _parts(traced: Traced) -> dict[tuple[str, str], StageCost]:
    """Seconds per sample for every part, estimated from samples whose stages were timed.

    Those of `collate` are over the batches that were timed. The time of long samples of which none as long was timed is
    the part `UNTRACED`.
    """
    found = {}
    for name, total in sorted(traced.parts.items(), key=_place):
        if name[0] == "collate":
            samples = traced.samples * _share_of_batches(total, traced)
            found[name] = StageCost(max(0.0, total.cpu_s) / samples, max(0.0, total.wall_s) / samples)
        elif name[0] != "idle" and traced.traced:
            found[name] = _cost_in_samples(total, traced)
    if found and (untraced := _untraced(traced)):
        skipped_s, clocked_s = sum(one.skipped_s for one in untraced), sum(one.clocked_s for one in untraced)
        cpu_share = sum(one.clocked_cpu_s for one in untraced) / clocked_s if clocked_s > 0 else None
        wall_s = skipped_s / traced.samples
        found[UNTRACED] = StageCost(None if cpu_share is None else cpu_share * wall_s, wall_s)
    return found


def _untraced(traced: Traced) -> list[LongSums]:
    """The classes of long samples of which none was traced."""
    return [one for one in traced.long if one.skipped_s > 0 and one.traced_s <= 0]


def _cost_in_samples(total: PartTotal, traced: Traced) -> StageCost:
    """Seconds per sample: the mean of usual samples by their number, plus that of long samples by their time."""
    traced_long, skipped_long = sum(one.traced for one in traced.long), sum(one.skipped for one in traced.long)
    usual, timed = traced.samples - traced_long - skipped_long, traced.traced - traced_long
    samples = traced.samples if timed > 0 else traced_long + skipped_long
    weight = max(0.0, usual) / timed if timed > 0 else 0.0
    weights_long = [1.0 + (one.skipped_s / one.traced_s if one.traced_s > 0 else 0.0) for one in traced.long]

    def per_sample(whole_s: float, long_s: Sequence[float]) -> float:
        usual_s = weight * (whole_s - sum(long_s))
        weighted_s = sum(times * one_s for times, one_s in zip(weights_long, long_s, strict=True))
        return max(0.0, usual_s + weighted_s) / samples

    return StageCost(per_sample(total.cpu_s, total.long_cpu_s), per_sample(total.wall_s, total.long_wall_s))


def _share_of_batches(collate: PartTotal, traced: Traced) -> float:
    """The share of batches that a timed function collated."""
    return min(1.0, collate.calls / traced.batches) if traced.batches else 1.0


def _place(item: tuple[tuple[str, str], Any]) -> int:
    stage = item[0][0]
    return ORDER.index(stage) if stage in ORDER else ORDER.index("collate")


def _stages(parts: Mapping[tuple[str, str], StageCost]) -> dict[str, StageCost]:
    return {stage: _sum(cost for (name, _), cost in parts.items() if name == stage) for stage, _ in parts}


def _sum(costs: Iterable[StageCost]) -> StageCost:
    known = list(costs)
    return StageCost(sum(cost.cpu_s or 0.0 for cost in known), sum(cost.wall_s or 0.0 for cost in known))


def _sample_times(traced: Traced, find_path: Callable[[int], str | None], root: str | None) -> SampleTimes | None:
    wall = spread_of(traced.times)
    if wall is None:
        return None
    slowest = tuple(
        SlowSample(
            index=slow.index,
            wall_s=slow.wall_s,
            stage=slow.stage[0],
            worker=slow.worker,
            path=(path := _relative_to(root, slow.path or (None if slow.index is None else find_path(slow.index)))),
            not_measured={} if path else {"path": "the dataset lists no paths, and no opened file was seen"},
        )
        for slow in _one_per_sample(traced.slowest)[:SHOWN_SLOWEST]
    )
    return SampleTimes(wall=wall, slowest=slowest, tail_share=traced.times.tail_share(TIMES_MEDIAN))


def _relative_to(root: str | None, path: str | None) -> str | None:
    inside = root is not None and path is not None and path.startswith(root.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, root) if inside and path else path


def _one_per_sample(slowest: Iterable[Slow]) -> list[Slow]:
    """The longest time of each slow sample, which can be slow in several epochs."""
    found: dict[object, Slow] = {}
    for slow in slowest:
        found.setdefault(slow.index if slow.index is not None else slow, slow)
    return list(found.values())


def _sampled(traced: Traced) -> str | None:
    """A note on which stages were skipped to limit the overhead of tracing; `None` if almost none were."""
    if not traced.traced or traced.traced > 0.99 * traced.samples:
        return None
    percent = 100 * traced.traced / traced.samples
    share = "less than 1%" if percent < 1 else f"{percent:.0f}%"
    note = f"stages were timed in {share} of the samples, to limit the overhead"
    untraced = int(sum(one.skipped for one in _untraced(traced)))
    if not untraced:
        return note
    return f"{note}; none was as long as {count(untraced, 'other')}, whose time is {'/'.join(UNTRACED)}"


FEWEST_READS = 20
LEAST_VARIETY = 0.1  # standard deviation over mean of the bytes: similar sizes give no slope
UNCERTAIN_SHARE = 0.15  # two standard errors of a share that is not known, unless it differs from 0 by more

NO_WORKERS = "without workers each batch is loaded while the loop waits"
NO_SPANS = "the worker of each batch is unknown"
NO_READS = "no file reads were seen"
ONE_SIZE = "too few files, or their sizes are too similar"
VARYING_READS = "the blocked time varies too much between files of one size"


def stalls_of(waits: Sequence[Wait], batches: Iterable[tuple[int, Made]], workers: int) -> StallSums:
    """Match the waits of one epoch with the batches that the workers made, by number and in order."""
    rows = ((number, made.worker or 0, made.began_s, made.ended_s) for number, made in batches)
    return divide_waits(waits, Spans.of(workers, rows))


def wait_parts(stalls: StallSums, taking: Taking | None) -> WaitParts | None:
    """Mean wait parts per batch. Of the time after a batch was made, the sampler's belongs to the main process."""
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
        ended_s=stalls.ended_s / stalls.batches,
    )


def taking_of(traced: Traced) -> Taking | None:
    """Means per batch that was taken; `None` if `next()` was not timed."""
    calls, wall_s, cpu_s, sampler_s = traced.taking
    return Taking(wall_s=wall_s / calls, cpu_s=cpu_s / calls, sampler_s=sampler_s / calls) if calls else None


def reads_of(sums: ReadSums) -> Reads | None:
    """Fit blocked seconds against bytes by least squares; `None` if nothing was read.

    The share that grows with the bytes is unknown if its standard error is large: requests of random latency also seem
    to grow or shrink with them.
    """
    count = sums.samples
    if not count:
        return None
    mean_bytes, mean_s = sums.bytes / count, sums.blocked_s / count
    variance = sums.bytes_squared / count - mean_bytes**2
    share, why = None, ONE_SIZE
    if count >= FEWEST_READS and variance > (LEAST_VARIETY * mean_bytes) ** 2 and mean_s > 0:
        covariance = sums.bytes_times_s / count - mean_bytes * mean_s
        unexplained = sums.s_squared / count - mean_s**2 - covariance**2 / variance
        error = math.sqrt(max(0.0, unexplained) / (variance * (count - 2))) * mean_bytes / mean_s
        slope_share = covariance / variance * mean_bytes / mean_s
        if 2 * error < max(slope_share, UNCERTAIN_SHARE):
            share = min(1.0, max(0.0, slope_share))
        else:
            why = VARYING_READS
    return Reads(
        samples=int(count),
        bytes_per_sample=mean_bytes,
        blocked_s=mean_s,
        bytes_share=share,
        not_measured={} if share is not None else {"bytes_share": why},
    )
