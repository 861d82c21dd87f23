"""What a running script saves reaches trackers, and harms neither the script nor each other."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from saved_recordings import SAMPLES, saved_at, with_batches

from loaderbench.errors import MissingError
from loaderbench.exporters.exporter import LivePoint
from loaderbench.script import live
from loaderbench.script.launch import run_script
from loaderbench.script.live import LiveTo, followed
from loaderbench.script.recording import Recording, write_recordings


@pytest.fixture(scope="module")
def recording() -> Recording:
    """Of a loop past its warm-up: 9 batches of that, and one more."""
    (found,) = saved_at([11])
    return found


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_S", 0.01)


class Kept:
    """Keeps what it is given; one that is `full` takes nothing."""

    def __init__(self, *, full: bool = False) -> None:
        self.points: list[LivePoint] = []
        self.full, self.closed = full, 0

    def write(self, points: Sequence[LivePoint]) -> None:
        if self.full:
            raise OSError(28, "No space left\non device")
        self.points += points

    def close(self) -> None:
        self.closed += 1

    def wait_for(self, count: int) -> None:
        ends_s = time.monotonic() + 60
        while len(self.points) < count and time.monotonic() < ends_s:
            time.sleep(0.005)

    @property
    def rates(self) -> list[tuple[int, float]]:
        return [(point.batches, round(point.numbers["samples_per_s"], 6)) for point in self.points]


def test_each_save_is_a_point_and_the_last_one_is_taken_when_the_script_has_ended(
    tmp_path: Path, recording: Recording
) -> None:
    kept = Kept()
    with followed(tmp_path, [("kept", kept)]):
        for count, (batches, seconds) in enumerate([(10, 1.0), (30, 2.0)], 1):
            write_recordings(tmp_path, [with_batches(recording, batches, seconds)])
            kept.wait_for(count)
        write_recordings(tmp_path, [with_batches(recording, 40, 4.0)])
    assert kept.rates == [(19, 10.0 * SAMPLES), (39, 20.0 * SAMPLES), (49, 5.0 * SAMPLES)]
    assert kept.closed == 1


def test_a_short_rest_at_the_end_is_joined_with_the_interval_before(tmp_path: Path, recording: Recording) -> None:
    kept = Kept()
    with followed(tmp_path, [("kept", kept)]):
        for count, (batches, seconds) in enumerate([(10, 10.0), (20, 20.0)], 1):
            write_recordings(tmp_path, [with_batches(recording, batches, seconds)])
            kept.wait_for(count)
        end = replace(with_batches(recording, 24, 20.1), has_ended=True)  # the queue of the workers
        write_recordings(tmp_path, [end])
        kept.wait_for(3)  # before the script's process is gone
    assert kept.rates[-1] == (33, round(SAMPLES * 14 / 10.1, 6))


def test_a_tracker_that_fails_is_one_line_and_the_others_continue(
    tmp_path: Path, recording: Recording, capfd: pytest.CaptureFixture[str]
) -> None:
    full, kept = Kept(full=True), Kept()
    with followed(tmp_path, [("prometheus=x", full), ("kept", kept)]):
        for count in (1, 2):
            write_recordings(tmp_path, [with_batches(recording, 10 * count, float(count))])
            kept.wait_for(count)
    assert len(kept.points) == 2
    said = "OSError: [Errno 28] No space left on device; the script continues, without this tracker"
    assert capfd.readouterr().err == f"loaderbench: --live prometheus=x: {said}\n"
    assert full.closed == 1


def test_a_tracker_that_hangs_does_not_hold_up_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "END_S", 0.05)
    answer = threading.Event()

    class Hanging(Kept):
        def close(self) -> None:
            answer.wait()

    with followed(tmp_path, [("mlflow=x", Hanging())]):
        pass
    answer.set()
    assert capfd.readouterr().err.startswith("loaderbench: --live mlflow=x: did not take the last numbers")


def test_loaders_ranks_and_processes_have_a_series_each_and_other_machines_none(
    tmp_path: Path, recording: Recording
) -> None:
    kept = Kept()
    named = [replace(recording, name=name) for name in ("train_loader", "Slow loader", "train_loader")]
    write_recordings(tmp_path, named, name="100")
    write_recordings(tmp_path, [replace(recording, rank=0)], name="101")
    write_recordings(tmp_path, [replace(recording, rank=1)], name="102")
    write_recordings(tmp_path, [replace(recording, rank=8)], name="rank8")  # sent by another machine at the end
    write_recordings(tmp_path, [recording], name="103")
    with followed(tmp_path, [("kept", kept)]):
        kept.wait_for(6)
    assert [point.series for point in kept.points] == [
        "train_loader",
        "Slow-loader",
        "train_loader-2",
        "train_loader-rank0",
        "train_loader-rank1",
        "train_loader-3",
    ]


def test_a_script_gets_no_variable_of_a_tracker_s_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_SERVICE", raising=False)
    kept, place = Kept(), tmp_path / "seen"

    def opened() -> Kept:
        os.environ["WANDB_SERVICE"] = "ours"
        return kept

    script = f"import os, pathlib; pathlib.Path({str(place)!r}).write_text(os.environ.get('WANDB_SERVICE', 'none'))"
    ended = run_script([sys.executable, "-c", script], live=[LiveTo("wandb=x", opened)])
    assert (ended.code, place.read_text(), kept.closed) == (0, "none", 1)
    monkeypatch.setenv("WANDB_SERVICE", "theirs")
    run_script([sys.executable, "-c", script], live=[LiveTo("wandb=x", opened)])
    assert place.read_text() == "theirs"


def test_a_tracker_that_cannot_be_opened_closes_the_others_before_the_script_starts(tmp_path: Path) -> None:
    kept, place = Kept(), tmp_path / "started"

    def absent() -> Kept:
        raise MissingError("--live mlflow=x: no server")

    command = [sys.executable, "-c", f"open({str(place)!r}, 'w')"]
    with pytest.raises(MissingError, match="no server"):
        run_script(command, live=[LiveTo("kept", lambda: kept), LiveTo("mlflow=x", absent)])
    assert (kept.closed, place.exists()) == (1, False)
