"""Rates of a GPU: batches copied per second, compared with the link, and JPEGs decoded, with their quality."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loaderbench.cuda_use import computing_device
from loaderbench.diagnosis.copy_bandwidth import PcieLink
from loaderbench.diagnosis.failures import classify
from loaderbench.gpu_checkup.device import CudaDevice
from loaderbench.gpu_checkup.records import CheckedDevice, CheckState, GpuCheck, Value
from loaderbench.gpu_checkup.usable import named
from loaderbench.records import CopySpeed, Interval, Reasons
from loaderbench.statistics.intervals import rate_interval

_UNCOUNTED = 2

SIZE_BYTES = 128 << 20
LEAST_SHARE_OF_LINK = 0.5
_COPIES = 12
_LINK = ("pcie_generation", "pcie_max_generation", "pcie_width", "pcie_max_width")

LEAST_PSNR_DB = 30.0
"""Decoders differ in rounding and color upsampling, and stay above this; wrong colors fall below."""

_IMAGES, _BATCHES = 32, 8
_DECODE, _DECODE_TITLE = "decode", "JPEG decoding on the GPU"


def finished_per_s(device: CheckedDevice, call: Callable[[], None], amount: float, *, calls: int) -> Interval:
    """Measure the rate of repeated calls, each until the device has finished; `amount` is the work of one call.

    The first two calls are not counted.
    """
    rates = []
    for number in range(_UNCOUNTED + calls):
        device.synchronize()
        began_s = device.now_s()
        call()
        device.synchronize()
        if number >= _UNCOUNTED:
            rates.append(amount / (device.now_s() - began_s))
    return rate_interval(rates)


def check_copies(device: CheckedDevice, nvml: Mapping[str, Value], reasons: Reasons) -> list[GpuCheck]:
    """Copy from both kinds of memory; `nvml` holds the link, read while the GPU was busy."""
    found = {name: nvml.get(name) for name in _LINK}
    why = {name: reasons.get(name, "not read") for name in _LINK if found[name] is None}
    now = _link(found["pcie_generation"], found["pcie_width"])
    best = _link(found["pcie_max_generation"], found["pcie_max_width"])
    pinned = copy_gb_per_s(device, pinned=True)
    pageable = copy_gb_per_s(device, pinned=False)
    state, said = _judge(pinned, now, best)
    if now.gb_per_s is None:
        why["link_gb_per_s"] = "PCIe generation or width is unknown"
    return [
        GpuCheck(
            id="copy_pinned",
            title="Copy, pinned memory",
            state=state,
            said=f"{_shown(pinned)}; {said}",
            expected={"link_gb_per_s": now.gb_per_s},
            found={"gb_per_s": pinned, **found},
            not_measured=why,
        ),
        GpuCheck(
            id="copy_pageable",
            title="Copy, pageable memory",
            state="passed",
            said=f"{_shown(pageable)}; pinned is {pinned.est / pageable.est:.1f}\N{MULTIPLICATION SIGN} as fast",
            found={"gb_per_s": pageable},
        ),
    ]


def copy_gb_per_s(device: CheckedDevice, *, pinned: bool, size_bytes: int = SIZE_BYTES) -> Interval:
    """Copy one buffer repeatedly, each time until it has arrived."""
    prepared = device.prepare_copy(size_bytes, pinned=pinned)
    return finished_per_s(device, lambda: device.copy(prepared), size_bytes / 1e9, calls=_COPIES)


def _link(generation: Value, lanes: Value) -> PcieLink:
    return PcieLink(
        generation if isinstance(generation, int) else None,
        lanes if isinstance(lanes, int) else None,
    )


def _judge(pinned: Interval, now: PcieLink, best: PcieLink) -> tuple[CheckState, str]:
    if now.gb_per_s is None:
        return "passed", "PCIe link: unknown"
    said = f"{now}, at most {now.gb_per_s:.1f} GB/s"
    if best.gb_per_s is not None and now.gb_per_s < best.gb_per_s:
        return "warning", f"{said}; below its maximum {best}: check slot, riser and BIOS settings"
    if (pinned.hi or pinned.est) < LEAST_SHARE_OF_LINK * now.gb_per_s:
        return "warning", f"{said}; pinned copies reach less than half of it"
    return "passed", said


def _shown(rate: Interval) -> str:
    ends = f" ({rate.lo:.1f}\N{EN DASH}{rate.hi:.1f})" if rate.lo is not None else ""
    return f"{rate.est:.1f} GB/s{ends}"


def check_decoding(device: CheckedDevice) -> GpuCheck:
    """Decode batches of one photo. A torchvision without a GPU decoder gives a warning. CUDA errors are raised."""
    try:
        psnr_db = device.decoded_psnr_db()
    except (RuntimeError, ImportError) as error:
        if classify(f"{type(error).__name__}: {error}").kind != "error":
            raise
        why = f"{named(error)}; `decoder: device` does not work here"
        return GpuCheck(id=_DECODE, title=_DECODE_TITLE, state="warning", said=why, not_measured={"images_per_s": why})
    rate = finished_per_s(device, lambda: device.decode(_IMAGES), _IMAGES, calls=_BATCHES)
    close = "same pixels as on the CPU" if psnr_db is None else f"PSNR {psnr_db:.0f} dB against the CPU"
    state: CheckState = "passed"
    if psnr_db is not None and psnr_db < LEAST_PSNR_DB:
        state, close = "warning", f"{close}, less than {LEAST_PSNR_DB:.0f} dB: do not train on such images"
    return GpuCheck(
        id=_DECODE,
        title=_DECODE_TITLE,
        state=state,
        said=f"{rate.est:,.0f} images/s; {close}",
        expected={"psnr_at_least_db": LEAST_PSNR_DB},
        found={"images_per_s": rate, "psnr_db": psnr_db},
        not_measured={} if psnr_db is not None else {"psnr_db": "identical pixels"},
    )


def copy_speed(
    batch_bytes: float, samples: float, device_of: Callable[[int], CheckedDevice] = CudaDevice
) -> CopySpeed | None:
    """Copy pinned and pageable buffers of a batch's size; `None` without a GPU in use, or if CUDA no longer responds.

    `batch_bytes` and `samples` are averages per batch.
    """
    index = computing_device()
    if index is None or not batch_bytes or not samples:
        return None
    device = device_of(index)
    try:
        return CopySpeed(
            index=index,
            bytes_per_sample=batch_bytes / samples,
            pinned_gb_per_s=copy_gb_per_s(device, pinned=True, size_bytes=round(batch_bytes)),
            pageable_gb_per_s=copy_gb_per_s(device, pinned=False, size_bytes=round(batch_bytes)),
        )
    except RuntimeError:  # no memory for another batch, or a sticky device error
        return None
