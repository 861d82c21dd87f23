"""GPUs that are not NVIDIA's: what torch shows of ROCm, XPU and MPS, played below the real code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from simulated_device import patch_machine

from loaderbench.consumers import accelerator, training_step
from loaderbench.consumers.accelerator import device_here
from loaderbench.consumers.cuda import visible_gpus
from loaderbench.consumers.eager_step import native_precision
from loaderbench.consumers.kind import HostWaitClock
from loaderbench.consumers.step_options import StepOptions
from loaderbench.consumers.target import TargetConsumer
from loaderbench.consumers.training_step import TrainingStep
from loaderbench.cuda_use import PeakMemory, devices_in_use, peak_memory
from loaderbench.monitors import GpuMonitor
from loaderbench.records import Gpu

ARC = SimpleNamespace(name="Intel Arc B580", total_memory=12 << 30, uuid=b"not text")
BATCH = (torch.rand(2, 3, 32, 32), torch.tensor([0, 1]))


def play(monkeypatch: pytest.MonkeyPatch, kind: str, *, with_accelerator: bool = True) -> None:
    """Let torch be a build for XPU or MPS, of today, or of before there was `torch.accelerator`."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.xpu, "is_available", lambda: kind == "xpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: kind == "mps")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device(kind))
    if not with_accelerator:
        monkeypatch.delattr(torch, "accelerator")
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 2)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda _: ARC)
    monkeypatch.setattr(torch.mps, "device_count", lambda: 1)
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 11 << 30)
    monkeypatch.setattr(torch.backends.mps, "get_name", lambda: "Apple M4")


@pytest.mark.parametrize("with_accelerator", [True, False])
def test_a_machine_with_xpu_has_gpus(monkeypatch: pytest.MonkeyPatch, with_accelerator: bool) -> None:
    play(monkeypatch, "xpu", with_accelerator=with_accelerator)
    gpus, reasons = visible_gpus()
    assert reasons == {}
    assert [(gpu.device, gpu.name, gpu.memory_total_bytes, gpu.platform) for gpu in gpus] == [
        ("xpu:0", "Intel Arc B580", 12 << 30, "XPU"),
        ("xpu:1", "Intel Arc B580", 12 << 30, "XPU"),
    ]
    assert [device_here(name) for name in ("cuda", "cuda:0", "cpu")] == ["xpu", "cuda:0", "cpu"]


def test_each_rank_has_the_gpu_of_its_number_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "has_ranks", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert [device_here(name) for name in ("cuda", "cuda:1", "cpu")] == ["cuda:3", "cuda:1", "cpu"]
    play(monkeypatch, "xpu")
    assert device_here("cuda") == "xpu"


def test_a_gpu_that_a_suite_names_by_its_index_becomes_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = patch_machine(monkeypatch, devices=2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name, current in (("cuda", 0), ("cpu", 0), ("cuda:1", 1)):
        accelerator.make_current(name)
        assert machine.current == current


@pytest.mark.parametrize("with_accelerator", [True, False])
def test_a_mac_has_one(monkeypatch: pytest.MonkeyPatch, with_accelerator: bool) -> None:
    play(monkeypatch, "mps", with_accelerator=with_accelerator)
    ((gpu,), _) = visible_gpus()
    assert (gpu.device, gpu.name, gpu.memory_total_bytes, gpu.platform) == ("mps:0", "Apple M4", 11 << 30, "MPS")
    monkeypatch.delattr(torch.backends.mps, "get_name")  # as before 2.9
    assert visible_gpus()[0][0].name == "MPS device"


def test_a_build_for_an_accelerator_that_is_not_there_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, "xpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert visible_gpus() == ((), {"gpus": "torch was built without CUDA"})
    assert device_here("cuda") == "cuda"


def test_rocm_is_named_and_read_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(name="AMD Instinct MI300X", total_memory=192 << 30, uuid="1")
    monkeypatch.setattr(torch.version, "hip", "6.4.43483")
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: found)
    ((gpu,), _) = visible_gpus()
    assert (gpu.device, gpu.platform, gpu.of_nvidia) == ("cuda:0", "ROCm 6.4.43483", False)
    monitor = GpuMonitor([gpu])
    assert monitor.read() == []
    assert monitor.why_not(0)[""] == "no readings of ROCm 6.4.43483: NVML supports NVIDIA GPUs only"
    (described,) = monitor.described()
    assert described.pcie_max_width is None
    assert described.not_measured["pcie_max_width"] == monitor.why_not(0)[""]


def test_a_run_of_before_that_knows_no_platform_is_nvidia_s() -> None:
    assert Gpu(0, "GPU-1", "H100", 1).of_nvidia


def test_a_step_on_another_gpu_ends_when_the_device_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step computes on the CPU, which plays the GPU."""
    monkeypatch.setattr(accelerator, "other_kind", lambda: "xpu")
    waited: list[torch.device] = []
    monkeypatch.setattr(training_step, "torch", SimpleNamespace(device=lambda *_: torch.device("cpu")))
    monkeypatch.setattr(training_step, "synchronize", waited.append)
    step = TrainingStep(StepOptions(model="squeezenet1_1", image_size=64))
    for _ in range(3):
        step.consume(BATCH, 2)
    assert waited == [torch.device("cpu")] * 3
    assert isinstance(step.wait_clock, HostWaitClock)
    with pytest.raises(TypeError, match=r"consumer.cuda_graphs on xpu: needs CUDA; drop it"):
        TrainingStep(StepOptions(model="squeezenet1_1", cuda_graphs=True))


def test_waiting_names_the_device_where_there_can_be_several(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waited.append("mps"))
    monkeypatch.setattr(torch.xpu, "synchronize", waited.append)
    accelerator.synchronize(torch.device("mps"))
    accelerator.synchronize(torch.device("xpu", 1))
    assert waited == ["mps", torch.device("xpu", 1)]


def test_mixed_precision_is_what_the_kind_of_device_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (native_precision("xpu"), native_precision("mps")) == (torch.bfloat16, torch.float16)
    monkeypatch.setattr(torch.amp, "is_autocast_available", lambda kind: kind != "mps")
    assert native_precision("mps") is None


def test_a_trial_says_which_of_them_it_used(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, "xpu")
    assert devices_in_use() == ()
    monkeypatch.setattr(torch.xpu, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.xpu, "current_device", lambda: 1)
    monkeypatch.setattr(torch.xpu, "max_memory_allocated", lambda _: 5)
    monkeypatch.setattr(torch.xpu, "max_memory_reserved", lambda _: 6)
    assert devices_in_use() == (1,)
    assert peak_memory() == (PeakMemory(1, 5, 6),)
    own = TargetConsumer(lambda _: None)
    own.consume(BATCH, 2)
    assert own.note == "Data wait uses the host clock: XPU steps have no timing events"


def test_mps_keeps_no_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, "mps")
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 7)
    assert (devices_in_use(), peak_memory()) == ((0,), ())
