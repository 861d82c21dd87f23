"""NVML is played by a library in C below the real pynvml; `tests/gpu` reads a real device where there is one."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from nvml_stub import DRIVER_NOT_LOADED, GPU_IS_LOST, NOT_SUPPORTED, StubNvml, build, compiler

from loaderbench.monitors import GpuMonitor, count_gpus
from loaderbench.records import Gpu

READ = """
def read(*uuids):
    monitor = GpuMonitor([gpu(index, uuid) for index, uuid in enumerate(uuids)])
    return [asdict(found) for found in monitor.read()], [monitor.why_not(index) for index in range(len(uuids))]
"""


def test_devices_are_matched_by_uuid_with_or_without_its_prefix(stub_nvml: StubNvml) -> None:
    stub_nvml.set({"busy_percent@3": 70, "memory_used@3": 2000, "memory_used@6": 1000}, gpus=8, busy_percent=30)
    found, why_not = stub_nvml.run_python(f"{READ}show(read('6', 'GPU-3'))")
    assert [one["index"] for one in found] == [0, 1]
    assert [one["utilization_percent"] for one in found] == [30.0, 70.0]
    assert [one["memory_used_bytes"] for one in found] == [1000, 2000]
    assert why_not == [{}, {}]


def test_every_reading_has_its_unit(stub_nvml: StubNvml) -> None:
    stub_nvml.set(power_mw=250e3, sm_mhz=1400, memory_mhz=2000, pcie_generation=4, pcie_width=8, throttle=0x4 | 0x8)
    found, _ = stub_nvml.run_python(f"{READ}show(read('GPU-0'))")
    told = found[0]
    assert (told["power_w"], told["sm_clock_mhz"], told["memory_clock_mhz"]) == (250.0, 1400.0, 2000.0)
    assert (told["pcie_generation"], told["pcie_width"]) == (4, 8)
    assert told["throttled_by"] == ["power cap (SW power cap)", "hardware slowdown (HW slowdown)"]
    assert told["energy_j"] > 0


PERFORMANCE = """
monitor = GpuMonitor([gpu(0, "{uuid}")])
known = lambda gpm: gpm and {{name: value for name, value in asdict(gpm).items() if value not in (None, {{}})}}
show([known(found.gpm) for found in (*monitor.read(), *(time.sleep(0.15) or monitor.read()), *monitor.read())]
     + [monitor.why_not(0).get("gpm")])
"""


def test_performance_is_that_between_two_readings(stub_nvml: StubNvml) -> None:
    """Metrics 2, 5 and 10 are percentages, 20 and 21 MiB/s, 40 and 41 two JPEG engines."""
    stub_nvml.set(gpm=1, gpm_2=80, gpm_5=30, gpm_10=45, gpm_20=1, gpm_21=2000, gpm_40=10, gpm_41=30)
    first, second, too_soon, why_not = stub_nvml.run_python(PERFORMANCE.format(uuid="GPU-0"))
    assert (first, too_soon, why_not) == (None, None, None)
    assert second == {
        "sm_active_percent": 80.0, "tensor_active_percent": 30.0, "dram_active_percent": 45.0,
        "pcie_tx_bytes_per_s": 1 << 20, "pcie_rx_bytes_per_s": 2000 << 20, "nvjpg_percent": 20.0,
    }  # fmt: skip


def test_a_value_that_is_not_a_number_is_missing(stub_nvml: StubNvml) -> None:
    """As an H100 gives all of them for two samples within NVML's refresh of 0.1 s, without an error."""
    stub_nvml.set(gpm=1, gpm_2=math.nan, gpm_5=30, gpm_40=math.nan, gpm_41=30)
    assert stub_nvml.run_python(PERFORMANCE.format(uuid="GPU-0"))[1] == {
        "tensor_active_percent": 30.0,
        "nvjpg_percent": 30.0,
    }


def test_an_instance_of_mig_has_its_own_performance(stub_nvml: StubNvml) -> None:
    stub_nvml.set(gpm=1, gpm_2=80, mig_slices=3)
    assert stub_nvml.run_python(PERFORMANCE.format(uuid="MIG-0-3"))[1] == {"sm_active_percent": 83.0}


