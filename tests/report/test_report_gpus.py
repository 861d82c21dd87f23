"""What a run keeps of its GPUs is on its page: a line for those that are alike, and nothing where nothing is known."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.records import Gpu
from loaderbench.report.gpu_facts import gpu_facts

LINK, PLACE = {"pcie_max_generation": 5, "pcie_max_width": 16}, {"near_cpus": "0-31", "numa_node": 0}
GPU = replace(Gpu(0, "GPU-0", "H100", 80, sm_clock_max_mhz=1980.0), **LINK, **PLACE)


def lines(*gpus: Gpu) -> list[tuple[str, str]]:
    return [(fact.label, fact.value.text) for fact in gpu_facts(gpus)]


def test_one_gpu_has_a_line_for_each_fact() -> None:
    assert lines(GPU) == [
        ("GPU link", "PCIe 5 x16 at most"),
        ("GPU clock limit", "1,980 MHz"),
        ("GPU NUMA", "node 0, near CPUs 0-31"),
    ]


def test_gpus_that_are_alike_share_their_words() -> None:
    others = [replace(GPU, index=1), replace(GPU, index=2, near_cpus="32-63", numa_node=1)]
    found = dict(lines(GPU, *others))
    assert found["GPU link"] == "GPU 0, 1, 2: PCIe 5 x16 at most"
    assert found["GPU NUMA"] == "GPU 0, 1: node 0, near CPUs 0-31; GPU 2: node 1, near CPUs 32-63"


def test_a_run_of_an_earlier_version_has_none() -> None:
    assert lines(Gpu(0, "GPU-0", "H100", 80)) == lines() == []
