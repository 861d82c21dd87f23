"""What held a GPU back is said of those that trials used, with its number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loaderbench.diagnosis.gpu_warnings import gpu_setup_notes, gpu_warnings, power_notes
from loaderbench.environment import describe_machine
from loaderbench.records import Environment, Gpu, GpuUse, Trial

GPU = Gpu(0, "GPU-a", "H100", 80_000, pcie_max_generation=5, pcie_max_width=16, near_cpus="0-7", numa_node=0)
POWER, HEAT = "power cap (SW power cap)", "temperature (HW thermal slowdown)"


def environment(gpu: Gpu = GPU, **fields: Any) -> Environment:
    return replace(describe_machine("fork", (gpu,), {}), **{"cpus_allowed": "0-7", "cpus_allotted": 8.0, **fields})


def trial(**fields: Any) -> Trial:
    use = GpuUse(0, "GPU-a", **{"utilization_percent": 90.0, "throttled": {}, **fields})
    return Trial(id="t", role="sweep", config={}, round=1, status="completed", gpus=(use,))


def said(*trials: Trial, of: Environment | None = None) -> list[str]:
    known = of or environment()
    return [*gpu_warnings(trials, known), *gpu_setup_notes(trials, known)]


def test_what_throttled_a_gpu_is_named_with_its_share_of_the_readings_of_all_trials() -> None:
    found = said(trial(throttled={HEAT: 0.6, POWER: 0.02}), trial(throttled={HEAT: 0.2}), trial(throttled=None))
    assert found == ["GPU 0 was throttled: temperature (HW thermal slowdown) in 40% of the readings"]
    assert said(trial(throttled={HEAT: 0.04})) == said(trial(throttled=None)) == []


def test_a_gpu_at_its_power_limit_is_a_note_and_no_reason_for_doubt() -> None:
    at_limit = [trial(throttled={POWER: 0.9}), trial(throttled={POWER: 0.7})]
    assert said(*at_limit) == []
    assert list(power_notes(at_limit, environment())) == [
        "GPU 0 reached its power limit: power cap (SW power cap) in 80% of the readings. That is normal at full load"
    ]
    assert list(power_notes([trial(throttled={HEAT: 1.0})], environment())) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"pcie_generation": 3, "pcie_width": 16},
            "PCIe 3 x16 under load (maximum: PCIe 5 x16), which slows copies to the GPU",
        ),
        (
            {"pcie_generation": 5, "pcie_width": 8},
            "PCIe 5 x8 under load (maximum: PCIe 5 x16), which slows copies to the GPU",
        ),
        ({"pcie_generation": 5, "pcie_width": 16}, None),
        ({"pcie_generation": 1, "pcie_width": 16, "utilization_percent": 2.0}, None),
        ({}, None),
    ],
)
def test_a_link_below_its_maximum_under_load_is_a_warning(fields: dict[str, Any], words: str | None) -> None:
    found = said(trial(**fields))
    assert [warning.startswith(f"GPU 0: {words}.") for warning in found] == ([True] if words else [])


def test_the_fastest_link_of_all_trials_counts() -> None:
    assert said(trial(pcie_generation=1, pcie_width=16), trial(pcie_generation=5, pcie_width=16)) == []


@pytest.mark.parametrize(
    ("allowed", "allotted", "warned"),
    [
        ("0-7", 8.0, False),
        ("8-15", 8.0, True),  # none of them is near
        ("0-15", 16.0, False),  # all that the machine has: taskset would take half of them away
        ("0-15", 8.0, True),  # a quota of as many as are near
        (None, 8.0, False),
    ],
)
def test_far_cpus_are_a_warning_where_near_ones_cost_nothing(
    allowed: str | None, allotted: float, warned: bool
) -> None:
    found = said(trial(), of=environment(cpus_allowed=allowed, cpus_allotted=allotted))
    assert [warning.startswith("GPU 0 is local to CPUs 0-7 (NUMA node 0), but 8 of ") for warning in found] == [
        True
    ] * warned
    assert all("taskset -c 0-7" in warning for warning in found)


def test_a_gpu_that_no_trial_used_and_a_run_that_kept_nothing_are_silent() -> None:
    assert said(replace(trial(), gpus=()), of=environment(cpus_allowed="8-15")) == []
    assert said(trial(pcie_generation=1), of=environment(Gpu(0, "GPU-a", "H100", 80_000))) == []
