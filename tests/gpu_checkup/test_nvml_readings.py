"""What NVML covers of a GPU: values with their units, or the reason of each that is missing. NVML is a fake here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.gpu_checkup.nvml import READINGS, NvmlDevice
from loaderbench.records import Gpu


class FakeNvml:
    """One device, `GPU-a`. Calls in `refused` raise; version 2 of the memory call may be missing."""

    NVML_GPU_UTILIZATION_SAMPLES, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 1, 2, 0
    nvmlMemory_v2 = 33554472  # noqa: N815 - pynvml's name

    def __init__(self, *refused: str, percent: int = 97, version_2: bool = True, prefix: str = "GPU-") -> None:
        self.refused, self.percent, self.version_2, self.prefix = refused, percent, version_2, prefix

    def nvmlInit(self) -> None:  # noqa: N802
        if "nvmlInit" in self.refused:
            raise RuntimeError("Driver Not Loaded")

    def __getattr__(self, call: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetHandleByUUID": self._find,
            "nvmlSystemGetDriverVersion": lambda: b"580.65.06",
            "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=self.percent),
            "nvmlDeviceGetSamples": lambda *_: (1, [SimpleNamespace(timeStamp=10**6 * n // 6) for n in range(1, 20)]),
            "nvmlDeviceGetMemoryInfo": self._memory,
            "nvmlDeviceGetPowerUsage": lambda _: 312_500,
            "nvmlDeviceGetTotalEnergyConsumption": lambda _: 2_500,
            "nvmlDeviceGetClockInfo": lambda _, kind: {1: 1980, 2: 2619}[kind],
            "nvmlDeviceGetMaxClockInfo": lambda *_: 1980,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _: 4 | 64 | 1,
            "nvmlDeviceGetTemperature": lambda *_: 41,
            "nvmlDeviceGetCurrPcieLinkGeneration": lambda _: 5,
            "nvmlDeviceGetMaxPcieLinkGeneration": lambda _: 5,
            "nvmlDeviceGetCurrPcieLinkWidth": lambda _: 16,
            "nvmlDeviceGetMaxPcieLinkWidth": lambda _: 16,
            "nvmlDeviceGetMigMode": lambda _: [0, 0],
        }
        if call in self.refused:
            raise RuntimeError("Not Supported")
        if call not in answers:
            raise AttributeError(call)
        return answers[call]

    def _find(self, uuid: str) -> str:
        if uuid != f"{self.prefix}a":
            raise RuntimeError("Not Found")
        return uuid

    def _memory(self, _: str, version: int | None = None) -> Any:
        if version is not None and not self.version_2:
            raise RuntimeError("Function Not Found")
        return SimpleNamespace(used=1000 if version else 1900)


def read(nvml: FakeNvml, uuid: str = "a") -> tuple[dict[str, Any], dict[str, str]]:
    return NvmlDevice(Gpu(0, uuid, "Z1", 1), nvml).read()


def test_each_value_is_in_the_unit_of_its_name() -> None:
    values, reasons = read(FakeNvml())
    assert reasons == {}
    assert values == {
        "driver_version": "580.65.06", "utilization_percent": 97.0,
        "utilization_samples_per_s": pytest.approx(6, rel=1e-3), "memory_used_bytes": 1000,
        "memory_leaves_out_reserved": True, "power_w": 312.5, "energy_j": 2.5, "sm_clock_mhz": 1980,
        "sm_clock_max_mhz": 1980, "memory_clock_mhz": 2619, "slowdowns": ["power cap", "hardware thermal"],
        "temperature_celsius": 41, "pcie_generation": 5, "pcie_generation_max": 5, "pcie_width": 16,
        "pcie_width_max": 16, "mig_enabled": False,
    }  # fmt: skip


def test_a_call_that_is_refused_is_missing_with_its_reason_and_the_others_are_read() -> None:
    values, reasons = read(FakeNvml("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage"))
    assert (values["utilization_percent"], values["power_w"], values["sm_clock_mhz"]) == (None, None, 1980)
    assert reasons == dict.fromkeys(("utilization_percent", "power_w"), "NVML: Not Supported")


def test_a_percentage_above_100_is_no_percentage() -> None:
    values, reasons = read(FakeNvml(percent=2**32 - 1))
    assert values["utilization_percent"] is None
    assert reasons == {"utilization_percent": "NVML: not available"}


def test_an_older_driver_has_memory_with_what_it_reserves() -> None:
    values, reasons = read(FakeNvml(version_2=False))
    assert values["memory_used_bytes"] == 1900
    assert reasons == {"memory_leaves_out_reserved": "NVML: Function Not Found"}


@pytest.mark.parametrize(
    ("nvml", "uuid", "why"),
    [
        (FakeNvml("nvmlInit"), "a", "NVML is unavailable: Driver Not Loaded"),
        (FakeNvml(), "z", "NVML does not find the GPU: Not Found"),
        (FakeNvml(), "", "torch reports no UUID of the GPU"),
    ],
)
def test_without_a_device_in_nvml_everything_is_missing_for_one_reason(nvml: FakeNvml, uuid: str, why: str) -> None:
    values, reasons = read(nvml, uuid)
    assert values == dict.fromkeys(READINGS)
    assert reasons == dict.fromkeys(READINGS, why)


def test_a_slice_is_found_by_its_own_prefix() -> None:
    assert read(FakeNvml(prefix="MIG-"))[1] == {}
