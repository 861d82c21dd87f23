"""All checks of a GPU, in display order. An exception is a failed check."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loaderbench.gpu_checkup.nvml import ReadNvml, check_coverage, check_idle
from loaderbench.gpu_checkup.rates import check_copies, check_decoding
from loaderbench.gpu_checkup.records import CheckedDevice, GpuCheck
from loaderbench.gpu_checkup.usable import named
from loaderbench.gpu_checkup.waits import PLANTED, check_event_timer, check_overhead, check_waits


def check_device(device: CheckedDevice, read_nvml: ReadNvml) -> Iterator[GpuCheck]:
    """Look for other programs, launch a kernel, plant waits, measure the clock's cost, read NVML, copy, decode."""
    yield from _attempt("other_programs", "Other programs on the GPU", lambda: [check_idle(read_nvml)])
    kernel = _attempt("kernel", "Kernel", lambda: [_check_kernel(device)])
    yield from kernel
    if kernel[0].state != "passed":
        yield _not_checked("no kernel runs")
        return
    rates_hz: list[float] = []

    def timer() -> list[GpuCheck]:
        check, rate_hz = check_event_timer(device)
        rates_hz.append(rate_hz)
        return [check]

    yield from _attempt("event_timer", "Event timer", timer)
    if not rates_hz:
        yield _not_checked("kernels cannot be timed")
        return
    yield from _check_timed(device, rates_hz[0], read_nvml)


def _check_timed(device: CheckedDevice, rate_hz: float, read_nvml: ReadNvml) -> Iterator[GpuCheck]:
    for id_, title, steps in PLANTED:
        yield from _attempt(id_, title, lambda: [check_waits(device, rate_hz, id_, title, steps)])  # noqa: B023 - called at once
    yield from _attempt("clock_overhead", "Clock overhead", lambda: check_overhead(device, rate_hz))
    covered = _attempt("nvml", "NVML", lambda: [check_coverage(device, rate_hz, read_nvml)])
    yield from covered
    values, reasons = covered[0].found, covered[0].not_measured
    yield from _attempt("copy", "Copy to the GPU", lambda: check_copies(device, values, reasons))
    yield from _attempt("decode", "JPEG decoding on the GPU", lambda: [check_decoding(device)])


def _check_kernel(device: CheckedDevice) -> GpuCheck:
    device.launch_kernel()
    return GpuCheck(id="kernel", title="Kernel", state="passed", said="runs, with the correct result")


def _attempt(id_: str, title: str, check: Callable[[], list[GpuCheck]]) -> list[GpuCheck]:
    try:
        return check()
    except Exception as error:  # torch 2.4 has no exception class for CUDA errors
        return [GpuCheck(id=id_, title=title, state="failed", said=named(error))]


def _not_checked(why: str) -> GpuCheck:
    return GpuCheck(id="others", title="All other checks", state="not_checked", said=f"not checked: {why}")
