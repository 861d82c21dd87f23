"""A gauge is a function of a process tree; what it reads becomes one value of a trial and a series of its timeline."""

import os

import pytest

from loaderbench.monitors import TreeMonitor, gauges, over_time
from loaderbench.monitors.gauges import Gauge, between

MOMENTS = [(1.0, {"a": 10.0}), (2.0, {"a": 30.0}), (4.0, {"a": 50.0})]


def register(monkeypatch: pytest.MonkeyPatch, *found: Gauge) -> None:
    monkeypatch.setattr(gauges, "GAUGES", found)


def test_a_gauge_is_read_with_the_tree_its_root_first(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Gauge("root", lambda pids: float(pids[0]), "mean"))

    assert TreeMonitor(os.getpid()).read(with_disk=False).gauges == {"root": float(os.getpid())}


def test_what_cannot_be_read_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: object) -> float:
        raise ProcessLookupError

    register(monkeypatch, Gauge("gone", gone, "mean"), Gauge("nothing", lambda _: None, "largest"))

    assert gauges.read_gauges([1]) == {}
    assert over_time([(1.0, {}), (2.0, {})]) == {}
    assert list(between((1.0, {}), (2.0, {}))) == []


@pytest.mark.parametrize(("how", "value"), [("mean", 30.0), ("largest", 50.0), ("rate", 40 / 3)])
def test_readings_become_one_value(monkeypatch: pytest.MonkeyPatch, how: str, value: float) -> None:
    register(monkeypatch, Gauge("a", lambda _: None, how))  # type: ignore[arg-type]

    assert over_time(MOMENTS) == {"a": pytest.approx(value)}


def test_a_timeline_shows_what_was_read_and_of_a_counter_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    for how, value in (("mean", 50.0), ("largest", 50.0), ("rate", 10.0)):
        register(monkeypatch, Gauge("a", lambda _: None, how))  # type: ignore[arg-type]
        assert list(between(*MOMENTS[1:])) == [("a", value)]


def test_a_counter_that_was_read_once_has_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Gauge("a", lambda _: None, "rate"))

    assert over_time(MOMENTS[:1]) == {}
    assert list(between((0.0, {}), MOMENTS[0])) == []
