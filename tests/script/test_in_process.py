"""A script that begins and ends its own recording, as the callbacks of frameworks do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import HEAD, write

from loaderbench.result import load

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
    train_loader = DataLoader(Slow(400), batch_size=8, num_workers=1)
    for epoch in range(2):
        for batch in train_loader:
            time.sleep(0.001)
    other = LoaderRecording()
    other.start()
    print(len(recording.finish()), len(recording.finish()))
    print(before == (DataLoader.__iter__, DataLoader.__init__))
"""
)


def run(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    write(place, OWN)
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
    done = run(tmp_path, "run")
    assert done.stdout == "0\nFalse\n1 0\nTrue\n", done.stderr
    assert "its callback does nothing" in done.stderr
    assert "Report: run/report.html" in done.stderr
    found = load(tmp_path / "run")
    assert (found.trials[0].batches, found.record.name) == (40, "train_loader")


@pytest.mark.parametrize(("out", "folder"), [("run", "run-rank3"), (None, "reports/profile-train-rank3-*")])
def test_a_rank_has_a_folder_of_its_own(tmp_path: Path, out: str | None, folder: str) -> None:
    done = run(tmp_path, *([out] if out else []), RANK="3", WORLD_SIZE="4")
    assert done.returncode == 0, done.stderr
    assert [place.name for place in tmp_path.glob(f"{folder}/run.json")] == ["run.json"]


def test_a_folder_that_cannot_be_used_costs_a_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    done = run(tmp_path, "run")
    assert done.returncode == 0
    assert "loaderbench: run: " in done.stderr
    assert "Traceback" not in done.stderr
