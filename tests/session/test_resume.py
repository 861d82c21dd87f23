"""A run that was interrupted or killed goes on where it was, and refuses where something that matters has changed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Cli

import loaderbench
from loaderbench.commands.run import _resumable
from loaderbench.conclusion import conclude
from loaderbench.errors import Interrupted, Terminated, UsageError
from loaderbench.records import RunRecord, Trial, to_dict
from loaderbench.session.running import NOT_ENDED
from loaderbench.store import read_run, readable_trials, run_json

SUITE = """\
name: resumed
dataset: {root: photos}
sweep: {batch_size: [4], num_workers: [0, 1]}
consumer: {kind: emulated, demand: 5000}
measure: {rounds: 2, seconds: 0.1, verify: false, seed: 3}
"""
TRIALS = 4
EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"


@pytest.fixture
def place(tmp_path: Path, photos: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SUITE)
    (tmp_path / "photos").symlink_to(photos, target_is_directory=True)
    return tmp_path


def killed_after(trials: int, place: Path) -> None:
    """A run that was killed after so many trials."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "loaderbench", "run", "s.yaml", "--out", "r"]
    running = subprocess.Popen(command, cwd=place, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    file, deadline = place / "r" / "trials.jsonl", time.monotonic() + 120
    while time.monotonic() < deadline and (not file.exists() or file.read_text().count("\n") < trials):
        time.sleep(0.02)
    running.kill()
    running.communicate(timeout=60)


@pytest.fixture(scope="module")
def killed_run(tmp_path_factory: pytest.TempPathFactory, photos: Path) -> Path:
    """A folder with a suite, its photos, and a run of it that was killed after two trials."""
    place = tmp_path_factory.mktemp("killed")
    (place / "s.yaml").write_text(SUITE)
    (place / "photos").symlink_to(photos, target_is_directory=True)
    killed_after(2, place)
    return place


@pytest.fixture
def killed(killed_run: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(killed_run, tmp_path, dirs_exist_ok=True, symlinks=True)
    return tmp_path


def test_a_killed_run_goes_on_and_measures_nothing_twice(cli: Cli, killed: Path) -> None:
    before, left = readable_trials(killed / "r")[0], read_run(killed / "r")
    assert len(before) >= 2
    result = cli("run", "s.yaml", "--resume", "r")
    assert result.returncode == 0, result.stderr
    assert_finished_without_repeating(killed / "r", before, left)
    assert len(read_run(killed / "r").sweep) == TRIALS


def test_kept_trials_without_timeline_and_batches_are_told_in_the_run_and_in_the_export(cli: Cli, killed: Path) -> None:
    kept = [trial for trial in readable_trials(killed / "r")[0] if trial.status == "completed"]
    lost = next(trial.id for trial in kept if trial.role == "sweep")
    alone = cli("export", "r", "--to", "perfetto", "--out", "t.json", "--trial", lost)
    assert f"trial {lost}: no batches of its trials were saved: the run was killed" in alone.stderr
    assert cli("run", "s.yaml", "--resume", "r").returncode == 0
    said = f"{len(kept)} of {len(kept)} kept trials have no timeline and no batches: an earlier call was killed"
    assert said in read_run(killed / "r").notes
    refused = cli("export", "r", "--to", "perfetto", "--out", "t.json", "--trial", lost)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert f"trial {lost}: its batches were lost: the run was killed before it wrote them" in refused.stderr
    assert "expected one of r" in refused.stderr
    other = next(trial.id for trial in read_run(killed / "r").trials if trial.role != "sweep")
    refused = cli("export", "r", "--to", "perfetto", "--out", "t.json", "--trial", other)
    assert f"trial {other}: only trials of the sweep keep batches; expected one of r" in refused.stderr


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (Terminated(), 143)])
def test_a_signal_before_a_resumed_run_measures_prints_the_command(stop: BaseException, code: int) -> None:
    command = "loaderbench run s.yaml --resume 'a r' --junit j"
    with pytest.raises(Interrupted, match=command) as caught, _resumable(Path("s.yaml"), Path("a r"), ["--junit", "j"]):
        raise stop
    assert caught.value.exit_code == code
    with pytest.raises(type(stop)), _resumable(Path("s.yaml"), None, []):  # nothing was measured
        raise stop


