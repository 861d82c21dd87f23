"""Pauses, such as the time between two epochs, belong to no figure of a GPU but its memory."""

from __future__ import annotations

from typing import Any

import pytest
from nvml_stub import StubNvml

from loaderbench.monitors import BusyPeriod, GpuReading, Pause, Window, gpu_use
from loaderbench.records import Gpu, GpuUse

TWO_EPOCHS = """
from simulated_gpus import step
from loaderbench import Profiler
step(None)
with Profiler(warmup=5) as prof:
    for epoch in range(2):
        for batch in prof.iter([[0] * 4] * 250):
            step(batch)
        if epoch == 0:
            began_us = time.time() * 1e6
            time.sleep(1.5)
            set_stub(more_energy_mj=1e6, busy_percent=100, busy_from_us=began_us, busy_until_us=time.time() * 1e6)
(trial,) = prof.result.trials
show(asdict(trial.gpus[0]))
"""


@pytest.mark.sleeping
def test_what_a_gpu_did_between_two_epochs_is_not_in_the_figures_of_the_loop(stub_nvml: StubNvml) -> None:
    stub_nvml.set(gpus=2, power_mw=200e3, busy_until_us=1, sample_s=0.05)
    found = stub_nvml.run_python(TWO_EPOCHS)
    assert found["power_w"] == pytest.approx(200, rel=0.05)
    assert found["utilization_percent"] < 10


@pytest.mark.sleeping
def test_each_begin_after_an_end_closes_a_pause_and_its_first_metrics_do_not_reach_back(stub_nvml: StubNvml) -> None:
    stub_nvml.set(gpm=1)
    code = """
readings = GpuThread(GpuMonitor([gpu(0, "GPU-0")]), interval_s=0.12)
for _ in range(2):
    readings.begin()
    time.sleep(0.6)
    readings.end()
    readings.end()
    time.sleep(0.3)
(pause,) = readings.pauses
parts = [[one.gpm is not None for one in readings.readings if (one.at_s > pause.to_s) == later] for later in (0, 1)]
show([parts, all(not pause.from_s < one.at_s < pause.to_s for one in readings.readings)])
"""
    (before, after), are_outside = stub_nvml.run_python(code)
    for part in (before, after):
        assert not part[0]
        assert any(part)
    assert are_outside


def test_metrics_of_an_interval_that_began_too_early_are_missing(stub_nvml: StubNvml) -> None:
    stub_nvml.set(gpm=1)
    code = """
monitor = GpuMonitor([gpu(0, "GPU-0")])
times = [(1.0, 0.0), (2.0, 0.0), (3.0, 2.5), (4.0, 2.5)]
show([monitor.read(lambda: at_s, not_before_s=not_before_s)[0].gpm is not None for at_s, not_before_s in times])
"""
    assert stub_nvml.run_python(code) == [False, True, False, True]


def use(readings: list[GpuReading], *pauses: Pause) -> GpuUse:
    return gpu_use(Gpu(0, "GPU-0", "one", 80), readings, Window(0.0, 20.0, 0.01, pauses), {"power_w": NO_POWER})


NO_POWER = "NVML: Not Supported"
PAUSES = (Pause(4.0, 8.0), Pause(12.0, 16.0))


def reading(at_s: float, **values: Any) -> GpuReading:
    return GpuReading(index=0, at_s=at_s, **values)


def test_energy_is_that_of_all_parts_between_pauses() -> None:
    counted = [(1.0, 0.0), (3.0, 20.0), (9.0, 1_020.0), (11.0, 1_060.0), (17.0, 9_000.0)]
    readings = [reading(at_s, energy_j=energy_j) for at_s, energy_j in counted]
    assert use(readings, *PAUSES).power_w == pytest.approx(15.0)
    assert use(readings).power_w == pytest.approx(9_000 / 16)


def test_without_two_counts_in_a_part_energy_is_by_the_power_or_missing() -> None:
    counted = [(1.0, 0.0), (9.0, 1_020.0), (17.0, 9_000.0)]
    found = use([reading(at_s, energy_j=energy_j) for at_s, energy_j in counted], *PAUSES)
    assert (found.power_w, found.energy_per_sample_j, found.not_measured["power_w"]) == (None, None, NO_POWER)
    found = use([reading(at_s, energy_j=energy_j, power_w=30.0) for at_s, energy_j in counted], *PAUSES)
    assert (found.power_w, found.energy_per_sample_j) == (30.0, pytest.approx(0.3))


def test_a_dated_period_counts_by_its_time_outside_of_pauses() -> None:
    periods = (
        BusyPeriod(3.0, 4.0, 50.0),
        BusyPeriod(4.0, 7.5, 0.0),
        BusyPeriod(7.5, 8.5, 20.0),
        BusyPeriod(9.0, 9.5, 80.0),
    )
    assert use([reading(9.9, busy=periods)], *PAUSES).utilization_percent == pytest.approx((50 + 10 + 40) / 2)


def test_rates_soon_after_a_pause_count_only_without_later_ones() -> None:
    """They are means over up to a second, which can have been in the pause."""
    soon = reading(8.5, utilization_percent=10.0, power_w=900.0)
    later = reading(9.1, utilization_percent=70.0, power_w=300.0)
    found = use([soon, later], *PAUSES)
    assert (found.utilization_percent, found.power_w) == (70.0, 300.0)
    assert use([soon], *PAUSES).utilization_percent == 10.0
