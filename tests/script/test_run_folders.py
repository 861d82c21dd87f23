"""Where the recordings of a script go."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from saved_recordings import saved_at, with_trial
from scripts import HEAD, call, profile, write

from loaderbench.errors import UsageError
from loaderbench.script import run_folders
from loaderbench.script.recording import Recording
from loaderbench.script.run_folders import make_run_folder, write_run_folders
from loaderbench.script.summary import print_loaders


def test_a_folder_that_the_script_has_written_to_gets_the_run_in_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = make_run_folder("train", tmp_path / "out")
    (folder / "checkpoint.pt").touch()
    (found,) = write_run_folders(saved_at([6]), folder)
    assert found.folder == folder / "loaderbench"
    (line,) = (found.folder / "trials.jsonl").read_text().splitlines()
    assert json.loads(line) == json.loads((found.folder / "run.json").read_text())["trials"][0]


@pytest.mark.parametrize("command", ["profile", "tune"])
def test_a_command_that_cannot_be_started_leaves_no_folder(command: str, tmp_path: Path) -> None:
    (tmp_path / "launch").write_text("x")
    (tmp_path / "launch").chmod(0o755)
    done = call(tmp_path, command, "--out", "run", "--", "./launch")
    assert done.returncode == 5, done.stderr
    assert not (tmp_path / "run").exists()


def test_commands_that_start_together_have_a_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: make_run_folder("train", None), range(16)))
    assert len(set(found)) == 16


@pytest.mark.parametrize("kind", ["file", "link"])
def test_without_a_place_for_reports_it_is_one_line(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "file":
        Path("reports").touch()
    else:
        Path("reports").symlink_to("gone")
    with pytest.raises(UsageError, match=r"^reports/train-.*: cannot write: "):
        make_run_folder("train", None)


def of(name: str, *, seconds: float, wait: float, others: float) -> Recording:
    (found,) = saved_at([6])
    found = with_trial(found, steady_s=seconds, data_wait_share=wait)
    return replace(found, name=name, place=name, others_share=others)


@pytest.mark.parametrize(("others", "first"), [(0.7, "slow"), (0.04, "fast"), (0.0, "fast")])
def test_the_loader_that_the_script_waits_for_comes_first(others: float, first: str, tmp_path: Path) -> None:
    fast = of("fast", seconds=7.1, wait=0.01, others=others)
    found = write_run_folders([fast, of("slow", seconds=7.0, wait=0.75, others=0.01)], tmp_path / "out")
    assert found[0].place == first
    by_place = {one.place: one for one in found}
    said = [note for note in by_place["fast"].run.record.notes if "waiting for other loaders" in note]
    assert said == (["70% of its step time is waiting for other loaders"] if others > 0.5 else [])


def test_a_loop_that_waits_for_its_own_loader_stays_first(tmp_path: Path) -> None:
    own, other = of("own", seconds=7.0, wait=0.4, others=0.3), of("other", seconds=3.0, wait=0.95, others=0.0)
    assert write_run_folders([own, other], tmp_path / "out")[0].place == "own"


def in_rank(recording: Recording, rank: int) -> Recording:
    return replace(with_trial(recording, rank=rank), rank=rank, ranks=2)


def test_in_a_job_the_loader_that_the_slowest_rank_waits_for_comes_first(tmp_path: Path) -> None:
    fast, slow = of("fast", seconds=7.1, wait=0.01, others=0.7), of("slow", seconds=7.0, wait=0.75, others=0.01)
    found = write_run_folders([in_rank(one, rank) for rank in (0, 1) for one in (fast, slow)], tmp_path / "out")
    assert [one.place for one in found] == ["slow", "fast"]
    assert "70% of its step time is waiting for other loaders" in found[1].run.record.notes


def test_loaders_that_one_line_makes_are_merged_in_their_order(tmp_path: Path) -> None:
    one, two = of("loader", seconds=7.0, wait=0.1, others=0.0), of("loader", seconds=3.0, wait=0.2, others=0.0)
    found = write_run_folders([in_rank(each, rank) for rank in (0, 1) for each in (one, two)], tmp_path / "out")
    assert [[trial.steady_s for trial in each.run.record.rank_trials] for each in found] == [[7.0, 7.0], [3.0, 3.0]]


def test_the_line_of_another_loader_says_that_its_loop_waits_for_others(tmp_path: Path) -> None:
    found = write_run_folders(
        [of("fast", seconds=7.1, wait=0.01, others=0.7), of("slow", seconds=7.0, wait=0.75, others=0.01)],
        tmp_path / "out",
    )
    console = Console(file=StringIO(), width=1_000)
    print_loaders(found, console)
    line = next(line for line in console.file.getvalue().splitlines() if line.startswith("Loader: fast"))  # type: ignore[attr-defined]
    assert "; 70% of its step time is waiting for other loaders; " in line


def test_a_loader_that_the_script_waits_for_longer_than_for_the_main_one_has_a_note(tmp_path: Path) -> None:
    train, validation = of("train", seconds=6.0, wait=0.1, others=0.0), of("val", seconds=4.0, wait=0.9, others=0.0)
    found = write_run_folders([train, validation], tmp_path / "out")
    note = "the script waits for val for 36% of the time in its loops, for train for 6%"
    assert [one.place for one in found] == ["train", "val"]
    assert all(note in one.run.record.notes for one in found)
    console = Console(file=StringIO(), width=1_000)
    print_loaders(found, console)
    line = next(line for line in console.file.getvalue().splitlines() if line.startswith("Loader: val"))  # type: ignore[attr-defined]
    assert f"; {note}; " in line
    (fix, *_) = [fix.title for fix in found[1].run.recommendations if fix.status == "open"]
    assert f"; first fix: {fix}; " in line


@pytest.mark.parametrize(("seconds", "wait"), [(4.0, 0.1), (0.4, 0.9)])
def test_a_loader_with_short_waits_has_no_such_note(seconds: float, wait: float, tmp_path: Path) -> None:
    train, validation = (
        of("train", seconds=6.0, wait=0.1, others=0.0),
        of("val", seconds=seconds, wait=wait, others=0.0),
    )
    found = write_run_folders([train, validation], tmp_path / "out")
    assert not any("the script waits for" in note for one in found for note in one.run.record.notes)


def test_hundreds_of_loaders_do_not_get_a_report_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folders, "MOST_LOADERS", 2)
    recordings = [of(f"client{n}", seconds=float(n), wait=0.4, others=0.0) for n in range(1, 5)]
    found = write_run_folders(recordings, tmp_path / "out")
    assert [one.place for one in found] == ["client4", "client3"]
    assert len(list((tmp_path / "out").rglob("report.html"))) == 2
    said = "4 loaders recorded; no report for 2 with the least time (30% of all)"
    assert [said in one.run.record.notes for one in found] == [True, False]


def test_of_many_loaders_five_have_a_line_and_the_rest_are_counted(tmp_path: Path) -> None:
    found = write_run_folders([of("one", seconds=3.0, wait=0.2, others=0.0)], tmp_path / "out")
    console = Console(file=StringIO(), width=1_000)
    print_loaders([*found, *found * 8], console)
    *_, last = lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert sum(line.startswith("Loader: one:") for line in lines) == 5
    assert last == f"3 more loaders: {tmp_path / 'out' / '*' / 'report.html'}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_report_is_written_loses_nothing(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(_: Path) -> None:
        os.kill(os.getpid(), number)

    monkeypatch.setattr(run_folders, "update_index", press)
    write(tmp_path, HEAD + "for batch in DataLoader(Slow(40), batch_size=4): pass\n")
    done = profile(tmp_path, "--out", "run", "--json", "run.json", "train.py")
    assert done.returncode == 0
    assert (tmp_path / "run.json").exists()
    assert "report.html" in done.stderr