def assert_finished_without_repeating(folder: Path, before: Sequence[Trial], left: RunRecord) -> None:
    """Completed trials were kept, and only the missing ones were measured."""
    assert not left.complete
    run = read_run(folder)
    assert run.complete
    assert run.started_at == left.started_at
    after = {trial.id: trial for trial in run.trials}
    assert all(after[trial.id] == trial for trial in before if trial.status == "completed")
    names = [trial.id for trial in readable_trials(folder)[0]]
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_an_interrupted_run_says_how_to_go_on_with_its_flags_and_what_is_pasted_measures_nothing_twice(
    cli: Cli, place: Path
) -> None:
    (place / "s.yaml").write_text(SUITE.replace("rounds: 2", "rounds: 3").replace("photos", "nowhere"))
    arguments = ["run", "s.yaml", "--out", "a run", "--data", "photos", "-P", "num_workers=0", "--seed", "7"]
    arguments += ["--fail-if", "samples_per_s<0.1", "--junit", "a run.xml"]
    running = subprocess.Popen(
        [sys.executable, "-m", "loaderbench", *arguments], cwd=place, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    trials = place / "a run" / "trials.jsonl"
    while time.monotonic() < deadline and (not trials.exists() or not trials.read_text().count("\n")):
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    command = said.splitlines()[-1].partition("resume with: ")[2]
    assert command == ("loaderbench run s.yaml --resume 'a run' --fail-if 'samples_per_s<0.1' --junit 'a run.xml'")
    before, left = readable_trials(place / "a run")[0], read_run(place / "a run")
    assert before
    _, *pasted = shlex.split(command)
    done = cli(*pasted, "--no-verify")
    assert done.returncode == 0, done.stderr
    assert_finished_without_repeating(place / "a run", before, left)
    run = read_run(place / "a run")
    assert {trial.config["num_workers"] for trial in run.trials} == {0}
    assert run.overrides == {
        "dataset.root": str((place / "photos").resolve()), "sweep.num_workers": [0], "measure.seed": 7,
        "measure.verify": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"suite": {"sweep": {"batch_size": [8]}}}, r"sweep\.\w+ changed from .* to"),
        ({"environment": {"cpu_model": "another"}}, r"machine\.cpu_model changed from another to"),
        ({"environment": {"versions": {"torch": "1.0"}}}, r"version of torch changed from 1\.0 to"),
        ({"dataset": {"files": 7}}, r"dataset\.files changed from 7 to 24"),
    ],
)
def test_what_has_changed_is_told_and_nothing_is_lost(
    cli: Cli, killed: Path, change: dict[str, dict[str, object]], said: str
) -> None:
    file, trials = killed / "r" / "run.json", (killed / "r" / "trials.jsonl").read_bytes()
    saved = json.loads(file.read_text())
    for section, values in change.items():
        saved[section] |= values
    file.write_text(json.dumps(saved))
    result = cli("run", "s.yaml", "--resume", "r")
    assert result.returncode == 2, result.stderr
    assert re.search(said, result.stderr.splitlines()[-1])
    assert (killed / "r" / "trials.jsonl").read_bytes() == trials


def test_what_a_killed_run_had_measured_is_shown_and_drawn(cli: Cli, killed: Path) -> None:
    left = {trial.id for trial in readable_trials(killed / "r")[0] if not trial.id.endswith("-aa")}
    run = loaderbench.load(killed / "r")
    assert {trial.id for trial in run.trials} == left
    assert not run.complete
    assert "no config was measured in both" not in cli("compare", "r", "r").stdout
    assert f"{len(left)} of {TRIALS} trials measured" in cli("show", "r").stdout
    assert cli("report", "r").returncode == 0
    assert all(name in (killed / "r" / "report.html").read_text() for name in left)


def test_rounds_that_an_earlier_call_added_for_a_gate_are_kept(killed: Path) -> None:
    file = killed / "r" / "trials.jsonl"
    added = {**json.loads(file.read_text().splitlines()[0]), "id": "r9-c00", "round": 9}
    with file.open("a") as trials:
        trials.write(json.dumps(added) + "\n")
    run = loaderbench.run(killed / "s.yaml", resume=killed / "r")
    assert len(run.record.sweep) == TRIALS + 1
    assert next(trial for trial in run.record.sweep if trial.id == "r9-c00").samples_per_s == added["samples_per_s"]


def test_isolation_runs_that_had_ended_are_part_of_what_a_killed_run_had_measured(tmp_path: Path) -> None:
    whole = read_run(EXAMPLE)
    left_out = dict.fromkeys(("isolation", "verification"), NOT_ENDED)
    begun = replace(whole, trials=(), complete=False, verification=None, left_out=left_out)
    (tmp_path / "run.json").write_text(run_json(conclude(begun)))
    (tmp_path / "trials.jsonl").write_text("".join(f"{json.dumps(to_dict(trial))}\n" for trial in whole.trials))
    run = loaderbench.load(tmp_path).record
    assert run.sweep == whole.sweep
    assert run.isolation is not None
    assert run.isolation.fetch_s == whole.isolation.fetch_s
    assert not run.remedy_trials
    assert run.not_measured["verification"] == NOT_ENDED


def test_a_line_that_was_cut_costs_that_line_only_and_a_program_resumes_too(cli: Cli, killed: Path) -> None:
    file = killed / "r" / "trials.jsonl"
    whole = file.read_text().splitlines()[:2]
    file.write_text(whole[0] + "\n" + whole[1][: len(whole[1]) // 2])
    assert cli("compare", "r", "r").stderr.splitlines() == ["loaderbench: r/trials.jsonl: line 2 cannot be read"] * 2
    assert [trial.id for trial in readable_trials(killed / "r")[0]] == [json.loads(whole[0])["id"]]
    assert loaderbench.load(killed / "r").unreadable == (f"{file}: line 2 cannot be read",)
    run = loaderbench.run(killed / "s.yaml", resume=killed / "r")
    assert f"{file}: line 2 cannot be read; what only that file had is measured again" in run.record.notes
    assert run.record == read_run(killed / "r")
    assert len(run.record.sweep) == TRIALS
    with pytest.raises(UsageError, match="resume cannot be combined with out"):
        loaderbench.run(killed / "s.yaml", resume=killed / "r", out="x")


@pytest.mark.parametrize(
    "arguments", [("--resume", "nowhere"), ("--resume", "photos"), ("--resume", "x", "--out", "y")]
)
def test_what_cannot_be_resumed_is_one_line(cli: Cli, place: Path, arguments: tuple[str, ...]) -> None:
    result = cli("run", "s.yaml", *arguments)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_run_that_came_to_its_end_is_not_resumed(cli: Cli, place: Path) -> None:
    result = cli("run", "s.yaml", "--resume", EXAMPLE)
    assert result.returncode == 2
    assert "that run is complete" in result.stderr
