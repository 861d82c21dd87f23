"""How fast batches can be copied to the GPU, from pinned and from pageable memory, against what the link allows."""

from __future__ import annotations

from collections.abc import Mapping

from loaderbench.gpu_checkup.records import CheckedDevice, CheckState, GpuCheck, Value
from loaderbench.records import Interval, Reasons
from loaderbench.statistics.intervals import rate_interval

SIZE_BYTES = 128 << 20
LEAST_SHARE_OF_LINK = 0.5
_COPIES, _UNCOUNTED = 12, 2
_GB_PER_S_OF_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""Of each PCIe generation, after its line code. Source: PCI-SIG, PCI Express Base Specification."""

_LINK = ("pcie_generation", "pcie_generation_max", "pcie_width", "pcie_width_max")


def check_copies(device: CheckedDevice, nvml: Mapping[str, Value], reasons: Reasons) -> list[GpuCheck]:
    """Copy from both kinds of memory; `nvml` holds the link, read while the GPU was busy."""
    link = {name: nvml.get(name) for name in _LINK}
    why = {name: reasons.get(name, "not read") for name in _LINK if link[name] is None}
    most = link_gb_per_s(link["pcie_generation"], link["pcie_width"])
    pinned = copy_gb_per_s(device, pinned=True)
    pageable = copy_gb_per_s(device, pinned=False)
    state, said = _judge(pinned, link, most)
    return [
        GpuCheck(
            id="copy_pinned",
            title="Copy, pinned memory",
            state=state,
            said=f"{_shown(pinned)}; {said}",
            expected={"link_gb_per_s": most},
            found={"gb_per_s": pinned, **link},
            not_measured=why if most is not None else {**why, "link_gb_per_s": "PCIe generation or width is unknown"},
        ),
        GpuCheck(
            id="copy_pageable",
            title="Copy, pageable memory",
            state="passed",
            said=f"{_shown(pageable)}; pinned is {pinned.est / pageable.est:.1f}\N{MULTIPLICATION SIGN} as fast",
            found={"gb_per_s": pageable},
        ),
    ]


def copy_gb_per_s(device: CheckedDevice, *, pinned: bool) -> Interval:
    """Copy one buffer again and again, each time until it has arrived."""
    prepared = device.prepare_copy(SIZE_BYTES, pinned=pinned)
    rates = []
    for number in range(_UNCOUNTED + _COPIES):
        device.synchronize()
        began_s = device.now_s()
        device.copy(prepared)
        device.synchronize()
        if number >= _UNCOUNTED:
            rates.append(SIZE_BYTES / 1e9 / (device.now_s() - began_s))
    return rate_interval(rates)


def link_gb_per_s(generation: Value, width: Value) -> float | None:
    """What a PCIe link carries one way; `None` where it is unknown."""
    if not isinstance(generation, int) or not isinstance(width, int) or generation not in _GB_PER_S_OF_LANE:
        return None
    return _GB_PER_S_OF_LANE[generation] * width


def _judge(pinned: Interval, link: Mapping[str, Value], most: float | None) -> tuple[CheckState, str]:
    if most is None:
        return "passed", "PCIe link: unknown"
    now, best = _name(link, ""), _name(link, "_max")
    said = f"{now}, at most {most:.1f} GB/s"
    most_at_best = link_gb_per_s(link["pcie_generation_max"], link["pcie_width_max"])
    if most_at_best is not None and most < most_at_best:
        return "warning", f"{said}; the link could be {best}: check slot, riser and BIOS"
    if (pinned.hi or pinned.est) < LEAST_SHARE_OF_LINK * most:
        return "warning", f"{said}; less than half of that arrives"
    return "passed", said


def _name(link: Mapping[str, Value], end: str) -> str:
    return f"PCIe {link[f'pcie_generation{end}']} \N{MULTIPLICATION SIGN}{link[f'pcie_width{end}']}"


def _shown(rate: Interval) -> str:
    ends = f" ({rate.lo:.1f}\N{EN DASH}{rate.hi:.1f})" if rate.lo is not None else ""
    return f"{rate.est:.1f} GB/s{ends}"
