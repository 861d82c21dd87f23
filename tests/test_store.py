"""A run folder is written as the run goes, and read back as it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from loaderbench.errors import RunFileError, UsageError
from loaderbench.records import Failure, GpuUse, Readings, TimelinePoint, Trial, to_dict
from loaderbench.store import (
    Store,
    new_run_folder,
    read_run,
    read_timeline,
    timeline_frame,
    trials_frame,
)

DONE = Trial(
    role="sweep",
    id="r1-c00",
    config={"batch_size": 8, "pin_memory": True, "prefetch_factor": None},
    round=1,
    status="completed",
    samples_per_s=10.5,
    gpus=(GpuUse(0, "GPU-a", 50.0, None, 100, {"memory_used_bytes": "MIG"}),),
)
FAILED = Trial(
    role="sweep", id="r1-c01", config={"batch_size": 16}, round=1, status="failed", failure=Failure("hang", "m", "h")
)
POINTS = [TimelinePoint("r1-c00", 0.1, "rss_bytes", 5.0), TimelinePoint("r1-c00", 0.2, "rss_bytes", 6.0)]


def test_each_trial_is_on_the_disk_when_append_returns(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    for count, trial in enumerate((DONE, FAILED), 1):
        store.append(trial)
        lines = (tmp_path / "run" / "trials.jsonl").read_text().splitlines()
        assert len(lines) == count
        assert json.loads(lines[-1]) == json.loads(json.dumps(to_dict(trial)))
    store.close()


def test_append_waits_until_the_disk_itself_has_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, synced = tmp_path / "run" / "trials.jsonl", list[str]()

    def fsync(descriptor: int) -> None:
        assert os.fstat(descriptor).st_ino == file.stat().st_ino
        synced.append(file.read_text())

    monkeypatch.setattr(os, "fsync", fsync)
    store = Store(tmp_path / "run")
    for trial in (DONE, FAILED):
        store.append(trial)
        assert synced[-1] == file.read_text()
    assert len(synced) == 2
    store.close()


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with pytest.raises(UsageError, match="exists and is not empty"):
        Store(tmp_path)


@pytest.mark.parametrize("place", ["file/run", "file"])
def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written to"):
        Store(tmp_path / place)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot be written to"):
        Store(tmp_path / "run")


def test_a_folder_that_was_there_before_stays(tmp_path: Path) -> None:
    Store(tmp_path).discard()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_which_a_run_is_under_way_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.append(DONE)
    with pytest.raises(UsageError, match="a run is under way in it"):
        Store(tmp_path / "run", again=True)
    store.keep_only([DONE])
    with pytest.raises(UsageError, match="a run is under way in it"):
        Store(tmp_path / "run", again=True)
    store.close()
    Store(tmp_path / "run", again=True).close()


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    store._trials = full.open("a")
    with pytest.raises(UsageError, match="No space left on device"):
        store.append(DONE)


def test_an_unused_folder_is_taken_away_and_a_used_one_stays(tmp_path: Path) -> None:
    unused, used = Store(tmp_path / "unused"), Store(tmp_path / "used")
    unused.discard()
    used.append(DONE)
    used.discard()
    assert not (tmp_path / "unused").exists()
    assert (tmp_path / "used" / "trials.jsonl").stat().st_size


def test_a_timeline_comes_back_as_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.write_timeline(Readings(POINTS))
    store.close()
    assert list(read_timeline(tmp_path / "run")) == POINTS
    assert list(timeline_frame(POINTS)["value"]) == [5.0, 6.0]
    assert len(read_timeline(tmp_path)) == 0


def test_a_frame_has_a_column_per_axis_and_per_device() -> None:
    frame = trials_frame([DONE, FAILED])
    assert list(frame["batch_size"]) == [8, 16]
    assert frame.loc[0, "gpu0_utilization_percent"] == 50.0
    assert list(frame["failure"])[1] == "hang"
    assert "config" not in frame


def test_folders_are_named_after_the_suite_and_the_time_and_never_twice(tmp_path: Path) -> None:
    first = new_run_folder("my suite/../<x>", tmp_path)
    first.mkdir()
    second = new_run_folder("my suite/../<x>", tmp_path)
    assert first.parent == second.parent == tmp_path
    assert first.name.startswith("my-suite-..-x-")
    assert first != second


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not the JSON of a run"),
        ("[]", "schema_version is None"),
        ('{"schema_version": 99}', "schema_version is 99"),
        ('{"schema_version": 1}', "field required"),
        ('{"schema_version": NaN}', "is not the JSON of a run"),
        ("[" * 100_000, "is not the JSON of a run"),
    ],
)
def test_what_is_no_run_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunFileError, match=words) as caught:
        read_run(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="no such run"):
        read_run(tmp_path / "none")


def test_a_number_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema_version": 1, "x": 1e999}')
    with pytest.raises(RunFileError, match="1e999 is no number that a run can hold"):
        read_run(tmp_path)
