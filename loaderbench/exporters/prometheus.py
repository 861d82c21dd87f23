"""Prometheus: a text file of gauges for node_exporter's textfile collector. Live: the file is replaced at each save.

The file is valid as Prometheus text format and as OpenMetrics: https://prometheus.io/docs/specs/om/open_metrics_spec/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loaderbench.errors import UsageError
from loaderbench.exporters.exporter import Exporter, LivePoint
from loaderbench.new_files import write_whole

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

    from loaderbench.exporters.table import Row
    from loaderbench.records import RunRecord
    from loaderbench.records.metrics import Metric
    from loaderbench.result import Run

_RESERVED_LABELS = ("suite", "job", "instance", "le", "quantile")
"""Label names that already have another meaning, here or in Prometheus."""


def _write(run: Run, out: str) -> str:
    _replace(_file(out, f"--out {out}"), _Gauges(run.record))
    return out


def _file(out: str, flag: str) -> Path:
    """The destination as a path. Raises `UsageError`, beginning with the flag, if it cannot be a file."""
    if not Path(out).name:
        raise UsageError(f"{flag}: expected a file that ends in .prom")
    return Path(out)


def _replace(place: Path, gauges: _Gauges | _LiveGauges) -> None:
    """Replace the file atomically."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest

    registry = CollectorRegistry()
    registry.register(gauges)
    write_whole(place, generate_latest(registry))  # the collector ignores the hidden file


class _Gauges:
    """The collector for a finished run: one gauge for each metric, with the axes as labels."""

    def __init__(self, run: RunRecord) -> None:
        from loaderbench.exporters.table import gain_over_baseline, rows

        self._run, self._rows = run, rows(run)
        self._gain = gain_over_baseline(run)
        axes = dict.fromkeys(axis for row in self._rows for axis in row.config)
        self._labels = {axis: _label(axis) for axis in axes}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        from loaderbench.records.metrics import METRICS
        from loaderbench.records.words import moment

        for metric in METRICS:
            documentation = _documentation(metric)
            for end, bound in (("", ""), ("_lo", ", lower bound (95%)"), ("_hi", ", upper bound (95%)")):
                name = f"{metric.id}{end}"
                if own := [(row, row.numbers[name]) for row in self._rows if name in row.numbers]:
                    yield self._gauge(name, f"{documentation}{bound}", own)
        best = [(row, float(row.is_best)) for row in self._rows]
        yield self._gauge("is_best", "1 for the recommended config, 0 for all others", best)
        for name, value in self._gain.items():
            yield self._gauge(
                name, "Samples/s of the recommended config as a multiple of the baseline", [(None, value)]
            )
        if finished := moment(self._run.finished_at):
            yield self._gauge(
                "finished_timestamp_seconds", "Unix time at the end of the run", [(None, finished.timestamp())]
            )

    def _gauge(self, name: str, said: str, values: Sequence[tuple[Row | None, float]]) -> GaugeMetricFamily:
        from prometheus_client.core import GaugeMetricFamily

        from loaderbench.records import format_scalar

        gauge = GaugeMetricFamily(f"loaderbench_{name}", said, labels=["suite", *self._labels.values()])
        for row, value in values:
            config = row.config if row else {}
            own = [format_scalar(config[axis]) if axis in config else "" for axis in self._labels]
            gauge.add_metric([self._run.name, *own], value)
        return gauge


class _LiveGauges:
    """Collector and tracker for a running script: the latest metrics of each loader, rewritten at each save."""

    def __init__(self, out: str, script: str) -> None:
        self._place, self._script, self._is_running = _file(out, f"--live prometheus={out}"), script, True
        self._points: dict[str, LivePoint] = {}
        _replace(self._place, self)

    def write(self, points: Sequence[LivePoint]) -> None:
        """Replace the metrics of these loaders, and keep those of all others."""
        self._points |= {point.series: point for point in points}
        _replace(self._place, self)

    def close(self) -> None:
        """Mark the script as ended, and keep the last metrics."""
        self._is_running = False
        _replace(self._place, self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        from prometheus_client.core import GaugeMetricFamily

        from loaderbench.records.metrics import METRICS

        for metric in METRICS:
            if own := [point for point in self._points.values() if metric.id in point.numbers]:
                labels = ["script", "loader", "rank"]
                gauge = GaugeMetricFamily(f"loaderbench_live_{metric.id}", _documentation(metric), labels=labels)
                for point in own:
                    rank = "" if point.rank is None else f"{point.rank}"
                    gauge.add_metric([self._script, point.loader, rank], point.numbers[metric.id])
                yield gauge
        running = GaugeMetricFamily("loaderbench_live_is_running", "1 while the script runs", labels=["script"])
        running.add_metric([self._script], float(self._is_running))
        yield running


def _documentation(metric: Metric) -> str:
    return f"{metric.label}{f' ({metric.hint})' if metric.hint else ''}, {metric.unit}"


def _label(axis: str) -> str:
    """Convert an axis name to a valid label: letters, digits and underscores."""
    name = re.sub(r"\W", "_", axis, flags=re.ASCII)
    return f"axis_{name}" if name in _RESERVED_LABELS or name[:1].isdigit() or name.startswith("__") else name


EXPORTER = Exporter(
    _write,
    package="prometheus-client",
    libraries=("prometheus_client",),
    live=lambda out, script, _: _LiveGauges(out, script),
)
