"""The readings of a run's trials, and its trials as a table."""

from __future__ import annotations

from pathlib import Path

from test_store import DONE, FAILED

from loaderbench.records import Readings, TimelinePoint
from loaderbench.store import Store, readable_timeline, timeline_frame, trials_frame

POINTS = [TimelinePoint("r1-c00", 0.1, "rss_bytes", 5.0), TimelinePoint("r1-c00", 0.2, "rss_bytes", 6.0)]


def test_a_timeline_comes_back_as_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.write_timeline(Readings(POINTS))
    store.close()
    found, unreadable = readable_timeline(tmp_path / "run")
    assert (list(found), unreadable) == (POINTS, ())
    assert list(timeline_frame(POINTS)["value"]) == [5.0, 6.0]
    found, unreadable = readable_timeline(tmp_path)
    assert (len(found), unreadable) == (0, ())


def test_many_series_come_back_each_with_its_own_readings_in_their_order(tmp_path: Path) -> None:
    points = [
        TimelinePoint(trial, t_s, metric, t_s * factor)
        for t_s in (0.3, 0.1, 0.2)
        for factor, (trial, metric) in enumerate([("a", "x"), ("b", "y"), ("a", "y"), ("c", "x"), ("b", "x")], 1)
    ]
    store = Store(tmp_path / "run")
    store.write_timeline(Readings(points))
    store.close()
    found, unreadable = readable_timeline(tmp_path / "run")
    assert not unreadable
    assert sorted(found.trials) == ["a", "b", "c"]
    for number, (trial, metric) in enumerate([("a", "x"), ("b", "y"), ("a", "y"), ("c", "x"), ("b", "x")], 1):
        seconds, values = found.series(trial, metric)
        assert list(seconds) == [0.3, 0.1, 0.2]
        assert list(values) == [t_s * number for t_s in (0.3, 0.1, 0.2)]
    assert len(found) == 15


def test_a_timeline_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "timeline.parquet").write_bytes(b"PAR1 and then nothing of a table PAR1")
    found, (said,) = readable_timeline(tmp_path / "run.json")
    assert len(found) == 0
    assert "timeline.parquet: cannot read" in said
    assert "\n" not in said


def test_an_empty_timeline_is_no_error(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.write_timeline(Readings())
    store.close()
    found, unreadable = readable_timeline(tmp_path / "run")
    assert (len(found), unreadable) == (0, ())


def test_a_frame_has_a_column_per_axis_and_per_device() -> None:
    frame = trials_frame([DONE, FAILED])
    assert list(frame["batch_size"]) == [8, 16]
    assert frame.loc[0, "gpu0_utilization_percent"] == 50.0
    assert list(frame["failure"])[1] == "hang"
    assert "config" not in frame
    assert frame.loc[0, "samples_per_s"] == 10.5
    assert not {"gpus", "not_measured", "dataset_traits"} & set(frame.columns)
