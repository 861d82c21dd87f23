"""Turns readings of a process into the record of a trial, with a reason for every field that is `None`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from loaderbench.histogram import Histogram
from loaderbench.records import LoaderInside, LoopTimes, RankReadings, Reasons, ResourceUse, Spread, Trial

_NO_REASON_NEEDED = ("failure", "isolation", "side", "freed", "rank", "slowest_rank")
_ALWAYS = {
    "sampled": "every sample was timed",
    "stack_looks": "not attached from outside",
    "kernel_looks": "not attached from outside",
    "busy_thread": "no other Python thread was found, or its CPU time is not reported",
    "code_looks": "only profile, attach with py-spy, and runs of your own code record stack samples",
    "step_line": "only profile samples the stack of a training loop",
    "time_slices": "measured without time slices",
    "consumer_note": "nothing unusual about how batches were consumed",
    "rank_wait_share": "a single process",
    "computed_in": "no training step of consumer.kind: model took the batches",
}


def completed_trial(trial: Trial, *parts: LoopTimes | LoaderInside | ResourceUse, default: str) -> Trial:
    """The trial with everything that was measured. A later part overrides the reasons of earlier parts."""
    found, reasons = _all_of(parts)
    return with_reasons(replace(trial, **{**found, "status": "completed"}), default, reasons)


def completed_rank(rank: RankReadings, *parts: LoopTimes | LoaderInside | ResourceUse) -> RankReadings:
    """The same for one rank of a trial."""
    found, known = _all_of(parts)
    reasons = _reasons(replace(rank, **found), "not read of a rank", known)
    return replace(rank, **{**found, "not_measured": reasons})


def _all_of(parts: Iterable[LoopTimes | LoaderInside | ResourceUse]) -> tuple[dict[str, Any], Reasons]:
    found: dict[str, Any] = {}
    reasons: Reasons = {}
    for part in parts:
        found |= {one.name: getattr(part, one.name) for one in fields(part)}
        reasons |= part.not_measured
    return found, reasons


def with_reasons(trial: Trial, default: str, known: Mapping[str, str] | None = None) -> Trial:
    """The trial with a reason for each field that is `None`: a known reason, or the default."""
    return replace(trial, not_measured=_reasons(trial, default, known or {}))


def _reasons(found: Trial | RankReadings, default: str, known: Mapping[str, str]) -> Reasons:
    unneeded = () if isinstance(found, RankReadings) else _NO_REASON_NEEDED
    missing = [name for name, value in vars(found).items() if value is None and name not in unneeded]
    return {name: known.get(name) or _ALWAYS.get(name) or default for name in missing}


def spread_of(times: Histogram | Iterable[float]) -> Spread | None:
    """Mean, quantiles and maximum in seconds; `None` if there are no times."""
    if not isinstance(times, Histogram):
        times = _counted(times)
    count = sum(times.counts)
    if count < 1:
        return None
    p50_s, p95_s, p99_s = (min(times.quantile_s(share), times.max_s) for share in (0.5, 0.95, 0.99))
    return Spread(int(count), sum(times.sums_s) / count, p50_s, p95_s, p99_s, times.max_s)


def _counted(times_s: Iterable[float]) -> Histogram:
    histogram = Histogram()
    for time_s in times_s:
        histogram.add(time_s)
    return histogram
