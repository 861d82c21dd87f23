"""A trial reports the GPUs that its own process used, and no other of the machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from command_line import Cli, loaderbench
from machine import TWO_CPUS
from nvml_stub import GPU_IS_LOST, StubNvml

from loaderbench.cuda_use import cuda_devices_in_use
from loaderbench.monitors import GpuMonitor, Sampling
from loaderbench.monitors.gpu import GpuReading
from loaderbench.recorder import Measurement
from loaderbench.records import Gpu, GpuUse, LoaderInside
from loaderbench.runner.protocol import Result
from loaderbench.runner.rank_results import result_of_ranks
from loaderbench.runner.readings import rank_readings, resource_use
from loaderbench.store import read_run

TESTS = Path(__file__).parents[1]
SIMULATED = f"{TESTS}:{TESTS / 'kernels_run'}"
SUITE = """\
name: two gpus
dataset: {kind: target, target: "lb_gpus:samples"}
sweep: {batch_size: [4], num_workers: [0]}
consumer: {kind: target, target: "simulated_gpus:step"}
measure: {rounds: 1, seconds: 1, verify: false}
"""
SAMPLES = """import time, torch

class Samples(torch.utils.data.Dataset):
    def __len__(self): return 1024
    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.zeros(3, 32, 32), 0

def samples(): return Samples()
"""


@pytest.fixture(scope="module")
def two_gpus(nvml_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the second of two GPUs, which is held back; another job fills the first."""
    if torch.cuda.is_available():
        pytest.skip("torch finds a GPU here")
    place = tmp_path_factory.mktemp("two-gpus")
    stub = StubNvml(nvml_library, place / "nvml.txt")
    others = {"busy_percent@0": 99, "memory_used@0": 70e9, "busy_percent@1": 20, "memory_used@1": 3e9}
    slow = {"throttle@1": 0x4 | 0x40, "pcie_generation@1": 3, "pcie_max_generation@1": 4, "numa_node@1": 1}
    stub.set({**others, **slow}, gpus=2, sample_s=0.05, power_mw=250e3)
    (place / "s.yaml").write_text(SUITE)
    (place / "lb_gpus.py").write_text(SAMPLES)
    known = {"PYTHONPATH": SIMULATED, **stub.environment}
    found = loaderbench("run", "s.yaml", "--out", "r", "--progress", "none", cwd=place, **known)
    assert found.returncode == 0, found.stderr
    return place / "r"


@pytest.mark.sleeping
@pytest.mark.slow
def test_the_fullest_gpu_is_another_job_s_and_not_reported(two_gpus: Path) -> None:
    run = read_run(two_gpus)
    assert [gpu.uuid for gpu in run.environment.gpus] == ["0", "1"]
    (used,) = run.sweep[0].gpus
    assert (used.index, used.uuid, used.memory_used_bytes) == (1, "1", 3_000_000_000)
    assert used.utilization_percent == pytest.approx(20)
    (configuration,) = run.configurations
    assert configuration.gpu_memory_used_bytes == 3_000_000_000
    assert (used.peak_allocated_bytes, used.peak_reserved_bytes) == (1 << 19, 1 << 20)
    assert run.gpu_memory is not None
    assert run.gpu_memory.not_measured["largest_batch"] == "one batch size was measured"
    assert "Largest batch that fits" in (two_gpus / "report.html").read_text()


@pytest.mark.sleeping
@pytest.mark.slow
def test_a_run_tells_power_and_warns_of_a_gpu_that_is_held_back(two_gpus: Path) -> None:
    run = read_run(two_gpus)
    trial, gpu = run.sweep[0], run.environment.gpus[1]
    (used,) = trial.gpus
    assert used.power_w == pytest.approx(250, rel=0.1)
    assert used.energy_per_sample_j == pytest.approx(250 / trial.samples_per_s, rel=0.1)
    assert list(used.not_measured) == ["copy_speed"]
    assert run.configurations[0].metrics["gpu_power_w"] == used.power_w
    assert (gpu.pcie_max_generation, gpu.numa_node) == (4, 1)
    for said in (
        "GPU 1 was throttled: temperature (HW thermal slowdown) in 100% of the readings",
        "GPU 1: PCIe 3 x16 under load (maximum: PCIe 4 x16), which slows copies to the GPU.",
    ):
        assert any(found.startswith(said) for found in (*run.warnings, *run.setup_notes)), run.warnings
    assert not any(warning.startswith("GPU 0") for warning in run.warnings)
    page = (two_gpus / "report.html").read_text()
    assert all(said in page for said in ("GPU power", "GPU energy/sample", "GPU link", "SW power cap"))


