import math

import pytest

from loaderbench.records import Interval
from loaderbench.report import numbers


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (812.37, "812"),
        (98.44, "98.4"),
        (9.837, "9.84"),
        (99.96, "100"),
        (12_345, "12,300"),
        (0.01234, "0.0123"),
        (0, "0"),
    ],
)
def test_a_number_keeps_three_significant_digits(value: float, written: str) -> None:
    assert numbers.number(value) == written


def test_an_interval_is_written_with_an_en_dash_between_its_bounds() -> None:
    assert numbers.interval(Interval(812, 790, 835)).text == "812 (790\u2013835)"


def test_an_interval_that_rounding_would_hide_gets_one_more_digit() -> None:
    assert numbers.interval(Interval(1234.2, 1231.1, 1237.4)).text == "1,234 (1,231\u20131,237)"


def test_a_negative_bound_is_not_mistaken_for_a_dash() -> None:
    assert numbers.interval(Interval(1.5, -0.5, 3.5)).text == "1.50 (\u22120.50 to 3.50)"


@pytest.mark.parametrize(
    "interval", [Interval(812, None, None), Interval(812, 790, None), Interval(812, math.nan, 900)]
)
def test_without_bounds_an_interval_says_that_one_round_was_measured(interval: Interval) -> None:
    assert numbers.interval(interval).text == "812 (n = 1)"


@pytest.mark.parametrize("value", [None, Interval(math.nan, None, None), Interval(math.inf, 1, 2)])
def test_what_is_no_number_is_not_measured_and_sorts_nowhere(value: Interval | None) -> None:
    written = numbers.interval(value, "no GPU")

    assert (written.text, written.missing, written.sort) == ("not measured: no GPU", True, None)


def test_a_share_is_written_as_a_percentage() -> None:
    assert numbers.share(Interval(0.41, 0.38, 0.44)).text == "41% (38\u201344%)"
    assert numbers.share(Interval(0.0, 0.0, 0.004)).text == "0.0% (0.0\u20130.4%)"
    assert numbers.share(Interval(0.0, 0.0, 0.0)).text == "0% (0\u20130%)"


@pytest.mark.parametrize(("value", "written"), [(100.0, "100%"), (97.26, "97%"), (5.23, "5.2%"), (0.0, "0%")])
def test_a_percentage_keeps_two_significant_digits(value: float, written: str) -> None:
    assert numbers.percent(value).text == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.24 * 2**30, "1.24 GiB"),
        (310 * 2**20, "310 MiB"),
        (1536, "1.50 KiB"),
        (512, "512 bytes"),
        (0, "0 MiB"),
    ],
)
def test_memory_is_written_in_binary_units(value: float, written: str) -> None:
    assert numbers.memory(value).text == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (4.2e-6, "4.20 \u00b5s"),
        (0.0123, "12.3 ms"),
        (3.4, "3.40 s"),
        (364, "6 min 4 s"),
        (7300, "2 h 1 min"),
        (0, "0 s"),
    ],
)
def test_a_duration_is_written_in_the_unit_a_person_would_use(seconds: float, written: str) -> None:
    assert numbers.duration(seconds).text == written


@pytest.mark.parametrize(
    ("ratio", "written"),
    [
        ((1.25, 1.21, 1.29), "+25% vs baseline (21\u201329%)"),
        ((4.1, 3.9, 4.3), "4.1\u00d7 vs baseline (3.9\u20134.3\u00d7)"),
        ((0.88, 0.85, 0.91), "\u221212% vs baseline (\u221215 to \u22129%)"),
        ((1.0024, 0.876, 1.1439), "+0% vs baseline (\u221212 to 14%)"),
        ((1.25, None, None), "+25% vs baseline (n = 1)"),
        ((1.1203, 1.1192, 1.1218), "+12.0% vs baseline (11.9\u201312.2%)"),
        ((1.1203, 1.1202, 1.1204), "+12% vs baseline (12\u201312%)"),
    ],
)
def test_a_gain_says_what_its_ratio_means(ratio: tuple[float, float | None, float | None], written: str) -> None:
    assert numbers.gain(*ratio, "vs baseline").text == written


def test_when_is_written_in_utc_with_how_long_it_took() -> None:
    assert numbers.when("2026-03-12T15:03:00+01:00", "2026-03-12T14:09:04Z") == "2026-03-12 14:03 UTC, 6 min 4 s"


def test_a_time_that_cannot_be_read_is_shown_as_it_stands() -> None:
    assert numbers.when("yesterday", "") == "yesterday"


def test_a_date_outside_of_all_calendars_is_shown_as_it_stands() -> None:
    assert numbers.when("0001-01-01T00:00:00+23:00", "") == "0001-01-01T00:00:00+23:00"


def test_a_number_that_nobody_counts_to_stays_short() -> None:
    assert numbers.number(1e308) == "1.00e+308"