@pytest.mark.parametrize("settings", [{"gpm": 0}, {"gpm": 2}, {"gpm": 1, "nvmlGpmSampleGet": NOT_SUPPORTED}])
def test_a_gpu_without_performance_metrics_says_so(stub_nvml: StubNvml, settings: dict[str, float]) -> None:
    stub_nvml.set(settings)
    assert stub_nvml.run_python(PERFORMANCE.format(uuid="GPU-0")) == [None, None, None, "NVML: Not Supported"]


@pytest.mark.sleeping
def test_a_trial_has_the_mean_of_its_performance_or_why_not(stub_nvml: StubNvml) -> None:
    stub_nvml.set(gpm=1, gpm_2=80)
    found = stub_nvml.run_python(USE)
    assert found["performance"]["sm_active_percent"] == 80
    assert found["performance"]["nvjpg_percent"] is None
    assert found["performance"]["not_measured"]["nvjpg_percent"] == "NVML does not report it on this GPU"
    stub_nvml.set(gpm=0)
    found = stub_nvml.run_python(USE)
    assert (found["performance"], found["not_measured"]["performance"]) == (None, "NVML: Not Supported")


USE = """
from loaderbench.cuda_use import PeakMemory
peaks = [PeakMemory(0, 1, 2)]
readings = GpuThread(monitor := GpuMonitor([gpu(0, "GPU-0")]))
began_s = time.monotonic()
readings.begin()
time.sleep(1.2)
readings.end()
window = Window(began_s, time.monotonic(), 0.01)
show(asdict(gpu_use(gpu(0, "GPU-0"), readings.readings, window, monitor.why_not(0), peaks)))
"""


@pytest.mark.sleeping
def test_energy_of_a_sample_is_by_the_counter_and_else_by_the_power(stub_nvml: StubNvml) -> None:
    stub_nvml.set(power_mw=250e3, throttle=0x4, nvmlDeviceGetPowerUsage=NOT_SUPPORTED)
    by_counter = stub_nvml.run_python(USE)
    assert by_counter["power_w"] == pytest.approx(250, rel=0.05)
    assert by_counter["energy_per_sample_j"] == pytest.approx(by_counter["power_w"] * 0.01)
    assert by_counter["throttled"] == {"power cap (SW power cap)": 1.0}
    stub_nvml.set(nvmlDeviceGetPowerUsage=0, nvmlDeviceGetTotalEnergyConsumption=NOT_SUPPORTED)
    by_power = stub_nvml.run_python(USE)
    assert (by_power["power_w"], by_power["energy_per_sample_j"]) == (250.0, 2.5)
    assert list(by_power["not_measured"]) == ["copy_speed"]
    stub_nvml.set(nvmlDeviceGetPowerUsage=NOT_SUPPORTED)
    neither = stub_nvml.run_python(USE)
    assert _without_copy(neither) == dict.fromkeys(("power_w", "energy_per_sample_j"), "NVML: Not Supported")


def _without_copy(use: dict[str, Any]) -> dict[str, str]:
    """Reasons of missing NVML readings: copies are measured by isolation runs."""
    return {name: why for name, why in use["not_measured"].items() if name != "copy_speed"}


DESCRIBE = """
show([asdict(found) for found in GpuMonitor([gpu(0, "GPU-0"), gpu(1, "GPU-9")]).described()])
"""


def test_link_clock_and_place_of_a_gpu_are_facts(stub_nvml: StubNvml) -> None:
    stub_nvml.set(pcie_max_generation=4, pcie_max_width=8, sm_max_mhz=1980, near_cpus_from=0, near_cpus_to=0)
    known, unknown = stub_nvml.run_python(DESCRIBE)
    assert (known["pcie_max_generation"], known["pcie_max_width"], known["sm_clock_max_mhz"]) == (4, 8, 1980.0)
    assert (known["near_cpus"], known["numa_node"], known["not_measured"]) == ("0", 0, {})
    assert unknown["near_cpus"] is None
    assert set(unknown["not_measured"].values()) == {"NVML cannot find the device GPU-9: Not Found"}


def test_link_and_place_of_a_slice_are_those_of_its_gpu(stub_nvml: StubNvml) -> None:
    stub_nvml.set({"numa_node@1": 1}, gpus=2, mig_slices=2)
    (known,) = stub_nvml.run_python("show([asdict(found) for found in GpuMonitor([gpu(0, '1-2')]).described()])")
    assert (known["numa_node"], known["pcie_max_width"], known["not_measured"]) == (1, 16, {})