def by_nvml(use: GpuUse) -> set[str]:
    """Reasons of missing readings; copies are measured by isolation runs."""
    return {why for name, why in use.not_measured.items() if name != "copy_speed"}


def measured(stub: StubNvml, command: Cli, folder: Path, **environment: str) -> GpuUse:
    """The one GPU of the first trial of a run."""
    (folder / "s.yaml").write_text(SUITE)
    (folder / "lb_gpus.py").write_text(SAMPLES)
    known = {"PYTHONPATH": SIMULATED, **stub.environment, **environment}
    found = command("run", "s.yaml", "--out", "r", "--progress", "none", **known)
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    (used,) = read_run(folder / "r").sweep[0].gpus
    return used


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU here")
def test_a_slice_of_mig_has_its_memory_and_a_reason_for_the_rest(
    stub_nvml: StubNvml, command: Cli, tmp_path: Path
) -> None:
    stub_nvml.set(gpus=2, mig_slices=2, memory_used=5e9)
    used = measured(stub_nvml, command, tmp_path, SIMULATED_UUID="1-2")
    assert (used.memory_used_bytes, used.utilization_percent, used.power_w) == (5_000_000_000, None, None)
    assert by_nvml(used) == {"NVML: Not Supported"}


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU here")
def test_a_run_beside_a_lost_gpu_has_its_reason(stub_nvml: StubNvml, command: Cli, tmp_path: Path) -> None:
    stub_nvml.set({"every_function@1": GPU_IS_LOST}, gpus=8)
    used = measured(stub_nvml, command, tmp_path)
    assert used.memory_used_bytes is None
    assert by_nvml(used) == {"NVML: GPU is lost"}


@pytest.mark.slow
@pytest.mark.sleeping
@pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU here")
def test_a_slow_driver_leaves_the_readings_of_the_processes(stub_nvml: StubNvml, command: Cli, tmp_path: Path) -> None:
    stub_nvml.set(gpus=2, call_s=1)
    used = measured(stub_nvml, command, tmp_path)
    assert all(used.not_measured.values())
    trial = read_run(tmp_path / "r").sweep[0]
    assert trial.cpu_percent_of_allotted is not None
    assert trial.rss_bytes is not None


def fake_cuda(memory: dict[int, int], current: int, *, initialized: bool = True) -> Any:
    return SimpleNamespace(
        is_initialized=lambda: initialized,
        device_count=lambda: 4,
        max_memory_reserved=lambda index: memory.get(index, 0),
        current_device=lambda: current,
    )


@pytest.mark.parametrize(
    ("cuda", "used"),
    [
        (fake_cuda({2: 10, 3: 5}, 0), (2, 3)),
        (fake_cuda({}, 1), (1,)),
        (fake_cuda({2: 10}, 0, initialized=False), ()),
    ],
)
def test_devices_in_use_have_memory_of_torch_or_else_are_current(
    monkeypatch: pytest.MonkeyPatch, cuda: Any, used: tuple[int, ...]
) -> None:
    monkeypatch.setattr(torch, "cuda", cuda)
    assert cuda_devices_in_use() == used


def test_after_an_error_of_the_device_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise RuntimeError("CUDA error: device-side assert triggered")

    cuda = fake_cuda({}, 0)
    cuda.current_device = fail
    monkeypatch.setattr(torch, "cuda", cuda)
    assert cuda_devices_in_use() == ()


def rank_on(device: int, samples: int) -> Result:
    """A rank that took these samples in two seconds."""
    measurement = Measurement(0.1, 1, began_s=0.0, ended_s=2.0, batches=4, samples=samples, waits_s=(), waits_at_s=())
    return Result(measurement, 0.0, None, LoaderInside(), cuda_devices=(device,))


def test_the_energy_of_a_sample_counts_the_samples_of_the_ranks_on_its_gpu() -> None:
    gpus = tuple(Gpu(index, str(index), "GPU", 80 << 30) for index in (0, 1))
    result = result_of_ranks([rank_on(0, 400), rank_on(1, 100), rank_on(1, 200)])
    readings = [GpuReading(index=gpu.index, at_s=1.0, power_w=300.0) for gpu in gpus]
    sampling = Sampling(root=1, samples=(), pss_bytes=None, cpu_share=0.0, gpus=readings)
    seen = sampling, replace(TWO_CPUS, gpus=gpus), GpuMonitor(gpus)
    assert [use.energy_per_sample_j for use in resource_use(result, *seen).gpus] == [1.5, 2.0]
    of_ranks = [use.energy_per_sample_j for rank in rank_readings(result, *seen) for use in rank.gpus]
    assert of_ranks == [1.5, 2.0, 2.0]
