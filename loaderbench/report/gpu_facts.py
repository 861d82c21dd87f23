"""What is known of each GPU of a run: its link, and where it is in the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from loaderbench.diagnosis.copy_bandwidth import PcieLink
from loaderbench.records import Gpu, GpuUse
from loaderbench.report import numbers, words
from loaderbench.report.model import Fact


def gpu_facts(gpus: Sequence[Gpu], uses: Sequence[GpuUse] = ()) -> Iterator[Fact]:
    """A line for all GPUs that are alike; nothing of a run that did not keep it. `uses` are those of its trials."""
    for label, said in (("GPU link", partial(_link, uses)), ("GPU clock limit", _clock), ("GPU NUMA", _place)):
        alike: dict[str, list[int]] = {}
        for gpu in gpus:
            if text := said(gpu):
                alike.setdefault(text, []).append(gpu.index)
        if alike:
            one = len(gpus) == 1
            lines = [text if one else f"GPU {', '.join(map(str, which))}: {text}" for text, which in alike.items()]
            yield Fact(label, words.outside("; ".join(lines), words.LABEL_LIMIT))


def _link(uses: Sequence[GpuUse], gpu: Gpu) -> str:
    """`PCIe 4 x8 (max PCIe 5 x16)`: the fastest that a trial has read, as an idle link goes slower."""
    links = [PcieLink(use.pcie_generation, use.pcie_width) for use in uses if use.index == gpu.index]
    known = [link for link in links if link.gb_per_s is not None]
    used = f"{max(known, key=lambda link: link.gb_per_s or 0.0)}" if known else ""
    if gpu.pcie_max_generation is None and gpu.pcie_max_width is None:
        return used
    most = f"max {PcieLink(gpu.pcie_max_generation, gpu.pcie_max_width)}"
    return f"{used} ({most})" if used else most


def _clock(gpu: Gpu) -> str:
    return "" if gpu.sm_clock_max_mhz is None else numbers.with_unit(numbers.number(gpu.sm_clock_max_mhz, 4), "MHz")


def _place(gpu: Gpu) -> str:
    node = "" if gpu.numa_node is None else f"node {gpu.numa_node}"
    cpus = "" if gpu.near_cpus is None else f"local CPUs {gpu.near_cpus}"
    return ", ".join(filter(None, (node, cpus)))