@pytest.mark.sleeping
def test_facts_of_a_slow_driver_stop_at_their_time(stub_nvml: StubNvml) -> None:
    stub_nvml.set(call_s=0.3)
    code = """
began_s = time.monotonic()
(found,) = GpuMonitor([gpu(0, "GPU-0")]).described(lambda: time.monotonic() - began_s > 1)
show([asdict(found), time.monotonic() - began_s])
"""
    known, took_s = stub_nvml.run_python(code)
    assert took_s < 1.5
    assert known["pcie_max_generation"] == 5 or known["not_measured"]["pcie_max_generation"]
    assert known["not_measured"]["numa_node"] == "NVML took too long to answer"


def test_facts_that_nvml_refuses_have_its_reason(stub_nvml: StubNvml) -> None:
    stub_nvml.set(nvmlDeviceGetCpuAffinity=NOT_SUPPORTED, nvmlDeviceGetMaxPcieLinkWidth=NOT_SUPPORTED, numa_node=3)
    known, _ = stub_nvml.run_python(DESCRIBE)
    assert (known["near_cpus"], known["pcie_max_width"], known["numa_node"]) == (None, None, 3)
    assert known["not_measured"] == dict.fromkeys(("pcie_max_width", "near_cpus"), "NVML: Not Supported")


def test_an_older_driver_without_newer_functions_tells_the_same(tmp_path: Path) -> None:
    if compiler() is None:
        pytest.skip("no C compiler for the stub of NVML")
    older = StubNvml(build(tmp_path / "lib", old_driver=True), tmp_path / "nvml.txt")
    older.set(memory_used=1000, memory_reserved=900, throttle=0x40 | 0x8)
    found, why_not = older.run_python(f"{READ}show(read('GPU-0'))")
    assert found[0]["memory_used_bytes"] == 1900  # with what the driver reserves: it does not tell them apart
    assert found[0]["throttled_by"] == ["temperature (HW thermal slowdown)"]
    assert why_not == [{"gpm": "NVML: Function Not Found"}]


def test_memory_is_without_what_the_driver_reserves(stub_nvml: StubNvml) -> None:
    stub_nvml.set(memory_used=1000, memory_reserved=900)
    found, _ = stub_nvml.run_python(f"{READ}show(read('GPU-0'))")
    assert found[0]["memory_used_bytes"] == 1000


def test_where_version_2_is_refused_memory_is_by_version_1(stub_nvml: StubNvml) -> None:
    stub_nvml.set(memory_used=1000, memory_reserved=900, nvmlDeviceGetMemoryInfo_v2=NOT_SUPPORTED)
    found, why_not = stub_nvml.run_python(f"{READ}show(read('GPU-0'))")
    assert (found[0]["memory_used_bytes"], why_not) == (1900, [{}])


def test_a_slice_of_mig_tells_its_memory_and_why_it_tells_no_more(stub_nvml: StubNvml) -> None:
    stub_nvml.set(mig_slices=2, memory_used=5, gpm=0)
    found, why_not = stub_nvml.run_python(f"{READ}show(read('0-2', 'MIG-0-1', 'GPU-0'))")
    for one, reasons in list(zip(found, why_not, strict=True))[:2]:
        assert one["memory_used_bytes"] == 5
        assert {name for name, value in one.items() if value is None} == set(reasons)
        assert set(reasons.values()) == {"NVML: Not Supported"}
        assert "power_w" in reasons
    assert found[2]["utilization_percent"] is found[2]["busy"] is None
    assert found[2]["power_w"] == 300.0


def test_under_wsl_what_is_not_available_is_none_and_never_a_number(stub_nvml: StubNvml) -> None:
    refused = ("TotalEnergyConsumption", "PowerUsage", "Samples", "CurrentClocksEventReasons", "ClockInfo")
    stub_nvml.set({f"nvmlDeviceGet{name}": NOT_SUPPORTED for name in refused}, memory_unknown=1, utilization_unknown=1)
    found, why_not = stub_nvml.run_python(f"{READ}show(read('GPU-0'))")
    none = {name for name, value in found[0].items() if value is None}
    assert none == {
        *("memory_used_bytes", "utilization_percent", "busy", "energy_j", "power_w"),
        *("throttled_by", "sm_clock_mhz", "memory_clock_mhz", "gpm"),
    }
    assert why_not[0]["power_w"] == "NVML: Not Supported"


