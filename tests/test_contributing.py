"""Each worked example of CONTRIBUTING.md is followed to the letter in a copy of the package, and does what it shows."""

from __future__ import annotations

import ast
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


MEASURE = (
    "Add a dataset kind", "Add a loader backend", "Add a format",
    "Add a consumer", "Add an axis", "Add a monitor's metric",
)  # fmt: skip
"""Examples that run a benchmark: all in one copy of the package and one interpreter, which imports torch once."""

IN_TURN = """\
import contextlib, io, json, os, sys, traceback
from pathlib import Path
from loaderbench.commands.app import main

if __name__ == "__main__":
    done = []
    for heading, folder, command in json.loads(sys.argv[1]):
        os.chdir(folder)
        sys.argv = ["loaderbench", *command]
        printed, code = io.StringIO(), 0
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
            except Exception:
                code = traceback.format_exc()
        done.append([heading, command, code, printed.getvalue()])
    print(json.dumps(done))
"""


@dataclass(frozen=True)
class Place:
    """Where the commands of an example ran."""

    folder: Path

    def run(self, name: str = "out") -> dict[str, Any]:
        """The record of a run."""
        record: dict[str, Any] = json.loads((self.folder / name / "run.json").read_text())
        return record


def examples() -> dict[str, str]:
    """The text of each example by its heading."""
    _, *parts = HEADING.split((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def copy_package(folder: Path) -> None:
    shutil.copytree(ROOT / "loaderbench", folder / "loaderbench", ignore=shutil.ignore_patterns("__pycache__"))


def edit(heading: str, package: Path, place: Path) -> None:
    """Make the files of an example and its changes: those of the package in its copy, others in `place`."""
    for step in STEP.finditer(examples()[heading]):
        if step["new"]:
            file = (package if step["new"].startswith("loaderbench/") else place) / step["new"]
            assert not file.exists(), f"{step['new']} is there already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step["text"], encoding="utf-8")
        elif step["file"]:
            insert(package / step["file"], step["line"], step["text"])


def commands(heading: str) -> list[list[str]]:
    """The arguments of each command of an example."""
    blocks = [step["text"] for step in STEP.finditer(examples()[heading]) if step["language"] == "console"]
    found = [shlex.split(line[2:]) for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert found, f"{heading}: runs nothing"
    assert {program for program, *_ in found} == {"loaderbench"}
    return [arguments for _, *arguments in found]


def insert(file: Path, line: str, text: str) -> None:
    """Put text below the first line that holds `line`."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    places = [number for number, found in enumerate(lines) if line in found]
    assert places, f"{file.name} has no line with {line!r}"
    lines.insert(places[0] + 1, text)
    file.write_text("".join(lines), encoding="utf-8")


def python(package: Path, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """An interpreter with the copied package in place of the installed one."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def follow(heading: str, folder: Path) -> list[subprocess.CompletedProcess[str]]:
    """Do what an example says, in a copy of the package in `folder`; return how its commands ended."""
    copy_package(folder)
    (folder / EXAMPLE).mkdir(parents=True)
    shutil.copy(ROOT / EXAMPLE / "run.json", folder / EXAMPLE)
    edit(heading, folder, folder)
    return [python(folder, folder, "-m", "loaderbench", *command) for command in commands(heading)]


def changed_modules(folder: Path) -> list[Path]:
    """Modules of the copied package that are new or not as they are in the repository."""
    found = [file.relative_to(folder) for file in (folder / "loaderbench").rglob("*.py")]
    return [
        file
        for file in found
        if not (ROOT / file).exists() or (ROOT / file).read_bytes() != (folder / file).read_bytes()
    ]


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder of the examples that measure, and what went wrong in which; each has a folder of its own there."""
    folder = tmp_path_factory.mktemp("together")
    copy_package(folder)
    steps = []
    for number, heading in enumerate(MEASURE):
        place = folder / str(number)
        place.mkdir()
        edit(heading, folder, place)
        steps += [(heading, str(place), command) for command in commands(heading)]
    (folder / "in_turn.py").write_text(IN_TURN)
    done = python(folder, folder, "in_turn.py", json.dumps(steps))
    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout.splitlines()[-1])
    wrong = {heading: f"{command}\n{printed}\n{code}" for heading, command, code, printed in ended if code}
    return folder, wrong


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
    assert sorted((config["loader"], config["ahead"] or 0) for config in configs) == [
        ("background", 1),
        ("background", 2),
        ("torch", 0),
    ]
    workers = {trial["config"]["loader"]: trial["workers"] for trial in sweep}
    assert workers["background"]["count"] == 1
    (parity,) = place.run()["parity"]
    assert (parity["loader"], parity["refused"]) == ("background", "")


def assert_format(place: Place) -> None:
    assert sorted(completed(place.run(), "format")) == ["files", "joined", "tar"]
    assert {copy["format"] for copy in place.run()["copies"]} == {"tar", "joined"}
    page = (place.folder / "out" / "report.html").read_text()
    assert "joined" in page[page.index('id="copies"') :]


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
    assert "The last epochs need the full resolution" in page


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
    "Add a format": assert_format,
    "Add a consumer": assert_consumer,
    "Add an axis": assert_axis,
    "Add a remedy": assert_remedy,
    "Add a monitor's metric": assert_metric,
    "Add a section of the report": assert_section,
}
"""What must hold after each example was followed."""


def test_every_example_is_followed() -> None:
    assert list(ASSERTIONS) == list(examples())


@pytest.mark.parametrize("heading", [name for name in ASSERTIONS if name not in MEASURE])
def test_an_example_works_as_written(heading: str, tmp_path: Path) -> None:
    ended = follow(heading, tmp_path)
    assert [one.returncode for one in ended] == [0] * len(ended), "".join(one.stdout + one.stderr for one in ended)
    ASSERTIONS[heading](Place(tmp_path))


@pytest.mark.parametrize("heading", MEASURE)
def test_an_example_needs_no_other_one(heading: str, tmp_path: Path) -> None:
    """Its changes apply to an unmodified copy of the package."""
    copy_package(tmp_path)
    assert changed_modules(tmp_path) == []
    edit(heading, tmp_path, tmp_path)
    changed = changed_modules(tmp_path)
    assert changed
    for module in changed:
        ast.parse((tmp_path / module).read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("heading", MEASURE)
def test_an_example_measures_as_written(heading: str, together: tuple[Path, dict[str, str]]) -> None:
    folder, wrong = together
    assert heading not in wrong, wrong[heading]
    ASSERTIONS[heading](Place(folder / str(MEASURE.index(heading))))
