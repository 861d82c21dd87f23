"""A folder's runs in short: the newest first, each with its rate or the reason why it has none."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from loaderbench.store import run_list
from loaderbench.store.run_list import MAX_BYTES, MOST_RUNS, RunSummary, UnreadableRun, list_runs, read_summary

RATE = {"est": 100.0, "lo": 90.0, "hi": 110.0}
BEST = {"config": {"num_workers": 2, "batch_size": 8}, "samples_per_s": RATE}


def configuration(rate: Any = RATE, trials: int = 1, why: str = "") -> dict[str, Any]:
    return {
        "config": {"num_workers": 2, "batch_size": 8},
        "samples_per_s": rate,
        "trials": [f"t{number}" for number in range(trials)],
        "not_measured": {"samples_per_s": why} if why else {},
    }


def run(**changed: Any) -> dict[str, Any]:
    return {
        "schema_version": 2,
        "name": "images",
        "kind": "sweep",
        "started_at": "2026-03-12T14:03:00+00:00",
        "complete": True,
        "plan": {"axes": {"num_workers": [0, 2], "batch_size": [8]}},
        "configurations": [configuration()],
        "best": BEST,
        "verdict": {"headline": "it waits"},
        "not_measured": {},
        **changed,
    }


def put(parent: Path, name: str, text: str | dict[str, Any] | None = None, indent: int | None = 1) -> Path:
    folder = parent / name
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "run.json").write_text(text if isinstance(text, str) else json.dumps(text, indent=indent))
    return folder


def summary(tmp_path: Path, **changed: Any) -> RunSummary:
    found = read_summary(put(tmp_path, "r", run(**changed)))
    assert isinstance(found, RunSummary)
    return found


def why_not(tmp_path: Path, text: str | dict[str, Any] | None) -> str:
    found = read_summary(put(tmp_path, "r", text))
    assert isinstance(found, UnreadableRun)
    assert (found.folder, found.has_page, "\n" in found.reason) == ("r", False, False)
    return found.reason


def test_a_run_is_told_by_its_best_and_the_axes_that_vary(tmp_path: Path) -> None:
    found = summary(tmp_path)
    assert (found.folder, found.name, found.kind, found.complete) == ("r", "images", "sweep", True)
    assert (found.config, found.own_config) == (BEST["config"], {"num_workers": 2})
    assert (found.samples_per_s and found.samples_per_s.est, found.reason) == (100.0, None)
    assert (found.tried, found.measured, found.has_page, found.headline) == (1, 1, False, "it waits")
    assert found.started == datetime(2026, 3, 12, 14, 3, tzinfo=timezone.utc)


def test_where_nothing_varies_the_whole_configuration_is_its_own(tmp_path: Path) -> None:
    assert summary(tmp_path, plan={"axes": {}}).own_config == BEST["config"]


def test_configurations_are_counted_that_were_tried_and_that_were_measured(tmp_path: Path) -> None:
    rows = [configuration(), configuration(None, 2), configuration(None, 0), configuration()]
    found = summary(tmp_path, configurations=rows)
    assert (found.tried, found.measured) == (3, 2)


def test_a_run_has_a_page_where_there_is_a_file_of_that_name(tmp_path: Path) -> None:
    folder = put(tmp_path, "r", run())
    (folder / "report.html").touch()
    found = read_summary(folder)
    assert found.has_page
    (folder / "run.json").write_text("no json")
    assert read_summary(folder).has_page


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"configurations": [configuration(None, 0)]}, "no trial ran"),
        ({"configurations": []}, "no trial ran"),
        ({"configurations": [configuration(None)]}, "every trial failed"),
        ({"configurations": [configuration(None), configuration(None, why="no sample")]}, "no sample"),
        ({"not_measured": {"best": "n = 2"}}, "n = 2"),
        (
            {"not_measured": {"best": "n = 2"}, "configurations": [configuration(), configuration(None, why="hung")]},
            "n = 2",
        ),
        ({}, "no best config with a measured rate"),
    ],
)
def test_a_run_without_a_best_says_why(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    found = summary(tmp_path, best=None, **changed)
    assert (found.config, found.own_config, found.samples_per_s, found.reason) == (None, None, None, reason)


def test_a_profile_is_told_by_what_it_measured(tmp_path: Path) -> None:
    found = summary(tmp_path, kind="profile", best=None)
    assert (found.kind, found.config, found.samples_per_s and found.samples_per_s.hi) == (
        "profile",
        BEST["config"],
        110.0,
    )
    other = read_summary(put(tmp_path, "s", run(kind="profile", best=None, configurations=[])))
    assert isinstance(other, RunSummary)
    assert (other.config, other.reason) == (None, "no trial ran")


@pytest.mark.parametrize(
    ("rate", "usable"),
    [
        ({"est": 1e12, "lo": None, "hi": None}, True),
        ({"est": 1.1e12, "lo": None, "hi": None}, False),
        ({"est": 5.0, "lo": -1e12, "hi": 6.0}, True),
        ({"est": 5.0, "lo": 4.0, "hi": 1.1e12}, False),
        ({"est": 5.0, "lo": -1.1e12, "hi": 6.0}, False),
        ({"est": 0.0, "lo": None, "hi": None}, True),
        ({"est": 5.0, "lo": 4.0, "hi": -6.0}, True),
        ({"est": -0.1, "lo": None, "hi": None}, False),
        ({"est": 5.0, "lo": float("nan"), "hi": 6.0}, False),
        ({"est": 5.0, "lo": 4.0, "hi": float("inf")}, False),
    ],
)
def test_a_rate_that_no_loader_can_have_is_none(tmp_path: Path, rate: dict[str, float | None], usable: bool) -> None:
    found = summary(tmp_path, best={**BEST, "samples_per_s": rate})
    assert (found.samples_per_s is not None) == usable


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "no run.json"),
        ("", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "not a run of loaderbench; expected a run folder or its run.json"),
        ({"schema_version": 99}, "schema_version is 99; this version reads 1 and 2"),
        ({"schema_version": "x" * 50}, f"schema_version is '{'x' * 39};"),
        ({"schema_version": 2}, "field required"),
        (run(best=7), "run.json: best: "),
        (run(best=7, complete="perhaps", name=7), "run.json: name: "),
        (run(configurations=[7]), "run.json: configurations.0: "),
    ],
)
def test_what_cannot_be_read_says_why_in_one_line(
    tmp_path: Path, text: str | dict[str, Any] | None, reason: str
) -> None:
    assert reason in why_not(tmp_path, text)


def test_a_run_that_was_written_otherwise_is_read_as_well(tmp_path: Path) -> None:
    for indent in (None, 2):
        found = read_summary(put(tmp_path, f"r{indent}", run(), indent))
        assert isinstance(found, RunSummary)
        assert found.name == "images"


def test_only_what_is_wanted_is_read_of_a_run_of_ours(tmp_path: Path) -> None:
    text = json.dumps({**run(), "trials": "HERE"}, indent=1).replace('"HERE"', "[not even json")
    folder = put(tmp_path, "r", text)
    assert isinstance(read_summary(folder), RunSummary)


def test_what_is_no_file_or_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a" / "run.json").mkdir(parents=True)
    found = read_summary(tmp_path / "a")
    assert isinstance(found, UnreadableRun)
    assert found.reason == "run.json is not a file"
    folder = put(tmp_path, "b", "")
    with (folder / "run.json").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    large = read_summary(folder)
    assert isinstance(large, UnreadableRun)
    assert large.reason == "run.json is larger than 50,000,000 bytes"


def test_exactly_as_large_as_allowed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "MAX_BYTES", 2)
    assert "not a run" in why_not(tmp_path, "[]")


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path, "r", run())

    def fail(*_: object, **__: object) -> str:
        raise OSError("the disk is gone")

    monkeypatch.setattr(Path, "read_text", fail)
    found = read_summary(folder)
    assert isinstance(found, UnreadableRun)
    assert found.reason == "cannot read: the disk is gone"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: (tmp_path / "none").lstat())
    gone = read_summary(folder)
    assert isinstance(gone, UnreadableRun)
    assert gone.reason == "cannot read: No such file or directory"


def names(parent: Path) -> list[str]:
    return [one.folder for one in list_runs(parent).runs]


def test_the_newest_comes_first_and_one_without_a_date_last(tmp_path: Path) -> None:
    for name, started in (
        ("a", "2026-01-02"),
        ("b", "2026-01-03"),
        ("c", "2026-01-01"),
        ("d", "some time"),
        ("e", "2026-01-03"),
    ):
        put(tmp_path, name, run(started_at=started))
    assert names(tmp_path) == ["b", "e", "a", "c", "d"]


def test_what_holds_no_run_is_not_listed_and_what_holds_the_beginning_of_one_is(tmp_path: Path) -> None:
    put(tmp_path, "run", run())
    put(tmp_path, "empty")
    put(tmp_path, "logs").joinpath("x.log").touch()
    put(tmp_path, "begun").joinpath("trials.jsonl").touch()
    (tmp_path / "index.html").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    found = list_runs(tmp_path)
    assert [one.folder for one in found.runs] == ["run"]
    assert [(one.folder, "no run.json" in one.reason) for one in found.unreadable] == [("begun", True)]
    assert found.left_out == 0


def test_of_many_the_newest_two_hundred_are_read_by_the_time_in_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_RUNS == 200
    monkeypatch.setattr(run_list, "MOST_RUNS", 2)
    for number, day in enumerate((3, 1, 5, 4)):
        folder = put(tmp_path, f"r-2026010{day}T000000Z", run(started_at=f"2026-01-0{day}"))
        os.utime(folder / "run.json", (1e9 + number, 1e9 + number))
    found = list_runs(tmp_path)
    assert [one.folder for one in found.runs] == ["r-20260105T000000Z", "r-20260104T000000Z"]
    assert found.left_out == 2


def test_without_a_time_in_its_name_a_run_is_as_old_as_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_list, "MOST_RUNS", 1)
    for name, written in (("x", 1e9), ("y-20269999T000000Z", 2e9), ("z-20010101T000000Z", 3e9)):
        file = put(tmp_path, name, run()) / "run.json"
        os.utime(file, (written, written))
    assert names(tmp_path) == ["y-20269999T000000Z"]


def test_a_folder_that_may_not_be_looked_into_is_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "closed", run())
    real = Path.stat

    def stat(self: Path, **known: Any) -> os.stat_result:
        if self.name in ("run.json", "trials.jsonl", "report.html"):
            raise PermissionError(13, "Permission denied")
        return real(self, **known)

    monkeypatch.setattr(Path, "stat", stat)
    found = list_runs(tmp_path)
    assert [(one.reason, one.has_page) for one in found.unreadable] == [("cannot read: Permission denied", False)]


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_runs(tmp_path / "none")


def test_an_attached_process_is_measured_by_its_cpu_use(tmp_path: Path) -> None:
    row = configuration(None, why="batches are not visible") | {"cpu_percent_of_allotted": 71.0}
    found = summary(tmp_path, kind="profile", best=None, configurations=[row])
    assert (found.tried, found.measured, found.samples_per_s, found.reason) == (1, 1, None, "batches are not visible")
