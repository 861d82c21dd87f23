"""Run folders as a session leaves them, with a run made up in memory."""

from dataclasses import replace
from pathlib import Path

from loaderbench.records import RunRecord
from loaderbench.store import run_json


def put(parent: Path, name: str, run: RunRecord, day: int = 1, page: bool = True) -> Path:
    folder = parent / name
    folder.mkdir()
    text = run_json(replace(run, started_at=f"2026-03-{day:02d}T14:03:00+00:00", suite={}))
    (folder / "run.json").write_text(text)
    if page:
        (folder / "report.html").touch()
    return folder
