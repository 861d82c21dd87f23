"""A run folder is written as the run goes, and read back as it was."""

from __future__ import annotations

import errno
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from full_disk import file_size_limited

from loaderbench.errors import RunFileError, UsageError
from loaderbench.records import Failure, GpuUse, Trial, to_dict
from loaderbench.store import RUN_FILE, TRIALS_FILE, Store, new_run_folder, read_run, readable_trials, run_json

EXAMPLE = Path(__file__).parents[1] / "reports" / "examples" / "two-cores"

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


def test_a_trial_that_no_json_can_hold_is_not_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    with pytest.raises(ValueError, match="JSON"):
        store.append(replace(DONE, samples_per_s=float("nan")))
    assert (tmp_path / "run" / "trials.jsonl").read_text() == ""
    store.close()


def test_trials_are_read_back_as_they_were_and_a_broken_line_costs_that_line_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.append(DONE)
    (tmp_path / "run" / "trials.jsonl").open("a").write('{"id": "r1-c0\n[]\n' + "[" * 100_000 + "\n")
    store.append(FAILED)
    store.close()
    assert readable_trials(tmp_path / "run") == (
        [DONE, FAILED],
        (f"{tmp_path / 'run' / 'trials.jsonl'}: line 2 and 2 more cannot be read",),
    )


def test_a_run_begins_again_with_the_trials_that_are_kept_and_no_others(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    for trial in (DONE, FAILED):
        store.append(trial)
    store.keep_only([DONE])
    assert readable_trials(tmp_path / "run")[0] == [DONE]
    store.append(FAILED)
    store.close()
    assert readable_trials(tmp_path / "run")[0] == [DONE, FAILED]


def test_what_was_written_before_and_not_yet_on_the_disk_does_not_come_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store._trials.write("half a line")
    store.keep_only([DONE])
    assert readable_trials(tmp_path / "run")[0] == [DONE]
    store.close()


def test_trials_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"trials.jsonl: cannot read: No such file"):
        readable_trials(tmp_path)


def test_a_record_is_written_a_field_a_line_and_never_with_what_is_no_json() -> None:
    text = run_json(DONE)  # type: ignore[arg-type]
    assert '\n "id": "r1-c00"' in text
    assert json.loads(text)["config"] == DONE.config
    assert run_json(replace(DONE, id="\u05e9\udcff")).isascii()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="JSON"):
        run_json(replace(DONE, samples_per_s=float("inf")))  # type: ignore[arg-type]


def test_each_trial_has_a_log_of_its_own_in_a_folder_that_is_there(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    assert store.log("r1-c00") == tmp_path / "run" / "logs" / "r1-c00.log"
    assert store.log("r1-c00").parent.is_dir()
    store.close()


def test_a_page_is_written_at_once_or_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    page = store.write_page("<p>one</p>")
    assert store.write_page("<p>two</p>") == page == tmp_path / "run" / "report.html"
    assert page.read_text() == "<p>two</p>"
    page.unlink()
    (page / "in the way").mkdir(parents=True)
    with pytest.raises(UsageError, match="Is a directory") as raised:
        store.write_page("<p>three</p>")
    assert "run.json" in str(raised.value)
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == ["logs", "report.html", "trials.jsonl"]
    store.close()


def test_a_page_that_cannot_be_written_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "run")
    page = store.write_page("<p>one</p>")

    def full(self: Path, text: str, encoding: str) -> None:
        self.open("w").write(text[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UsageError, match="No space left on device"):
        store.write_page("<p>two</p>")
    assert page.read_text() == "<p>one</p>"
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == ["logs", "report.html", "trials.jsonl"]
    store.close()


def test_an_error_without_words_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is gone")

    store = Store(tmp_path / "run")
    store.append(DONE)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UsageError, match="the disk is gone") as raised:
        store.append(DONE)
    assert "--resume" in str(raised.value)
    monkeypatch.setattr(Path, "read_text", fail)
    with pytest.raises(RunFileError, match="the disk is gone"):
        readable_trials(tmp_path / "run")
    (tmp_path / "run.json").touch()
    with pytest.raises(RunFileError, match="the disk is gone"):
        read_run(tmp_path)
    store.close()


def test_what_says_nothing_of_what_is_kept_ends_with_the_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"Not a directory$"):
        Store(tmp_path / "file" / "run")


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with pytest.raises(UsageError, match="exists and is not empty"):
        Store(tmp_path)


@pytest.mark.parametrize("place", ["file/run", "file"])
def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        Store(tmp_path / place)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot write"):
        Store(tmp_path / "run")


def test_a_folder_in_which_a_run_is_under_way_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.append(DONE)
    with pytest.raises(UsageError, match="another run is writing to this folder"):
        Store(tmp_path / "run", again=True)
    store.keep_only([DONE])
    with pytest.raises(UsageError, match="another run is writing to this folder"):
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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    ("resumable", "kept"), [(True, "continue with --resume "), (False, "results so far are in trials.jsonl")]
)
def test_a_full_disk_says_how_to_continue_with_what_was_measured(tmp_path: Path, resumable: bool, kept: str) -> None:
    store = Store(tmp_path / "run", resumable=resumable)
    store.append(DONE)
    for write in (lambda: store.append(FAILED), lambda: store.write_run(read_run(EXAMPLE))):
        with file_size_limited(10), pytest.raises(UsageError, match="File too large") as found:
            write()
        assert kept in str(found.value)
    store.close()


def test_folders_are_named_after_the_suite_and_the_time_and_never_twice(tmp_path: Path) -> None:
    first = new_run_folder("my suite/../<x>", tmp_path)
    first.mkdir()
    second = new_run_folder("my suite/../<x>", tmp_path)
    assert first.parent == second.parent == tmp_path
    assert first.name.startswith("my-suite-..-x-")
    assert second.name == f"{first.name}-2"


@pytest.mark.parametrize(
    ("name", "slug"),
    [("x" * 99, "x" * 60), ("..//..", "suite"), ("-a-", "a"), ("Vögel & Bäume", "Vögel-Bäume"), ("鳥" * 99, "鳥" * 60)],
)
def test_a_folder_s_name_is_short_and_never_hidden(tmp_path: Path, name: str, slug: str) -> None:
    assert new_run_folder(name, tmp_path).name.rpartition("-")[0] == slug


def test_a_resumed_run_keeps_the_earlier_files_until_it_is_complete(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    (tmp_path / "run" / RUN_FILE).write_text("{}")
    (tmp_path / "run" / TRIALS_FILE).write_text("earlier\n")
    store.keep_only([])
    assert (tmp_path / "run" / f"{RUN_FILE}.earlier").read_text() == "{}"
    assert (tmp_path / "run" / f"{TRIALS_FILE}.earlier").read_text() == "earlier\n"
    store.forget_earlier()
    store.close()
    assert not list((tmp_path / "run").glob("*.earlier"))