def test_a_device_or_a_driver_that_is_not_there_is_a_reason(stub_nvml: StubNvml) -> None:
    found, why_not = stub_nvml.run_python(f"{READ}show(read('GPU-7'))")
    assert (found, why_not) == ([], [{"": "NVML cannot find the device GPU-7: Not Found"}])
    stub_nvml.set(nvmlInitWithFlags=DRIVER_NOT_LOADED)
    found, why_not = stub_nvml.run_python(f"{READ}show(read('GPU-0'))")
    assert (found, why_not) == ([], [{"": "NVML is unavailable: Driver Not Loaded"}])


@pytest.mark.sleeping
def test_a_device_that_is_lost_keeps_its_earlier_readings_and_the_others_theirs(stub_nvml: StubNvml) -> None:
    stub_nvml.set(gpus=2, busy_percent=40)
    code = f"""
from loaderbench.cuda_use import PeakMemory
peaks = [PeakMemory(n, 1, 2) for n in (0, 1)]
readings = GpuThread(monitor := GpuMonitor([gpu(0, "GPU-0"), gpu(1, "GPU-1")]))
began_s = time.monotonic()
readings.begin()
time.sleep(0.6)
set_stub(**{{"every_function@0": {GPU_IS_LOST}}})
lost_s = time.monotonic()
time.sleep(0.6)
readings.end()
both, late = Window(began_s, time.monotonic(), 0.01), Window(lost_s + 0.3, time.monotonic(), 0.01)
show([asdict(gpu_use(gpu(n, f"GPU-{{n}}"), readings.readings, window, monitor.why_not(n), peaks))
      for window in (both, late) for n in (0, 1)])
"""
    first, second, first_late, second_late = stub_nvml.run_python(code)
    assert (first["utilization_percent"], first["memory_used_bytes"]) == (40.0, 1_000_000_000)
    assert first_late["memory_used_bytes"] is None
    assert first_late["not_measured"]["memory_used_bytes"] == "NVML: GPU is lost"
    for one in (second, second_late):
        assert (one["utilization_percent"], one["memory_used_bytes"], _without_copy(one)) == (40.0, 1_000_000_000, {})


UTILIZATION = """
readings = GpuThread(monitor := GpuMonitor([gpu(0, "GPU-0")]))
readings.begin()
time.sleep(0.5)
set_stub(busy_from_us=time.time() * 1e6)
began_s = time.monotonic()
time.sleep(0.8)
window = Window(began_s, time.monotonic())
readings.end()
show(gpu_use(gpu(0, "GPU-0"), readings.readings, window, {}).utilization_percent)
"""


@pytest.mark.sleeping
def test_utilization_is_that_of_the_window_though_the_driver_s_rate_lags_by_a_second(stub_nvml: StubNvml) -> None:
    stub_nvml.set(busy_percent=100, lag_s=1, busy_from_us=4e15, sample_s=0.05)
    assert stub_nvml.run_python(UTILIZATION) > 90


@pytest.mark.sleeping
def test_where_the_driver_keeps_no_dated_samples_utilization_is_the_mean_of_its_rates(stub_nvml: StubNvml) -> None:
    stub_nvml.set(busy_percent=80, nvmlDeviceGetSamples=NOT_SUPPORTED, busy_from_us=4e15)
    assert 50 < stub_nvml.run_python(UTILIZATION) <= 80


@pytest.mark.sleeping
def test_a_slow_driver_slows_no_reading_of_the_processes_and_no_end(stub_nvml: StubNvml) -> None:
    stub_nvml.set(call_s=1)
    code = """
sampler = Sampler(os.getpid(), GpuMonitor([gpu(0, "GPU-0")]))
sampler.start()
time.sleep(1.5)
began_s = time.monotonic()
found = sampler.stop()
show([len(found.samples), time.monotonic() - began_s])
"""
    samples, took_s = stub_nvml.run_python(code)
    assert samples >= 5
    assert took_s < 0.5


