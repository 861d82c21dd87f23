"""The checks of `doctor --gpu` on a simulated device: a sound one passes, and each planted fault is found."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_device import STICKY, SimulatedDevice, patch
from simulated_gpu import SimulatedGpu, nvml_of, sound_nvml

from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.gpu_checkup.checkup import check_device
from loaderbench.gpu_checkup.records import GpuCheck
from loaderbench.records import Interval

NO_CODE = "CUDA error: no kernel image is available for execution on the device"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    return patch(monkeypatch)


def checked(gpu: SimulatedGpu, nvml: Any = None) -> dict[str, GpuCheck]:
    return {check.id: check for check in check_device(gpu, nvml or nvml_of(gpu.device))}


def estimate(value: Any) -> float:
    assert isinstance(value, Interval)
    return value.est


def test_a_sound_device_passes_every_check(device: SimulatedDevice) -> None:
    found = checked(SimulatedGpu(device))
    assert {check.state for check in found.values()} == {"passed"}, found
    assert list(found) == [
        "other_programs", "kernel", "event_timer", "wait_of_idle_device", "wait_of_busy_device", "wait_mixed",
        "clock_overhead_host", "clock_overhead_device", "nvml", "copy_pinned", "copy_pageable", "decode",
    ]  # fmt: skip
    idle, busy = found["wait_of_idle_device"], found["wait_of_busy_device"]
    assert estimate(idle.found["wait_s"]) == pytest.approx(0.02008), "the sleep that was asked for, and its delay"
    assert estimate(busy.found["wait_s"]) == pytest.approx(0.0, abs=1e-9)
    assert 0.001 < estimate(found["wait_mixed"].found["wait_s"]) < 0.02
    assert estimate(found["copy_pinned"].found["gb_per_s"]) == pytest.approx(25)
    assert found["copy_pinned"].expected["link_gb_per_s"] == pytest.approx(31.5, abs=0.01)
    assert "3.1\N{MULTIPLICATION SIGN}" in found["copy_pageable"].said
    assert estimate(found["decode"].found["images_per_s"]) == pytest.approx(2_000, rel=0.01)
    assert found["decode"].said.endswith(" images/s; PSNR 38 dB against the CPU")
    assert device.now_s < 20, "a minute at most, with the start of CUDA"


class WrongClock(CudaWaitClock):
    def waits_s(self) -> list[float]:
        return [wait_s * 1.1 for wait_s in super().waits_s()]


def test_a_clock_that_is_wrong_by_a_tenth_fails_with_its_number(device: SimulatedDevice) -> None:
    found = checked(SimulatedGpu(device, WrongClock))
    idle = found["wait_of_idle_device"]
    assert idle.state == "failed"
    assert idle.said == "22.09 ms per step, planted 20.08 ms; error +2.01 ms (+10.0% of a step; at most 3.0%)"
    assert found["wait_mixed"].state == "failed"
    assert found["wait_of_busy_device"].state == "passed", "a tenth of nothing"


class HostClock(CudaWaitClock):
    """Calls the whole of `next()` a wait, as a clock of the host does."""

    def waits_s(self) -> list[float]:
        return [0.005 + wait_s for wait_s in super().waits_s()]


def test_a_clock_that_calls_hidden_loading_a_wait_fails_on_the_busy_device(device: SimulatedDevice) -> None:
    busy = checked(SimulatedGpu(device, HostClock))["wait_of_busy_device"]
    assert busy.state == "failed"
    assert busy.found["error_s"] == pytest.approx(0.005)


def test_a_step_that_the_system_interrupted_fails_nothing(device: SimulatedDevice) -> None:
    class Interrupted(CudaWaitClock):
        asked = 0

        def got(self) -> None:
            self.asked += 1
            if self.asked % 10 == 0:
                device.host(0.03)
            super().got()

    found = checked(SimulatedGpu(device, Interrupted))
    assert found["wait_of_idle_device"].state == "passed"
    assert found["wait_of_idle_device"].found["largest_error_s"] == pytest.approx(0.03)


def test_a_costly_clock_misses_the_goal_with_its_number(device: SimulatedDevice) -> None:
    class Costly(CudaWaitClock):
        def ask(self) -> None:
            device.host(8e-6)
            super().ask()

    host = checked(SimulatedGpu(device, Costly))["clock_overhead_host"]
    assert (host.state, host.said) == ("warning", "8.0 (8.0\N{EN DASH}8.0) µs per step; goal: at most 5 µs")


def test_a_clock_that_makes_the_device_wait_fails(device: SimulatedDevice) -> None:
    class Blocking(CudaWaitClock):
        def got(self) -> None:
            device.synchronize()
            device.host(20e-6)
            super().got()

    slower = checked(SimulatedGpu(device, Blocking))["clock_overhead_device"]
    assert slower.state == "failed"
    assert slower.said.startswith("step time 1.0240 (")
    assert "of 1.00 ms, slower, measurably" in slower.said


def test_a_device_without_a_kernel_for_it_is_one_failed_check_and_the_rest_is_not_checked(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = SimulatedGpu(device)

    def raises() -> None:
        raise RuntimeError(NO_CODE)

    monkeypatch.setattr(gpu, "launch_kernel", raises)
    found = checked(gpu)
    assert [(check.id, check.state) for check in found.values()] == [
        ("other_programs", "passed"), ("kernel", "failed"), ("others", "not_checked"),
    ]  # fmt: skip
    assert found["kernel"].said.startswith("device_unsupported: ")
    assert "install a build for its compute capability" in found["kernel"].said


@pytest.mark.parametrize("spins", [0, 5, 40, 100, 200])
def test_a_device_that_fails_in_between_is_failed_checks_and_no_crash(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch, spins: int
) -> None:
    gpu = SimulatedGpu(device)
    spin, left = gpu.spin, iter(range(spins))

    def fails(cycles: int) -> None:
        if next(left, None) is None:
            device.fail()
        spin(cycles)

    monkeypatch.setattr(gpu, "spin", fails)
    failed = [check for check in checked(gpu).values() if check.state == "failed"]
    assert failed
    assert all(check.said.startswith(f"device_assert: RuntimeError: {STICKY}") for check in failed)


def test_nvml_without_values_is_a_warning_with_its_reason(device: SimulatedDevice) -> None:
    names = sound_nvml()[0]
    found = checked(SimulatedGpu(device), lambda: (dict.fromkeys(names), dict.fromkeys(names, "NVML: Not Supported")))
    assert found["nvml"].state == "warning"
    assert "no utilization_percent, memory_used_bytes" in found["nvml"].said
    assert "(NVML: Not Supported)" in found["nvml"].said
    assert found["copy_pinned"].state == "passed"
    assert found["copy_pinned"].expected["link_gb_per_s"] is None
    assert found["copy_pinned"].not_measured["pcie_width"] == "NVML: Not Supported"


def test_nvml_that_reads_another_device_is_a_warning(device: SimulatedDevice) -> None:
    nvml = checked(SimulatedGpu(device), nvml_of(device, utilization_percent=0.0))["nvml"]
    assert nvml.state == "warning"
    assert nvml.said.startswith("reads 0% utilization while the GPU is busy")


def test_a_gpu_that_others_use_is_a_warning(device: SimulatedDevice) -> None:
    others = checked(SimulatedGpu(device), nvml_of(device, utilization_percent=40.0))["other_programs"]
    assert others.state == "warning"
    assert others.said.startswith("40% utilization before the checks")


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"pcie_width": 8}, "below its maximum PCIe 4 x16"),
        ({"pcie_generation": 6, "pcie_max_generation": 6}, "pinned copies reach less than half of it"),
    ],
)
def test_a_link_below_its_best_is_a_warning(device: SimulatedDevice, link: dict[str, int], said: str) -> None:
    copies = checked(SimulatedGpu(device), nvml_of(device, **link))["copy_pinned"]
    assert copies.state == "warning"
    assert said in copies.said


def test_wrong_colors_are_a_warning_and_the_same_pixels_have_no_distance(device: SimulatedDevice) -> None:
    wrong = checked(SimulatedGpu(device, psnr_db=14.0))["decode"]
    assert wrong.state == "warning"
    assert wrong.said.endswith("PSNR 14 dB against the CPU, less than 30 dB: do not train on such images")
    same = checked(SimulatedGpu(device, psnr_db=None))["decode"]
    assert (same.state, same.not_measured) == ("passed", {"psnr_db": "identical pixels"})


@pytest.mark.parametrize(
    ("error", "state", "said"),
    [
        (RuntimeError("Not compiled with nvJPEG"), "warning", "`decoder: device` does not work here"),
        (ImportError("No module named 'torchcodec'"), "warning", "`decoder: device` does not work here"),
        (RuntimeError(STICKY), "failed", "device_assert: "),
    ],
)
def test_a_torchvision_that_does_not_decode_on_the_gpu_is_a_warning_and_an_error_of_cuda_is_none(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch, error: Exception, state: str, said: str
) -> None:
    gpu = SimulatedGpu(device)

    def raises() -> None:
        raise error

    monkeypatch.setattr(gpu, "decoded_psnr_db", raises)
    found = checked(gpu)["decode"]
    assert found.state == state
    assert said in found.said
