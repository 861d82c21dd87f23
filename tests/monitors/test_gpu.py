"""NVML is played by a fake here; `tests/gpu` reads a real device where there is one."""

from types import SimpleNamespace
from typing import Any

from loaderbench.monitors.gpu import GpuMonitor, GpuReading, count_gpus
from loaderbench.records import Gpu


class FakeNvml:
    """Two devices in another order than CUDA's; a MIG slice that tells nothing of its use."""

    class NVMLError(Exception):
        pass

    def __init__(self, driver: bool = True) -> None:
        self.driver = driver
        self.devices: dict[str, tuple[int | None, int]] = {"GPU-b": (70, 2000), "GPU-a": (30, 1000), "MIG-c": (None, 5)}

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid not in self.devices:
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        percent = self.devices[handle][0]
        if percent is None:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=percent)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(used=self.devices[handle][1])


def gpu(index: int, uuid: str) -> Gpu:
    return Gpu(index, uuid, "fake", 10_000)


def test_devices_are_matched_by_uuid_with_or_without_its_prefix() -> None:
    monitor = GpuMonitor([gpu(0, "a"), gpu(1, "GPU-b")], FakeNvml())
    assert monitor.read() == [GpuReading(0, 30.0, 1000), GpuReading(1, 70.0, 2000)]


def test_a_slice_that_tells_nothing_is_none_and_never_zero() -> None:
    assert GpuMonitor([gpu(0, "MIG-c")], FakeNvml()).read() == [GpuReading(0, None, 5)]


def test_a_device_or_a_driver_that_is_not_there_is_a_reason() -> None:
    unknown = GpuMonitor([gpu(0, "GPU-z")], FakeNvml())
    assert unknown.read() == []
    assert "Not Found" in unknown.why_not[0]
    assert "Driver Not Loaded" in GpuMonitor([gpu(0, "GPU-a")], FakeNvml(driver=False)).why_not[0]


def test_without_devices_nothing_is_asked() -> None:
    assert GpuMonitor([]).read() == []


def test_counting_devices_never_raises() -> None:
    assert count_gpus() >= 0
