"""From counted times to the record of how they are distributed."""

from __future__ import annotations

from collections.abc import Iterable

from loaderbench.histogram import Histogram
from loaderbench.records import Spread


def spread_of(times: Histogram | Iterable[float]) -> Spread | None:
    """Mean, quantiles and maximum in seconds; `None` when there are no times."""
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
