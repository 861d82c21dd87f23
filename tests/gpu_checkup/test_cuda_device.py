"""The GPU that CUDA shows goes through the same checks, in a separate process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from simulated_device import patch_machine
from simulated_gpu import BYTES_PER_S, CYCLES_PER_S, nvml_of

from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.datasets.encoded import decode_jpegs
from loaderbench.gpu_checkup import device as of_cuda
from loaderbench.gpu_checkup.checkup import check_device
from loaderbench.gpu_checkup.device import CudaDevice
from loaderbench.monitors import count_gpus
from loaderbench.records import Gpu
from loaderbench.runner import TrialServer
from loaderbench.runner.gpu_checks import check_gpu


def test_it_spins_sleeps_and_reads_by_the_clock_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, launched = patch_machine(monkeypatch, devices=2), list[str]()
    device = machine.devices[1]
    decoded: list[str] = []

    def decode(files: Sequence[torch.Tensor], where: torch.device) -> list[torch.Tensor]:
        decoded.append(str(where))
        device.launch(len(files) * 1e-3)
        return decode_jpegs(files[:1], torch.device("cpu"))

    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: device.launch(cycles / CYCLES_PER_S))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: device.synchronize())
    monkeypatch.setattr(of_cuda, "launch_kernel", launched.append)
    monkeypatch.setattr(of_cuda, "decode_jpegs", decode)
    monkeypatch.setattr(time, "perf_counter", lambda: device.now_s)
    monkeypatch.setattr(time, "sleep", device.host)

    class WithoutMemory(CudaDevice):
        def prepare_copy(self, size_bytes: int, *, pinned: bool) -> Any:
            return size_bytes / BYTES_PER_S[pinned]

        def copy(self, prepared: Any) -> None:
            device.launch(prepared)

    gpu = WithoutMemory(1)
    found = list(check_device(gpu, nvml_of(device)))
    assert {check.state for check in found} == {"passed"}, found
    assert len(found) == 12
    assert set(decoded) == {"cuda:1", "cpu"}
    assert found[-1].said.endswith(" images/s; same pixels as on the CPU"), "the CPU plays the GPU"
    assert (launched, machine.current) == (["cuda:1"], 1), "events are recorded on the current device"
    assert isinstance(gpu.wait_clock(), CudaWaitClock)


@pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU")
def test_where_cuda_does_not_start_a_process_answers_with_failed_checks() -> None:
    found = list(check_gpu(TrialServer(), Gpu(0, "a", "NVIDIA Z1", 8 << 30)))
    assert [(check.id, check.state) for check in found] == [
        ("other_programs", "passed"), ("kernel", "failed"), ("others", "not_checked"),
    ]  # fmt: skip
    assert found[1].said
    assert "\n" not in found[1].said
