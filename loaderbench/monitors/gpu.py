"""NVML readings of each GPU. A call can take a second, so `GpuThread` makes them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from loaderbench.monitors.gpm import GpmDevice
from loaderbench.monitors.nvml import Nvml, described
from loaderbench.records import SW_POWER_CAP, Gpu, GpuPerformance, Reasons

_NOT_AVAILABLE = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE, for memory in bytes
LARGEST_SHARE, LONGEST_PAUSE_S = 0.01, 0.25
"""An expensive reading is skipped until its CPU time is at most this share of the elapsed time, or for this long."""
LONGEST_PERIOD_S = 1.0  # of NVML's utilization, "between 1 second and 1/6 second", and of its mean power
_THROTTLE_WORDS = (
    (0x04, SW_POWER_CAP),
    (0x80, "external power brake (HW power brake)"),
    (0x20, "temperature (SW thermal slowdown)"),
    (0x40, "temperature (HW thermal slowdown)"),
)
_HARDWARE_SLOWDOWN = 0x08  # also set together with each hardware cause
_HARDWARE_CAUSES = 0x40 | 0x80


@dataclass(frozen=True)
class BusyPeriod:
    """The percentage of a period with a kernel resident. Times are on the clock of the readings."""

    from_s: float
    to_s: float
    percent: float


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """One device at one moment. Missing values are `None` (a MIG slice, WSL, a lost device).

    `utilization_percent` covers NVML's last sample period, which can have ended a second ago. `busy` has the periods
    since the previous reading with their times, if the driver keeps them. `energy_j` is a counter. `gpm` has
    performance metrics since the previous reading.
    """

    index: int
    at_s: float
    energy_j: float | None = None
    memory_used_bytes: int | None = None
    utilization_percent: float | None = None
    busy: tuple[BusyPeriod, ...] | None = None
    power_w: float | None = None
    throttled_by: tuple[str, ...] | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    gpm: GpuPerformance | None = None


Clock = Callable[[], float]
Seen = dict[int, int]
"""By GPU index, the NVML timestamp of the last utilization sample read, in microseconds."""


class GpuMonitor:
    """Reads NVML, which the first reading opens. Thread-safe: a lock serializes readings.

    Values that take much CPU time to read, such as the energy counter of an H100, are missing from some readings.
    """

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self._gpus = tuple(gpus)
        self._nvml: Nvml | None = None
        self._reasons: dict[int, Reasons] = {gpu.index: {} for gpu in gpus}
        self._refused: set[tuple[int, str]] = set()
        self._gpm: dict[int, GpmDevice] = {}
        self._due_s: dict[tuple[int, str], float] = {}
        self._lock = threading.Lock()

    @property
    def has_gpus(self) -> bool:
        """Whether there are GPUs to read."""
        return bool(self._gpus)

    def why_not(self, index: int) -> Reasons:
        """Why each value could not be read last time, by name. An empty name has the reason for the complete device."""
        return dict(self._reasons.get(index, {}))

    def read(
        self,
        clock: Clock = time.monotonic,
        *,
        seen: Seen | None = None,
        only: Collection[int] | None = None,
        is_over: Callable[[], bool] = lambda: False,
        not_before_s: float = -math.inf,
    ) -> list[GpuReading]:
        """Read all devices, or `only` some, once. After `is_over` returns true, no further call is made.

        Performance metrics of an interval that began earlier than `not_before_s` are missing.
        """
        with self._lock:
            nvml = None if is_over() else self._opened()
            handles = nvml.handles if nvml else {}
            wanted = [index for index in handles if only is None or index in only]
            return [self._read(index, clock, {} if seen is None else seen, is_over, not_before_s) for index in wanted]

    def described(self, is_over: Callable[[], bool] = lambda: False) -> tuple[Gpu, ...]:
        """The devices with the constant properties that NVML reports."""
        with self._lock:
            nvml = None if is_over() else self._opened()
            return described(self._gpus, nvml, is_over) if nvml else self._gpus

    def _opened(self) -> Nvml | None:
        if self._nvml is None and self._gpus:
            self._nvml = Nvml(self._gpus)
            for index, why in self._nvml.why_not.items():
                self._reasons[index][""] = why
        return self._nvml

    def _read(
        self, index: int, clock: Clock, seen: Seen, is_over: Callable[[], bool], not_before_s: float
    ) -> GpuReading:
        values: dict[str, Any] = {}
        at_s = clock()
        for name, read in _READERS.items():
            if not is_over():
                values[name] = self._value(index, name, read, clock)
        if not is_over():
            read_busy = partial(_busy, clock=clock, seen=seen, index=index)
            values["busy"] = self._value(index, "busy", read_busy, clock, not_due=())
        if not is_over():
            read_gpm = partial(self._read_gpm, index=index, at_s=at_s, not_before_s=not_before_s)
            values["gpm"] = self._value(index, "gpm", read_gpm, clock)
        return GpuReading(index=index, at_s=at_s, **values)

    def _read_gpm(
        self, nvml: Any, device: Any, *, index: int, at_s: float, not_before_s: float
    ) -> GpuPerformance | None:
        if index not in self._gpm:
            self._gpm[index] = GpmDevice(nvml, device)
        return self._gpm[index].read(at_s, not_before_s)

    def _value(self, index: int, name: str, read: Callable[[Any, Any], Any], clock: Clock, not_due: Any = None) -> Any:
        """One value, if a reading is due. Calls that the driver or pynvml does not support are not repeated."""
        began_s, key = clock(), (index, name)
        if self._nvml is None or key in self._refused:
            return None
        if began_s < self._due_s.get(key, began_s):
            return not_due
        library, cpu_s, is_first = self._nvml.library, time.thread_time(), key not in self._due_s
        try:
            return read(library, self._nvml.handles[index])
        except (library.NVMLError, AttributeError) as error:
            self._reasons[index][name] = f"NVML: {error}"
            never = (library.NVMLError_NotSupported, library.NVMLError_FunctionNotFound, library.NVMLError_NoPermission)
            if isinstance(error, (*never, AttributeError)):
                self._refused.add(key)
            return None
        finally:
            pause_s = 0.0 if is_first else min((time.thread_time() - cpu_s) / LARGEST_SHARE, LONGEST_PAUSE_S)
            self._due_s[key] = began_s + pause_s  # the first call includes initialization, so it sets no pause


def _memory_used_bytes(nvml: Any, device: Any) -> int | None:
    """Memory used, without the driver's reserve if version 2 of the call is available."""
    try:
        used = nvml.nvmlDeviceGetMemoryInfo(device, nvml.nvmlMemory_v2).used
    except (nvml.NVMLError, AttributeError):  # an older driver, or an older pynvml
        used = nvml.nvmlDeviceGetMemoryInfo(device).used
    return None if used == _NOT_AVAILABLE else int(used)


