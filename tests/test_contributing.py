"""Each worked example of CONTRIBUTING.md is followed to the letter in a copy of the package, and does what it shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLE = Path("reports", "examples", "two-cores")
HEADING = re.compile(r"^### (.+)$", re.MULTILINE)
STEP = re.compile(
    r"(?:(?:Create `(?P<new>[^`]+)`:|In `(?P<file>[^`]+)`, below `(?P<line>[^`]+)`, add:)\n\n)?"
    r"```(?P<language>\w+)\n(?P<text>.*?)```",
    re.DOTALL,
)


@dataclass
class Place:
    """A copy of the package, and the commands of an example with what each printed."""

    folder: Path
    printed: dict[str, str]

    def run(self, name: str = "out") -> dict[str, Any]:
        """The record of a run."""
        record: dict[str, Any] = json.loads((self.folder / name / "run.json").read_text())
        return record


def examples() -> dict[str, str]:
    """The text of each example by its heading."""
    _, *parts = HEADING.split((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def follow(heading: str, folder: Path) -> Place:
    """Do what an example says, in a copy of the package in `folder`."""
    shutil.copytree(ROOT / "loaderbench", folder / "loaderbench", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / EXAMPLE).mkdir(parents=True)
    shutil.copy(ROOT / EXAMPLE / "run.json", folder / EXAMPLE)
    place = Place(folder, {})
    for step in STEP.finditer(examples()[heading]):
        if step["new"]:
            file = folder / step["new"]
            assert not file.exists(), f"{step['new']} is there already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step["text"], encoding="utf-8")
        elif step["file"]:
            insert(folder / step["file"], step["line"], step["text"])
        elif step["language"] == "console":
            commands = [line[2:] for line in step["text"].splitlines() if line.startswith("$ ")]
            place.printed |= {command: call(command, folder) for command in commands}
    assert place.printed, f"{heading}: runs nothing"
    return place


def insert(file: Path, line: str, text: str) -> None:
    """Put text below the first line that holds `line`."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    places = [number for number, found in enumerate(lines) if line in found]
    assert places, f"{file.name} has no line with {line!r}"
    lines.insert(places[0] + 1, text)
    file.write_text("".join(lines), encoding="utf-8")


def call(command: str, folder: Path) -> str:
    """Run a command as written, with the copied package in place of the installed one."""
    program, *arguments = shlex.split(command)
    assert program == "loaderbench"
    result = subprocess.run(
        [sys.executable, "-m", "loaderbench", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def completed(record: dict[str, Any], axis: str) -> list[Any]:
    """The values of an axis whose trials of the sweep were completed."""
    sweep = [trial for trial in record["trials"] if trial["role"] == "sweep"]
    return [trial["config"][axis] for trial in sweep if trial["status"] == "completed"]


def assert_dataset_kind(place: Place) -> None:
    record = place.run()
    assert sorted(completed(record, "side")) == [16, 32]
    assert record["dataset"]["description"] == "256 random tensors"


def assert_loader_backend(place: Place) -> None:
    sweep = [trial for trial in place.run()["trials"] if trial["role"] == "sweep"]
    assert {trial["status"] for trial in sweep} == {"completed"}
    configs = [trial["config"] for trial in sweep]
    assert sorted((config["loader"], config["threads"] or 0) for config in configs) == [
        ("threads", 1),
        ("threads", 2),
        ("torch", 0),
    ]


def assert_consumer(place: Place) -> None:
    record = place.run()
    assert record["consumer"] == "slow_step"
    assert {trial["consumer"] for trial in record["trials"] if trial["role"] == "sweep"} == {"slow_step"}
    assert all(trial["data_wait_share"] < 1 for trial in record["trials"] if trial["role"] == "sweep")


def assert_axis(place: Place) -> None:
    assert sorted(completed(place.run(), "worker_nice")) == [0, 5]


def assert_remedy(place: Place) -> None:
    page = (place.folder / "page.html").read_text()
    assert "Train the first epochs at a lower resolution" in page
    assert "the last epochs need the full resolution" in page


def assert_metric(place: Place) -> None:
    record = place.run()
    assert all(trial["metrics"]["open_files"] > 3 for trial in record["trials"] if trial["role"] == "sweep")
    assert all(found["metrics"]["open_files"] > 3 for found in record["configurations"])
    page = (place.folder / "out" / "report.html").read_text()
    assert page.count("Open files") >= 2, "the table of configurations and that of trials"


def assert_section(place: Place) -> None:
    page = (place.folder / "page.html").read_text()
    assert 'id="tally"' in page
    assert "Trials by role" in page


ASSERTIONS: dict[str, Callable[[Place], None]] = {
    "Add a dataset kind": assert_dataset_kind,
    "Add a loader backend": assert_loader_backend,
    "Add a consumer": assert_consumer,
    "Add an axis": assert_axis,
    "Add a remedy": assert_remedy,
    "Add a monitor's metric": assert_metric,
    "Add a section of the page": assert_section,
}
"""What must hold after each example was followed."""


def test_every_example_is_followed() -> None:
    assert list(ASSERTIONS) == list(examples())


MEASURE = ("Add a dataset kind", "Add a loader backend", "Add a consumer", "Add an axis", "Add a monitor's metric")


@pytest.mark.parametrize(
    "heading", [pytest.param(name, marks=pytest.mark.slow if name in MEASURE else ()) for name in ASSERTIONS]
)
def test_an_example_works_as_written(heading: str, tmp_path: Path) -> None:
    assert_it_works = ASSERTIONS[heading]
    assert_it_works(follow(heading, tmp_path))
