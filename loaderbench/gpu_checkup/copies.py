"""How fast batches can be copied to the GPU, from pinned and from pageable memory, against what the link allows."""

from __future__ import annotations

from collections.abc import Mapping

from loaderbench.diagnosis.pcie import PcieLink
from loaderbench.gpu_checkup.rates import finished_per_s
from loaderbench.gpu_checkup.records import CheckedDevice, CheckState, GpuCheck, Value
from loaderbench.records import Interval, Reasons

SIZE_BYTES = 128 << 20
LEAST_SHARE_OF_LINK = 0.5
_COPIES = 12
_LINK = ("pcie_generation", "pcie_max_generation", "pcie_width", "pcie_max_width")


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
    """Copy one buffer again and again, each time until it has arrived."""
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