def _utilization_percent(nvml: Any, device: Any) -> float | None:
    percent = float(nvml.nvmlDeviceGetUtilizationRates(device).gpu)
    return percent if percent <= 100 else None


def _throttled_by(nvml: Any, device: Any) -> tuple[str, ...]:
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(device)
    except (nvml.NVMLError_FunctionNotFound, AttributeError):  # an older driver or pynvml has the older name
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device)
    words = [text for bit, text in _THROTTLE_WORDS if bits & bit]
    if bits & _HARDWARE_SLOWDOWN and not bits & _HARDWARE_CAUSES:
        words.append("hardware slowdown (HW slowdown)")
    return tuple(words)


_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "energy_j": lambda nvml, device: nvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1000,
    "memory_used_bytes": _memory_used_bytes,
    "utilization_percent": _utilization_percent,
    "power_w": lambda nvml, device: nvml.nvmlDeviceGetPowerUsage(device) / 1000,
    "throttled_by": _throttled_by,
    "sm_clock_mhz": lambda nvml, device: float(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM)),
    "memory_clock_mhz": lambda nvml, device: float(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM)),
    "pcie_generation": lambda nvml, device: int(nvml.nvmlDeviceGetCurrPcieLinkGeneration(device)),
    "pcie_width": lambda nvml, device: int(nvml.nvmlDeviceGetCurrPcieLinkWidth(device)),
}
"""Ordered for slow drivers: the counter first, close to the time of the reading, then the most informative values."""


def _busy(nvml: Any, device: Any, clock: Clock, seen: Seen, index: int) -> tuple[BusyPeriod, ...]:
    """The utilization periods since the last one read.

    The driver dates the end of each period by the system clock, in microseconds. Source: NVML API Reference,
    `nvmlDeviceGetSamples` and `nvmlFieldValue_t` ("CPU Timestamp ... since 1970").
    """
    before_us = seen.get(index, 0)
    try:
        _, samples = nvml.nvmlDeviceGetSamples(device, nvml.NVML_GPU_UTILIZATION_SAMPLES, before_us)
    except nvml.NVMLError_NotFound:  # no newer sample
        return ()
    system_to_clock_s = clock() - time.time()
    periods = []
    for sample in samples:
        to_us, percent = int(sample.timeStamp), float(sample.sampleValue.uiVal)
        if before_us and to_us > before_us and percent <= 100:
            from_us = max(before_us, to_us - 1e6 * LONGEST_PERIOD_S)
            periods.append(BusyPeriod(from_us / 1e6 + system_to_clock_s, to_us / 1e6 + system_to_clock_s, percent))
        before_us = max(before_us, to_us)
    seen[index] = before_us
    return tuple(periods)
