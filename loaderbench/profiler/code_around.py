"""Counts code around a loader as data wait, for example a generator that converts its batches."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.profiler.user_stages import AROUND
from loaderbench.records import CodeAround, LoaderInside, LoopTimes, Spread, StageCost, Taking, WaitParts


def with_code_around(
    times: LoopTimes, inside: LoaderInside, place: str, *, workers: bool
) -> tuple[LoopTimes, LoaderInside]:
    """Move the time of code around the loader from the steps to the waits.

    The outermost iterator, at `place`, is treated as the loader. Only its mean time per batch is known, so spreads are
    shifted by that mean.
    """
    stages = dict(times.step_stages or {})
    cost = stages.pop(AROUND, None)
    if cost is None or not cost.wall_s:
        return times, inside
    around_s, steady_s = cost.wall_s, times.steady_s or 0.0
    share = (times.data_wait_share or 0.0) + (around_s * (times.batches or 0) / steady_s if steady_s else 0.0)
    times = replace(
        times,
        data_wait_share=min(1.0, share),
        data_wait=_shifted(times.data_wait, around_s),
        step=_shifted(times.step, -around_s),
        step_stages=stages or None,
    )
    return times, replace(
        inside,
        taking=_taking(inside.taking, cost, place, workers=workers),
        wait_parts=_parts(inside.wait_parts, around_s, times.batches or 0) if workers else inside.wait_parts,
    )


def _taking(taking: Taking | None, cost: StageCost, place: str, *, workers: bool) -> Taking | None:
    if taking is None:
        return None
    wall_s = cost.wall_s or 0.0
    return Taking(
        wall_s=taking.wall_s + wall_s,
        cpu_s=taking.cpu_s + (cost.cpu_s or 0.0),
        sampler_s=taking.sampler_s + (wall_s if workers else 0.0),
        around=CodeAround(place=place, wall_s=wall_s),
    )


def _parts(parts: WaitParts | None, around_s: float, batches: int) -> WaitParts:
    """Wait parts with the code's time added. Without other parts, the loop never waited in the loader itself."""
    known = parts or WaitParts(
        batches=batches, not_begun_s=0.0, making_s=0.0, order_s=0.0, transport_s=0.0, main_process_s=0.0
    )
    return replace(known, main_process_s=known.main_process_s + around_s)


def _shifted(times: Spread | None, by_s: float) -> Spread | None:
    if times is None:
        return None
    seconds = {name: max(0.0, value + by_s) for name, value in vars(times).items() if name != "count"}
    return replace(times, **seconds)
