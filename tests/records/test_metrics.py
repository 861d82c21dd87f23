"""The one table of metrics: where each value is kept, and where it is shown."""

from __future__ import annotations

from typing import Any

import pytest

from loaderbench.records import Configuration, GpuUse, Interval, Trial
from loaderbench.records.metrics import BY_ID, METRICS, Metric, Strip


def trial(*gpus: GpuUse, **fields: Any) -> Trial:
    return Trial(id="t", role="sweep", config={}, round=1, status="completed", gpus=gpus, **fields)


def gpu(percent: float | None, used_bytes: int | None) -> GpuUse:
    return GpuUse(0, "GPU", percent, used_bytes, 9_000)


CONFIGURATION = Configuration(
    config={},
    samples_per_s=Interval(5.0, None, None),
    data_wait_share=None,
    trials=(),
    rank=None,
    tied_with_best=False,
    pss_bytes=7,
    metrics={"faults": 3.0},
)
OWN = Metric(id="faults", label="Faults", unit="count")


def test_a_metric_of_a_monitor_lies_in_metrics_and_one_of_ours_in_its_field() -> None:
    assert (OWN.has_field, BY_ID["pss_bytes"].has_field) == (False, True)
    assert OWN.of_trial(trial(metrics={"faults": 2.0}, pss_bytes=4)) == 2.0
    assert OWN.of_trial(trial()) is None
    assert BY_ID["pss_bytes"].of_trial(trial(pss_bytes=4)) == 4
    assert OWN.of_configuration(CONFIGURATION) == 3.0
    assert BY_ID["pss_bytes"].of_configuration(CONFIGURATION) == 7
    assert BY_ID["samples_per_s"].of_configuration(CONFIGURATION) == Interval(5.0, None, None)


@pytest.mark.parametrize(("name", "unit"), [("faults", "count"), ("rss_bytes", "bytes"), ("faults", "s")])
@pytest.mark.parametrize("over_rounds", ["rate", "share"])
def test_an_interval_that_nothing_keeps_or_writes_is_rejected(name: str, unit: Any, over_rounds: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}: over_rounds='{over_rounds}' needs a field"):
        Metric(id=name, label="Own", unit=unit, over_rounds=over_rounds)
    assert Metric(id=name, label="Own", unit=unit, over_rounds="mean").over_rounds == "mean"


def test_of_several_devices_a_trial_shows_the_highest_and_a_round_the_one_that_worked() -> None:
    percent, used = BY_ID["gpu_utilization_percent"], BY_ID["gpu_memory_used_bytes"]
    both = trial(gpu(90.0, 10), gpu(20.0, 8_000), gpu(None, None))
    assert (percent.of_trial(both), percent.of_round(both)) == (90.0, 20.0)
    assert (used.of_trial(both), used.of_round(both)) == (8_000, 8_000)
    for metric in (percent, used):
        assert metric.of_trial(trial()) is metric.of_round(trial()) is None
    assert BY_ID["pss_bytes"].of_round(trial(pss_bytes=4)) == 4


@pytest.mark.parametrize(
    ("gpus", "percent"),
    [
        ((gpu(10.0, None), gpu(90.0, None)), 90.0),
        ((gpu(10.0, None), gpu(None, 1)), None),
        ((gpu(None, None), gpu(0.5, None)), 0.5),
        ((gpu(None, 1), gpu(10.0, None)), None),
        ((gpu(10.0, 1), gpu(20.0, 1)), 20.0),
    ],
)
def test_the_device_that_worked_is_the_one_whose_memory_or_else_whose_time_was_used_most(
    gpus: tuple[GpuUse, ...], percent: float | None
) -> None:
    assert BY_ID["gpu_utilization_percent"].of_round(trial(*gpus)) == percent


def test_a_trial_says_under_its_devices_why_one_of_their_readings_is_missing() -> None:
    assert BY_ID["gpu_memory_used_bytes"].reason_field == "gpus"
    assert BY_ID["pss_bytes"].reason_field == "pss_bytes"


def test_a_metric_is_drawn_under_its_own_name_where_nothing_else_is_said() -> None:
    assert OWN.strip == Strip("faults", "Faults", "Faults", "count")
    assert BY_ID["shm_peak_bytes"].strip.series == "shm_bytes"
    assert {metric.id for metric in METRICS if metric.strip.points} == {"data_wait_share"}


def test_a_new_metric_is_in_tables_with_its_zeros_and_in_no_heat_map() -> None:
    assert (OWN.in_tables, OWN.zeros, OWN.in_heat_map) == (True, True, False)


def test_the_heat_map_shows_what_a_configuration_is_chosen_by() -> None:
    assert [metric.id for metric in METRICS if metric.in_heat_map] == [
        *("samples_per_s", "data_wait_share", "cpu_percent_of_allotted"),
        *("gpu_utilization_percent", "gpu_memory_used_bytes"),
    ]


def test_tables_leave_out_disk_reads_memory_clocks_and_a_column_without_epoch_ends() -> None:
    assert [metric.id for metric in METRICS if not metric.in_tables] == [
        *("gpu_pcie_tx_bytes_per_s", "gpu_memory_clock_mhz", "disk_read_bytes_per_s"),
    ]
    assert [metric.id for metric in METRICS if not metric.zeros] == ["epoch_ends"]


def test_memory_that_is_read_once_is_not_called_a_peak() -> None:
    pss = BY_ID["pss_bytes"]
    assert "peak" not in f"{pss.label} {pss.hint} {pss.trial_label} {pss.trial_hint}"
