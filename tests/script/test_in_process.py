"""A script that begins and ends its own recording, as the callbacks of frameworks do."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from scripts import HEAD, write

from loaderbench.errors import UsageError
from loaderbench.result import load
from loaderbench.script import in_process, recorder

OWN = (
    HEAD
    + """\
from loaderbench.script.in_process import LoaderRecording

if __name__ == "__main__":
    before = DataLoader.__iter__, DataLoader.__init__
    recording = LoaderRecording(out=sys.argv[1] if sys.argv[1:] else None, steps=40)
    print(len(recording.finish()))
    recording.start()
    recording.start()
    print(before == (DataLoader.__iter__, DataLoader.__init__))
    train_loader = DataLoader(Slow(400, 0.0005), batch_size=8, num_workers=1)
    for epoch in range(2):
        for batch in train_loader:
            time.sleep(0.001)
    other = LoaderRecording()
    other.start()
    print(len(recording.finish()), len(recording.finish()))
    print(before == (DataLoader.__iter__, DataLoader.__init__))
"""
)

ONE_AFTER_ANOTHER = (
    HEAD
    + """\
from loaderbench.script.in_process import LoaderRecording

if __name__ == "__main__":
    for out in sys.argv[1:]:
        recording = LoaderRecording(out=out or None)
        recording.start()
        train_loader = DataLoader(Slow(160, 0), batch_size=8)
        print(sum(1 for _ in train_loader), len(recording.finish()))
"""
)


def run(place: Path, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    write(place, script)
    return subprocess.run(
        [sys.executable, "train.py", *arguments],
        cwd=place,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_records_from_start_to_finish_and_leaves_torch_as_it_was(tmp_path: Path) -> None:
    done = run(tmp_path, OWN, "run")
    assert done.stdout == "0\nFalse\n1 0\nTrue\n", done.stderr
    assert "its callback does nothing" in done.stderr
    assert "Report: run/report.html" in done.stderr
    found = load(tmp_path / "run")
    assert (found.trials[0].batches, found.record.name) == (40, "train_loader")


@pytest.mark.slow
def test_a_rank_has_a_folder_of_its_own_and_where_that_cannot_be_used_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "file-rank3").write_text("a file")
    done = run(tmp_path, ONE_AFTER_ANOTHER, "run", "", "file", "run", RANK="3", WORLD_SIZE="4")
    assert (done.returncode, done.stdout) == (0, "20 1\n20 1\n20 1\n20 1\n"), done.stderr
    assert "loaderbench: file-rank3: " in done.stderr
    assert "run-rank3: folder exists and is not empty; the run is written to a new folder" in done.stderr
    assert "Traceback" not in done.stderr
    for folder, count in (("run-rank3", 1), ("reports/profile-train-rank3-*", 3)):
        assert len([*tmp_path.glob(f"{folder}/run.json")]) == count


FORKS = OWN.replace(
    "    other = LoaderRecording()",
    """\
    if os.fork() == 0:
        sys.exit()
    os.wait()
    other = LoaderRecording()""",
)


@pytest.mark.slow
def test_a_forked_copy_that_ends_takes_nothing_with_it(tmp_path: Path) -> None:
    done = run(tmp_path, FORKS, "run")
    assert done.stdout.endswith("1 0\nTrue\n"), done.stderr
    assert load(tmp_path / "run").trials[0].batches == 40


@pytest.mark.slow
def test_a_training_that_ends_by_an_exception_is_written_too(tmp_path: Path) -> None:
    """Hugging Face's `Trainer` does not call its callbacks then."""
    raises = OWN.partition("    other =")[0] + "    raise RuntimeError('no more memory')\n"
    done = run(tmp_path, raises, "run")
    assert done.returncode == 1
    assert "RuntimeError: no more memory" in done.stderr
    assert "Report: run/report.html" in done.stderr
    assert load(tmp_path / "run").trials[0].batches == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_no_process_is_forked_while_another_thread_saves() -> None:
    """The copy would have the locks of modules that the thread is importing, and nobody to release them."""
    saves, saved = threading.Event(), []

    def save() -> None:
        with recorder._saving:
            saves.set()
            time.sleep(0.2)
            saved.append(True)

    thread = threading.Thread(target=save)
    thread.start()
    saves.wait()
    copy = os.fork()
    if copy == 0:
        os._exit(0 if saved else 1)
    thread.join()
    assert os.waitpid(copy, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_a_copy_that_was_forked_during_tuning_forks_from_any_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "LONGEST_HELD_S", -1)  # without a limit

    def fork_again() -> None:
        if (copy := os.fork()) == 0:
            os._exit(0)
        os.waitpid(copy, 0)

    with recorder._saving:
        copy = os.fork()
        if copy == 0:
            signal.alarm(30)  # ends one that waits for the lock
            thread = threading.Thread(target=fork_again)
            thread.start()
            thread.join()
            os._exit(0)
    assert os.waitpid(copy, 0)[1] == 0


def test_without_a_place_for_recordings_the_training_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_place(**_: str) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(in_process, "mkdtemp", no_place)
    recording = in_process.LoaderRecording()
    recording.start()
    assert recording.finish() == []
    assert "cannot record: No usable temporary directory found; the training continues" in capsys.readouterr().err


@pytest.mark.parametrize("steps", [0, -1, "10", True, 1.5])
def test_a_number_of_steps_that_makes_no_sense_is_refused_before_the_training(steps: Any) -> None:
    with pytest.raises(UsageError, match="steps must be an integer of 1 or more"):
        in_process.LoaderRecording(steps=steps)


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["huggingface", "lightning"])
def test_the_callback_of_a_framework_refuses_it_too(framework: str) -> None:
    pytest.importorskip({"huggingface": "transformers"}.get(framework, framework))
    callback = importlib.import_module(f"loaderbench.integrations.{framework}").LoaderBenchCallback
    with pytest.raises(UsageError, match="steps must be an integer of 1 or more, got 0"):
        callback(steps=0)
    assert callback(steps=1) is not None
