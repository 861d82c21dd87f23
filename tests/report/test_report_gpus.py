"""What a run keeps of its GPUs is on its page: a line for those that are alike, and nothing where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
import run_factory as runs
from blocks import facts, failures

from loaderbench.records import Gpu, GpuMemory, GpuUse
from loaderbench.report import head
from loaderbench.report.document import build_document
from loaderbench.report.sections.about import gpu_facts

LINK, PLACE = {"pcie_max_generation": 5, "pcie_max_width": 16}, {"near_cpus": "0-31", "numa_node": 0}
GPU = replace(Gpu(0, "GPU-0", "H100", 80, sm_clock_max_mhz=1980.0), **LINK, **PLACE)


def lines(*gpus: Gpu) -> list[tuple[str, str]]:
    return [(fact.label, fact.value.text) for fact in gpu_facts(gpus)]


def test_one_gpu_has_a_line_for_each_fact() -> None:
    assert lines(GPU) == [
        ("GPU link", "max PCIe 5 x16"),
        ("GPU clock limit", "1,980 MHz"),
        ("GPU NUMA", "node 0, local CPUs 0-31"),
    ]


def test_gpus_that_are_alike_share_their_words() -> None:
    others = [replace(GPU, index=1), replace(GPU, index=2, near_cpus="32-63", numa_node=1)]
    found = dict(lines(GPU, *others))
    assert found["GPU link"] == "GPU 0, 1, 2: max PCIe 5 x16"
    assert found["GPU NUMA"] == "GPU 0, 1: node 0, local CPUs 0-31; GPU 2: node 1, local CPUs 32-63"


def test_the_link_in_use_is_the_fastest_that_was_read_of_this_gpu() -> None:
    uses = [GpuUse(0, "", pcie_generation=g, pcie_width=w) for g, w in ((1, 16), (4, 8), (None, 8))]
    elsewhere = GpuUse(1, "", pcie_generation=5, pcie_width=16)
    found = {fact.label: fact.value.text for fact in gpu_facts([GPU], [*uses, elsewhere])}
    assert found["GPU link"] == "PCIe 4 x8 (max PCIe 5 x16)"


def test_a_failure_by_gpu_memory_names_the_batch_that_fits() -> None:
    def hint(largest: int | None, kind: str = "device_memory") -> str:
        run = runs.partly_failed()
        trials = tuple(replace(t, failure=t.failure and replace(t.failure, kind=kind)) for t in run.trials)
        memory = GpuMemory(total_bytes=80 << 30, batches=(), others_bytes=0, largest_batch=largest)
        (group,) = failures(build_document(replace(run, trials=trials, gpu_memory=memory)))
        return group.hint.text

    assert "Estimated maximum: batch_size=1,184 (extrapolated from smaller batches). Out of memory." in hint(1_184)
    assert "predicted" not in hint(None)
    assert "predicted" not in hint(1_184, "worker_killed")


def test_a_run_of_an_earlier_version_has_none() -> None:
    assert lines(Gpu(0, "GPU-0", "H100", 80)) == lines() == []


def test_a_gpu_that_is_not_nvidia_s_has_its_platform() -> None:
    def shown(gpu: Gpu) -> str:
        return head.accelerator(replace(runs.typical().environment, gpus=(gpu,))).text

    assert shown(Gpu(0, "", "AMD Instinct MI300X", 192 << 30, platform="ROCm 6.4")).startswith(
        "AMD Instinct MI300X (ROCm 6.4), 192 GiB"
    )
    assert shown(Gpu(0, "", "H100", 80 << 30, platform="CUDA 13.0")).startswith("H100, 80")


@pytest.mark.parametrize(
    ("fixed_bytes", "line"),
    [(512 << 20, "512 MiB + 2 MiB per sample"), (-120_000_000, "2 MiB per sample \u2212 114 MiB")],
)
def test_the_line_through_the_peaks_can_begin_below_zero(fixed_bytes: float, line: str) -> None:
    memory = GpuMemory(
        total_bytes=80 << 30,
        batches=(),
        others_bytes=0,
        largest_batch=1_184,
        fixed_bytes=fixed_bytes,
        bytes_per_sample=2 << 20,
    )
    found = facts(build_document(replace(runs.gpu_run(), gpu_memory=memory)), "gpu-memory")
    assert found[0].value.text == f"about 1,184 (extrapolated: {line})"
