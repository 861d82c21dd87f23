"""NVML is played by a fake here; `tests/gpu` reads a real device where there is one."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.monitors.gpu import GpuMonitor, GpuReading, count_gpus
from loaderbench.records import Gpu


class FakeNvml:
    """Two devices in another order than CUDA's; a MIG slice and a device under WSL that tell nothing of their use."""

    class NVMLError(Exception):
        pass

    nvmlMemory_v2 = 33554472  # noqa: N815 - pynvml's name

    def __init__(self, driver: bool = True, reserved_bytes: int | None = 0) -> None:
        """`reserved_bytes` by the driver: version 1 of the call counts them as used; `None` has no version 2."""
        self.driver, self.reserved_bytes = driver, reserved_bytes
        self.lost: set[str] = set()
        self.devices: dict[str, tuple[int | None, int]] = {
            "GPU-b": (70, 2000),
            "GPU-a": (30, 1000),
            "MIG-c": (None, 5),
            "GPU-wsl": (2**32 - 1, 2**64 - 1),
        }

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.devices)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid not in self.devices:
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        self._answer(handle)
        percent = self.devices[handle][0]
        if percent is None:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=percent)

    def nvmlDeviceGetMemoryInfo(self, handle: str, version: int | None = None) -> Any:  # noqa: N802
        self._answer(handle)
        if version is not None and self.reserved_bytes is None:
            raise self.NVMLError("Function Not Found")
        assert version in (None, self.nvmlMemory_v2)
        return SimpleNamespace(used=self.devices[handle][1] + (0 if version else self.reserved_bytes or 0))

    def _answer(self, handle: str) -> None:
        if handle in self.lost:
            raise self.NVMLError("GPU is lost")


def gpu(index: int, uuid: str) -> Gpu:
    return Gpu(index, uuid, "fake", 10_000)


def test_devices_are_matched_by_uuid_with_or_without_its_prefix() -> None:
    monitor = GpuMonitor([gpu(0, "a"), gpu(1, "GPU-b")], FakeNvml())
    assert monitor.read() == [GpuReading(0, 30.0, 1000), GpuReading(1, 70.0, 2000)]


def test_memory_is_without_what_the_driver_reserves_where_the_driver_can_tell() -> None:
    monitor = GpuMonitor([gpu(0, "a")], FakeNvml(reserved_bytes=900))
    assert [monitor.read()[0].memory_used_bytes for _ in range(2)] == [1000, 1000]
    older = GpuMonitor([gpu(0, "a")], FakeNvml(reserved_bytes=None))
    assert [older.read()[0].memory_used_bytes for _ in range(2)] == [1000, 1000]
    assert older.why_not == {}


def test_a_slice_that_tells_nothing_is_none_and_never_zero() -> None:
    assert GpuMonitor([gpu(0, "MIG-c")], FakeNvml()).read() == [GpuReading(0, None, 5)]


def test_a_device_or_a_driver_that_is_not_there_is_a_reason() -> None:
    unknown = GpuMonitor([gpu(0, "GPU-z")], FakeNvml())
    assert unknown.read() == []
    assert "Not Found" in unknown.why_not[0]
    assert "Driver Not Loaded" in GpuMonitor([gpu(0, "GPU-a")], FakeNvml(driver=False)).why_not[0]


def test_without_devices_nothing_is_asked() -> None:
    assert GpuMonitor([]).read() == []


def test_what_nvml_calls_not_available_is_none() -> None:
    assert GpuMonitor([gpu(0, "GPU-wsl")], FakeNvml()).read() == [GpuReading(0, None, None)]


def test_a_device_that_is_lost_in_mid_run_keeps_its_readings_and_tells_the_reason() -> None:
    nvml = FakeNvml()
    monitor = GpuMonitor([gpu(0, "a"), gpu(1, "b")], nvml)
    before = monitor.read()
    nvml.lost.add("GPU-a")
    assert before[0] == GpuReading(0, 30.0, 1000)
    assert monitor.read() == [GpuReading(0, None, None), GpuReading(1, 70.0, 2000)]
    assert monitor.why_not == {0: "NVML: GPU is lost"}


def test_a_slice_is_found_by_the_uuid_that_cuda_tells_without_prefix() -> None:
    monitor = GpuMonitor([gpu(0, "c")], FakeNvml())
    assert monitor.read() == [GpuReading(0, None, 5)]
    assert monitor.why_not == {0: "NVML: Not Supported"}


def test_a_torch_that_tells_no_uuid_leaves_the_names_of_visible_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-b, GPU-a")
    assert [reading.utilization_percent for reading in GpuMonitor([gpu(0, ""), gpu(1, "")], FakeNvml()).read()] == [
        70.0,
        30.0,
    ]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    unnamed = GpuMonitor([gpu(0, "")], FakeNvml())
    assert unnamed.read() == []
    assert "no device UUID" in unnamed.why_not[0]


def test_without_the_library_the_reason_is_its_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monitor = GpuMonitor([gpu(0, "GPU-a")])
    assert monitor.read() == []
    assert monitor.why_not[0].startswith("NVML is unavailable: import of pynvml")
    assert count_gpus() == 0


@pytest.mark.parametrize(
    ("visible", "count"),
    [(None, 4), ("", 0), ("0,1", 2), ("1,-1,0", 1), ("GPU-a", 1), ("GPU-b,MIG-c,x", 2), ("0,1,2,3,4,5", 4)],
)
def test_devices_that_are_hidden_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, count: int
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert count_gpus(FakeNvml()) == count


def test_counting_devices_never_raises() -> None:
    assert count_gpus() >= 0