@pytest.mark.sleeping
def test_a_slow_driver_still_tells_what_it_can(stub_nvml: StubNvml) -> None:
    stub_nvml.set(call_s=0.2, memory_used=1000)
    code = """
readings = GpuThread(monitor := GpuMonitor([gpu(0, "GPU-0")]))
began_s = time.monotonic()
readings.begin()
time.sleep(1.5)
readings.end()
time.sleep(0.5)
show(asdict(gpu_use(gpu(0, "GPU-0"), readings.readings, Window(began_s, time.monotonic()), {})))
"""
    found = stub_nvml.run_python(code)
    assert found["memory_used_bytes"] == 1000
    assert all(found["not_measured"].values())


@pytest.mark.parametrize(
    ("visible", "count"),
    [(None, 4), ("", 0), ("0,1", 2), ("1,-1,0", 1), ("GPU-a", 1), ("GPU-b,MIG-c,x", 2), ("0,1,2,3,4,5", 4)],
)
def test_devices_that_are_hidden_are_not_counted(stub_nvml: StubNvml, visible: str | None, count: int) -> None:
    stub_nvml.set(gpus=4)
    chosen = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert stub_nvml.run_python("show(count_gpus())", **chosen) == count


def test_a_torch_that_tells_no_uuid_leaves_the_names_of_visible_devices(stub_nvml: StubNvml) -> None:
    stub_nvml.set({"memory_used@1": 2}, gpus=2, memory_used=1)
    code = f"{READ}show(read('', ''))"
    found, _ = stub_nvml.run_python(code, CUDA_VISIBLE_DEVICES="GPU-1, GPU-0")
    assert [one["memory_used_bytes"] for one in found] == [2, 1]
    found, why_not = stub_nvml.run_python(code, CUDA_VISIBLE_DEVICES="1,0")
    assert found == []
    assert "no device UUID" in why_not[0][""]


def test_without_devices_nothing_is_asked() -> None:
    assert GpuMonitor([]).read() == []


def test_without_the_package_the_reason_is_its_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monitor = GpuMonitor([Gpu(0, "GPU-a", "fake", 10_000)])
    assert monitor.read() == []
    assert monitor.why_not(0)[""].startswith("NVML is unavailable: import of pynvml")
    assert count_gpus() == 0


PACED = """
import pynvml
asked = []
energy, at_s = pynvml.nvmlDeviceGetTotalEnergyConsumption, [0.0]
def slow(device):
    asked.append(at_s[0])
    at_s[0] += 0.004
    return energy(device)
pynvml.nvmlDeviceGetTotalEnergyConsumption, time.thread_time = slow, lambda: at_s[0]
monitor, readings = GpuMonitor([gpu(0, "GPU-0")]), []
while at_s[0] < 10:
    readings += monitor.read(lambda: at_s[0], seen={{}})
    at_s[0] += 0.1
show([asked, len(readings), sum(found.energy_j is None for found in readings),
      sum(found.memory_used_bytes is None for found in readings), sum(found.busy is None for found in readings)])
"""


def test_what_takes_long_without_cpu_time_is_read_as_often_as_the_others(stub_nvml: StubNvml) -> None:
    """A call may wait for the GIL, or for the driver: `GpuThread` pauses after that."""
    waits = PACED.replace("slow, lambda: at_s[0]", "slow, lambda: 0.0")
    _, _, without_energy, _, _ = stub_nvml.run_python(waits.format())
    assert without_energy == 0


def test_what_takes_much_cpu_time_to_read_is_read_less_often(stub_nvml: StubNvml) -> None:
    """As an H100's energy counter, 4 ms. The first reading sets no pause, and what is quick is always read."""
    stub_nvml.set(busy_percent=60)
    asked, readings, without_energy, without_memory, without_periods = stub_nvml.run_python(PACED.format())
    pauses_s = [later - sooner for sooner, later in pairwise(asked[1:])]
    assert min(pauses_s) >= 0.25, "for a hundredth of the time, or after the longest pause"
    assert max(pauses_s) < 0.25 + 2 * 0.11, "at the next reading of the others"
    assert without_energy == readings - len(asked)
    assert (without_memory, without_periods) == (0, 0)
