"""How values and configurations are formatted, wherever they are shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from loaderbench.records import (
    READABLE_VERSIONS,
    Interval,
    MachineUse,
    Readings,
    Scalar,
    TimelinePoint,
    TimeSlices,
    Tried,
    Verification,
    config_label,
    format_scalar,
    in_bytes,
    moment,
    to_dict,
    varying,
)


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"), (12_900, "13 KiB"),
        (2**20, "1 MiB"), (3 * 2**19, "1.5 MiB"), (64 * 2**20, "64 MiB"), (3 * 2**29, "1.5 GiB"),
    ],
)  # fmt: skip
def test_a_size_is_never_rounded_to_nothing(count: int, written: str) -> None:
    assert in_bytes(count) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, "null"), (True, "true"), (False, "false"), (0, "0"), (2.5, "2.5"), ("True", "True"), ("", "")],
)
def test_a_value_is_written_as_yaml_reads_it(value: Scalar, written: str) -> None:
    assert format_scalar(value) == written


def test_a_configuration_is_written_axis_by_axis_in_its_order() -> None:
    assert config_label({"num_workers": 2, "batch_size": None}) == "num_workers=2 batch_size=null"
    assert config_label({}) == ""


def test_what_tells_a_configuration_from_others_are_the_axes_with_several_values() -> None:
    config = {"a": 1, "b": 2, "c": 3}
    assert varying(config, {"a": [1], "b": [1, 2], "c": []}) == {"b": 2}
    assert varying(config, {}) == {}


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-03-12T14:03:00+00:00", 14),
        ("2026-03-12T14:03:00", 14),
        ("2026-03-12T14:03:00+02:00", 12),
        ("some time", None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_a_moment_is_told_in_utc_and_what_is_none_is_not(text: str, hour: int | None) -> None:
    found = moment(text)
    assert (found and (found.hour, found.utcoffset())) == (None if hour is None else (hour, timedelta(0)))


def test_this_version_reads_its_own_schema_and_the_one_before() -> None:
    assert READABLE_VERSIONS == (1, 2)


def test_a_record_is_written_field_by_field_with_those_in_it() -> None:
    assert to_dict(Interval(1.0, None, 2.0)) == {"est": 1.0, "lo": None, "hi": 2.0}


def test_cpus_that_nobody_used_and_that_others_used_are_never_fewer_than_none() -> None:
    use = MachineUse(cpus=4, own_cpus=1.0, busy_cpus=2.5, throttled_share=None)
    assert (use.idle_cpus, use.others_cpus) == (1.5, 1.5)
    crowded = MachineUse(cpus=4, own_cpus=5.0, busy_cpus=4.5, throttled_share=None)
    assert (crowded.idle_cpus, crowded.others_cpus) == (0.0, 0.0)


def test_the_rate_of_time_slices_is_taken_over_their_own_seconds() -> None:
    assert TimeSlices(count=3, batches=4, samples=200, seconds=0.5).samples_per_s == 400.0


def test_a_tried_remedy_is_the_configuration_it_was_tried_on_with_its_change() -> None:
    tried = Tried(id="x", change={"b": 3}, against={"a": 1, "b": 2}, accepted=True)
    other = Tried(id="y", change={}, against={"a": 1}, accepted=False)
    assert tried.config == {"a": 1, "b": 3}
    assert Verification(present={}, config={}, tried=(other, tried), ended="").accepted == (tried,)


POINTS = [
    TimelinePoint("t1", 0.1, "rss_bytes", 5.0),
    TimelinePoint("t2", 0.2, "rss_bytes", 6.0),
    TimelinePoint("t1", 0.3, "rss_bytes", 7.0),
    TimelinePoint("t1", 0.3, "cpu_percent", 8.0),
]


def test_readings_are_kept_by_trial_and_metric_in_the_order_they_came() -> None:
    readings = Readings(POINTS[:2])
    readings.extend(POINTS[2:])
    assert (len(readings), readings.trials) == (4, ("t1", "t2"))
    assert [list(one) for one in readings.series("t1", "rss_bytes")] == [[0.1, 0.3], [5.0, 7.0]]
    assert set(readings.of("t1")) == {"rss_bytes", "cpu_percent"}
    assert sorted(map(str, readings)) == sorted(map(str, POINTS))


def test_nothing_was_read_of_a_trial_that_is_not_there() -> None:
    readings = Readings(POINTS)
    assert readings.of("t9") == {}
    assert readings.trials == ("t1", "t2")


def test_a_new_series_is_kept_and_can_be_appended_to() -> None:
    readings = Readings()
    seconds, values = readings.series("t", "m")
    seconds.append(1.0)
    values.append(2.0)
    assert list(readings) == [TimelinePoint("t", 1.0, "m", 2.0)]
