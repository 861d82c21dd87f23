"""NVML's GPU performance metrics (GPM): how busy the parts of a GPU were between two readings.

GPUs have them since Hopper, for each MIG instance too. Source: NVML API Reference, "GPM Functions".
"""

from __future__ import annotations

from math import inf, isfinite
from statistics import fmean
from typing import Any

from loaderbench.records import GpuPerformance

LONGEST_S, SHORTEST_S = 5.0, 0.1
"""Limits on the time between two readings. A longer time can include another trial. NVML refreshes every 0.1 s."""

_MIB = 1 << 20
_NVJPG_ENGINES = 8
_METRICS = {
    "sm_active_percent": ("NVML_GPM_METRIC_SM_UTIL", 1.0),
    "tensor_active_percent": ("NVML_GPM_METRIC_ANY_TENSOR_UTIL", 1.0),
    "dram_active_percent": ("NVML_GPM_METRIC_DRAM_BW_UTIL", 1.0),
    "pcie_rx_bytes_per_s": ("NVML_GPM_METRIC_PCIE_RX_PER_SEC", _MIB),
    "pcie_tx_bytes_per_s": ("NVML_GPM_METRIC_PCIE_TX_PER_SEC", _MIB),
}
"""The NVML constant of each metric, and the factor that converts its value to the field's unit."""


class GpmDevice:
    """One GPU or MIG instance. Raises `NVMLError` if it has no performance metrics."""

    def __init__(self, nvml: Any, device: Any) -> None:
        self._nvml, self._device, self._instance = nvml, device, _instance_of(nvml, device)
        if self._instance is not None:
            self._device = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device)
        if not nvml.nvmlGpmQueryDeviceSupport(self._device).isSupportedDevice:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        self._taken_s: float | None = None

    def read(self, now_s: float, not_before_s: float = -inf) -> GpuPerformance | None:
        """The metrics since the previous reading.

        `None` for the first reading, if the interval is out of range, or if it began earlier than `not_before_s`.
        """
        before_s = self._taken_s
        if before_s is not None and now_s - before_s < SHORTEST_S:
            return None
        before, now = self._samples
        self._taken_s = None  # if this fails, no sample is left to compare with
        if self._instance is None:
            self._nvml.nvmlGpmSampleGet(self._device, now)
        else:
            self._nvml.nvmlGpmMigSampleGet(self._device, self._instance, now)
        self._samples, self._taken_s = [now, before], now_s
        if before_s is None or before_s < max(not_before_s, now_s - LONGEST_S):
            return None
        return self._between(before, now)

    def _between(self, before: Any, now: Any) -> GpuPerformance:
        query = self._nvml.c_nvmlGpmMetricsGet_t()
        query.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        query.sample1, query.sample2 = before, now
        numbers = [getattr(self._nvml, name) for name, _ in _METRICS.values()]
        numbers += [getattr(self._nvml, f"NVML_GPM_METRIC_NVJPG_{engine}_UTIL") for engine in range(_NVJPG_ENGINES)]
        query.numMetrics = len(numbers)
        for place, number in enumerate(numbers):
            query.metrics[place].metricId = number
        self._nvml.nvmlGpmMetricsGet(query)
        return self._values(query.metrics[: len(numbers)])

    def _values(self, metrics: Any) -> GpuPerformance:
        known = [metric.value if self._has_value(metric) else None for metric in metrics]
        pairs = zip(_METRICS.items(), known, strict=False)
        values = {name: value * unit for (name, (_, unit)), value in pairs if value is not None}
        engines = [value for value in known[len(_METRICS) :] if value is not None]
        return GpuPerformance(**values, nvjpg_percent=fmean(engines) if engines else None)

    def _has_value(self, metric: Any) -> bool:
        """Whether a metric has a value. NVML returns NaN without an error for samples too close together."""
        return metric.nvmlReturn == self._nvml.NVML_SUCCESS and isfinite(metric.value)


def _instance_of(nvml: Any, device: Any) -> int | None:
    """The number of a MIG instance within its GPU; `None` for a complete GPU."""
    try:
        return int(nvml.nvmlDeviceGetGpuInstanceId(device))
    except (nvml.NVMLError, AttributeError):
        return None
