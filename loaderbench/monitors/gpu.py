"""What NVML reports of each GPU at one moment. A call may take a second: `GpuThread` makes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from loaderbench.monitors.gpm import GpmDevice
from loaderbench.monitors.nvml import Nvml, described
from loaderbench.records import SW_POWER_CAP, Gpu, GpuPerformance, Reasons

_NOT_AVAILABLE = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE, as memory in bytes
LARGEST_SHARE, LONGEST_PAUSE_S = 0.01, 0.25
"""A reading that takes much CPU time is left out until it has taken this share of the time, or for so many seconds."""
_LONGEST_PERIOD_S = 1.0  # of NVML's utilization: "between 1 second and 1/6 second"
_THROTTLE_WORDS = (
    (0x04, SW_POWER_CAP),
    (0x80, "external power brake (HW power brake)"),
    (0x20, "temperature (SW thermal slowdown)"),
    (0x40, "temperature (HW thermal slowdown)"),
)
_HARDWARE_SLOWDOWN = 0x08  # also set with each of the two that hardware makes
_HARDWARE_CAUSES = 0x40 | 0x80


@dataclass(frozen=True)
class BusyPeriod:
    """A kernel was resident in so much of the time between two moments of the clock of the readings."""

    from_s: float
    to_s: float
    percent: float


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """One device at one moment; a missing reading is `None` (a MIG slice, WSL, a device that was lost).

    `utilization_percent` is of NVML's last sample period, which may have ended a second ago; `busy` has the periods
    since the reading before with their times, where the driver keeps them. `energy_j` is a counter. `gpm` has
    performance metrics since the reading before.
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
"""By index, the timestamp of the last utilization sample that was read, in microseconds of NVML."""


class GpuMonitor:
    """Reads NVML for as long as it answers; it is opened by the first reading. Threads take turns.

    What takes much CPU time to read, such as the energy counter of an H100, is missing from some readings.
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
        """Whether there is anything to read."""
        return bool(self._gpus)

    def why_not(self, index: int) -> Reasons:
        """By the name of a reading, why it failed last; under an empty name, why nothing of the device can be read."""
        return dict(self._reasons.get(index, {}))

    def read(
        self,
        clock: Clock = time.monotonic,
        *,
        seen: Seen | None = None,
        only: Collection[int] | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[GpuReading]:
        """Read each device once, or each of some. Once it `is_over`, no further call is made."""
        with self._lock:
            nvml = None if is_over() else self._opened()
            handles = nvml.handles if nvml else {}
            wanted = [index for index in handles if only is None or index in only]
            return [self._read(index, clock, {} if seen is None else seen, is_over) for index in wanted]

    def described(self, is_over: Callable[[], bool] = lambda: False) -> tuple[Gpu, ...]:
        """The devices with the constant facts that NVML reports of each."""
        with self._lock:
            nvml = None if is_over() else self._opened()
            return described(self._gpus, nvml, is_over) if nvml else self._gpus

    def _opened(self) -> Nvml | None:
        if self._nvml is None and self._gpus:
            self._nvml = Nvml(self._gpus)
            for index, why in self._nvml.why_not.items():
                self._reasons[index][""] = why
        return self._nvml

    def _read(self, index: int, clock: Clock, seen: Seen, is_over: Callable[[], bool]) -> GpuReading:
        found: dict[str, Any] = {}
        at_s = clock()
        for name, read in _READERS.items():
            if not is_over():
                found[name] = self._value(index, name, read, clock)
        if not is_over():
            read_busy = partial(_busy, clock=clock, seen=seen, index=index)
            found["busy"] = self._value(index, "busy", read_busy, clock, not_due=())
        if not is_over():
            found["gpm"] = self._value(index, "gpm", partial(self._read_gpm, index=index, at_s=at_s), clock)
        return GpuReading(index=index, at_s=at_s, **found)

    def _read_gpm(self, nvml: Any, device: Any, *, index: int, at_s: float) -> GpuPerformance | None:
        if index not in self._gpm:
            self._gpm[index] = GpmDevice(nvml, device)
        return self._gpm[index].read(at_s)

    def _value(self, index: int, name: str, read: Callable[[Any, Any], Any], clock: Clock, not_due: Any = None) -> Any:
        """One reading, where it is due. What the driver or pynvml does not know is not asked for again."""
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
            self._due_s[key] = began_s + pause_s  # the first call also prepares, so it sets no pause


def _memory_used_bytes(nvml: Any, device: Any) -> int | None:
    """Memory without what the driver reserves, by version 2 of the call; older drivers have version 1 alone."""
    try:
        used = nvml.nvmlDeviceGetMemoryInfo(device, nvml.nvmlMemory_v2).used
    except (nvml.NVMLError, AttributeError):  # also of older packages
        used = nvml.nvmlDeviceGetMemoryInfo(device).used
    return None if used == _NOT_AVAILABLE else int(used)


def _utilization_percent(nvml: Any, device: Any) -> float | None:
    percent = float(nvml.nvmlDeviceGetUtilizationRates(device).gpu)
    return percent if percent <= 100 else None


def _throttled_by(nvml: Any, device: Any) -> tuple[str, ...]:
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(device)
    except (nvml.NVMLError_FunctionNotFound, AttributeError):  # its name in older drivers, or of older packages
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
"""In this order, for a driver may be slow: the counter close to the time of the reading, then what is most telling."""


def _busy(nvml: Any, device: Any, clock: Clock, seen: Seen, index: int) -> tuple[BusyPeriod, ...]:
    """The periods since the last one seen. The driver dates the end of each by the system's clock, in microseconds.

    Source: NVML API Reference, `nvmlDeviceGetSamples` and `nvmlFieldValue_t` ("CPU Timestamp ... since 1970").
    """
    before_us = seen.get(index, 0)
    try:
        _, samples = nvml.nvmlDeviceGetSamples(device, nvml.NVML_GPU_UTILIZATION_SAMPLES, before_us)
    except nvml.NVMLError_NotFound:  # none is newer
        return ()
    system_to_clock_s = clock() - time.time()
    found = []
    for sample in samples:
        to_us, percent = int(sample.timeStamp), float(sample.sampleValue.uiVal)
        if before_us and to_us > before_us and percent <= 100:
            from_us = max(before_us, to_us - 1e6 * _LONGEST_PERIOD_S)
            found.append(BusyPeriod(from_us / 1e6 + system_to_clock_s, to_us / 1e6 + system_to_clock_s, percent))
        before_us = max(before_us, to_us)
    seen[index] = before_us
    return tuple(found)
