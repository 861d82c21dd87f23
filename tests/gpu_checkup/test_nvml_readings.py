"""What `doctor --gpu` reads is what a run reads: NVML is played by a library in C below the real pynvml."""

from __future__ import annotations

from typing import Any

import pytest
from nvml_stub import DRIVER_NOT_LOADED, NOT_SUPPORTED, StubNvml

READ = """
from loaderbench.gpu_checkup.nvml import NvmlReadings
def read(uuid):
    return NvmlReadings(gpu(0, uuid)).read()
"""


def read(stub: StubNvml, uuid: str = "GPU-0") -> tuple[dict[str, Any], dict[str, str]]:
    values, reasons = stub.run_python(f"{READ}show(read({uuid!r}))")
    return values, reasons


def test_each_value_is_in_the_unit_of_its_name(stub_nvml: StubNvml) -> None:
    stub_nvml.set(busy_percent=97, memory_used=1000, power_mw=312_500, sm_mhz=1900, throttle=0x4 | 0x40)
    stub_nvml.set(pcie_generation=4, pcie_width=8, near_cpus_from=0, near_cpus_to=3, numa_node=1)
    values, reasons = read(stub_nvml)
    assert reasons == {"gpm": "not reported by NVML"}, "it takes two readings"
    assert values.pop("energy_j") > 0
    assert values.pop("utilization_samples_per_s") == pytest.approx(6, rel=0.01)
    assert values == {
        "driver_version": "580.65", "utilization_percent": 97.0, "memory_used_bytes": 1000, "power_w": 312.5,
        "sm_clock_mhz": 1900.0, "sm_clock_max_mhz": 1980.0, "memory_clock_mhz": 2619.0,
        "throttled_by": ["power cap (SW power cap)", "temperature (HW thermal slowdown)"],
        "pcie_generation": 4, "pcie_max_generation": 5, "pcie_width": 8, "pcie_max_width": 16,
        "near_cpus": "0-3", "numa_node": 1, "gpm": None,
    }  # fmt: skip


def test_a_call_that_is_refused_is_missing_with_its_reason_and_the_others_are_read(stub_nvml: StubNvml) -> None:
    refused = ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMaxPcieLinkWidth")
    stub_nvml.set(dict.fromkeys(refused, NOT_SUPPORTED), sm_mhz=1900)
    values, reasons = read(stub_nvml)
    names = ("utilization_percent", "power_w", "pcie_max_width")
    assert [values[name] for name in names] == [None] * 3
    assert reasons == dict.fromkeys(names, "NVML: Not Supported") | {"gpm": "not reported by NVML"}
    assert values["sm_clock_mhz"] == 1900


def test_a_percentage_above_100_is_not_available(stub_nvml: StubNvml) -> None:
    stub_nvml.set(utilization_unknown=1)
    values, reasons = read(stub_nvml)
    assert values["utilization_percent"] is None
    assert reasons["utilization_percent"] == "not reported by NVML"


def test_the_rate_of_samples_is_theirs_since_the_last_reading(stub_nvml: StubNvml) -> None:
    stub_nvml.set(sample_s=0.05)
    first, second = stub_nvml.run_python(
        f"{READ}nvml = NvmlReadings(gpu(0, 'GPU-0')); show([nvml.read()[0]['utilization_samples_per_s'],"
        " time.sleep(0.5) or nvml.read()[0]['utilization_samples_per_s']])"
    )
    assert first == pytest.approx(20, rel=0.01)
    assert second == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize(
    ("settings", "uuid", "why"),
    [
        ({"nvmlInitWithFlags": DRIVER_NOT_LOADED}, "GPU-0", "NVML is unavailable: Driver Not Loaded"),
        ({}, "GPU-z", "NVML cannot find the device GPU-z: Not Found"),
        ({}, "", "this torch version reports no device UUID, which NVML needs"),
    ],
)
def test_without_a_device_in_nvml_every_reading_is_missing_for_one_reason(
    stub_nvml: StubNvml, settings: dict[str, float], uuid: str, why: str
) -> None:
    stub_nvml.set(settings)
    values, reasons = read(stub_nvml, uuid)
    del values["driver_version"]
    assert set(values.values()) == {None}
    assert {reasons[name] for name in values} == {why}
