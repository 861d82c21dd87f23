"""`loaderbench ab` on real repositories with real loaders: a planted slowdown is caught, and bad input is one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import Cli, in_process

from loaderbench.commands.ab import _nothing_measured
from loaderbench.records import Failure, Side, SideBySide, Trial, Version
from loaderbench.store import read_run

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"

SUITE = """\
dataset: {kind: target, target: "lb_ab_data:make"}
loader: {batch_size: 2, num_workers: 0}
measure: {seconds: 0.1}
"""
DATA = """\
import time
from pathlib import Path
import torch
import lb_ab_cost

class Waiting(torch.utils.data.Dataset):
    def __len__(self): return 100_000
    def __getitem__(self, index):
        time.sleep(lb_ab_cost.SECONDS)
        return torch.zeros(2)

def make():
    with Path(__file__).with_name("seen.txt").open("a") as file:
        file.write(f"{Path.cwd().name} {lb_ab_cost.__file__}\\n")
    return Waiting()
"""
ENOUGH = ("--budget", "60s", "--fail-if", "samples_per_s:-10%")


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def repository(folder: Path) -> Path:
    """One commit that waits 4 ms a sample; the working tree waits twice as long."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "lb_ab_data.py").write_text(DATA)
    (folder / "lb_ab_cost.py").write_text("SECONDS = 0.004\n")
    (folder / ".gitignore").write_text("__pycache__\nout\n*.xml\n*.md\n*.json\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    (folder / "lb_ab_cost.py").write_text("SECONDS = 0.008\n")
    return folder


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A repository whose working tree is slower, and what `ab` said of it."""
    folder = repository(tmp_path_factory.mktemp("ab") / "repository")
    forms = ("--json", "ab.json", "--md", "ab.md", "--junit", "ab.xml")
    return folder, in_process("ab", "suite.yaml", "--out", "out", *ENOUGH, *forms, cwd=folder)


def test_a_planted_loss_fails_the_gate(slower: tuple[Path, Any]) -> None:
    _, said = slower
    assert said.returncode == 1, said.stderr
    assert "regressed" in said.stdout.splitlines()[0]
    assert said.stderr.splitlines()[-1].startswith("loaderbench: gate failed: samples_per_s:-10%")
    assert "Traceback" not in said.stderr


def test_the_record_has_both_sides_the_comparison_and_the_gate(slower: tuple[Path, Any]) -> None:
    folder, _ = slower
    run = json.loads((folder / "ab.json").read_text())
    assert run == json.loads((folder / "out" / "run.json").read_text())
    assert run["kind"] == "ab"
    assert run["environment"]["cpus_allotted"]
    assert [version["side"] for version in run["side_by_side"]["versions"]] == ["before", "after"]
    assert {(trial["side"], trial["role"]) for trial in run["trials"]} == {("before", "ab"), ("after", "ab")}
    change = run["comparison"]["metrics"][0]["change"]
    assert change["lo"] < change["est"] < change["hi"] < 0.9
    assert [gate["outcome"] for gate in run["gates"]] == ["failed"]


def test_each_version_has_its_own_modules_and_its_own_folder(slower: tuple[Path, Any]) -> None:
    folder, _ = slower
    seen = {tuple(line.split(" ", 1)) for line in (folder / "seen.txt").read_text().splitlines()}
    assert seen == {("repository", str(folder / "lb_ab_cost.py"))}
    rates = {"before": 1 / 0.004, "after": 1 / 0.008}
    trials = json.loads((folder / "ab.json").read_text())["trials"]
    assert all(trial["samples_per_s"] < rates[trial["side"]] for trial in trials)
    assert max(t["samples_per_s"] for t in trials if t["side"] == "before") > rates["after"]


def test_the_repository_is_left_as_it_was(slower: tuple[Path, Any]) -> None:
    folder, _ = slower
    assert git(folder, "status", "--porcelain").splitlines() == [" M lb_ab_cost.py", "?? seen.txt"]
    assert len(git(folder, "worktree", "list").splitlines()) == 1
    assert git(folder, "branch").split() == ["*", "main"]


def test_page_markdown_and_junit_have_the_comparison(slower: tuple[Path, Any]) -> None:
    folder, _ = slower
    page, comment = (folder / "out" / "report.html").read_text(), (folder / "ab.md").read_text()
    for text in (page, comment):
        assert "working tree" in text
        assert "FAILED" in text
    assert "Change of samples/s in each pair" in page
    assert ElementTree.parse(folder / "ab.xml").getroot().get("failures") == "1"


def test_a_saved_comparison_can_be_shown_and_cannot_be_resumed(slower: tuple[Path, Any]) -> None:
    folder, _ = slower
    shown = in_process("show", "out", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "FAILED" in shown.stdout
    no_trace = in_process("export", "out", "--to", "perfetto", "--out", "t.json", cwd=folder)
    assert no_trace.returncode == 2
    assert "a run of ab keeps no batches; export its trials with --to csv" in no_trace.stderr
    assert in_process("export", "out", "--to", "csv", "--out", "out/t.csv", cwd=folder).returncode == 0
    assert len((folder / "out" / "t.csv").read_text().splitlines()) > 2
    refused = in_process("run", "suite.yaml", "--resume", "out", cwd=folder)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--before", "nowhere"), 2, "--before nowhere: no such revision, folder or suite file"),
        (("--fail-if", "-5%"), 2, "--fail-if -5%: invalid; expected e.g. samples_per_s:-5%"),
        (("--budget", "soon"), 2, "--budget: expected a duration such as 90s"),
        (("--budget", "9" * 309), 2, "--budget: expected a number between 1e-30 and 1e+30 in magnitude, got inf"),
        (("--json", "a", "--md", "a"), 2, "two results cannot share one file"),
        (("-P", "nothing"), 2, "-P nothing: expected AXIS=V1,V2"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_measured(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    folder = repository(tmp_path / "repository")
    result = in_process("ab", "suite.yaml", *arguments, cwd=folder)
    assert result.returncode == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (folder / "reports").exists()


@pytest.mark.parametrize("gate", [("--fail-if", "data_wait_share:+3pp"), ("--warn-if", "data_wait_share>20%")])
def test_a_gate_on_data_wait_needs_a_consumer(tmp_path: Path, gate: tuple[str, str]) -> None:
    folder = repository(tmp_path / "repository")
    (folder / "suite.yaml").write_text(SUITE + "consumer: {kind: none}\n")
    result = in_process("ab", "suite.yaml", *gate, "-q", cwd=folder)
    assert result.returncode == 2
    assert result.stderr.startswith("loaderbench: after (working tree (")
    assert f"{' '.join(gate)}: data wait needs a consumer" in result.stderr
    assert "set consumer.kind to auto" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (folder / "reports").exists()
    assert not (folder / "seen.txt").exists(), "nothing was measured"


def test_a_module_that_one_version_cannot_import_is_named_with_it(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    (folder / "lb_ab_cost.py").unlink()
    result = in_process("ab", "suite.yaml", "-q", cwd=folder)
    assert result.returncode == 5
    assert result.stderr.startswith("loaderbench: after (working tree (")
    assert "target lb_ab_data:make" in result.stderr
    assert "lb_ab_cost" in result.stderr
    (folder / "suite.yaml").write_text("dataset: {root: photos}\n")
    git(folder, "commit", "-qam", "photos that git does not track")
    result = in_process("ab", "suite.yaml", "-q", cwd=folder)
    assert result.returncode == 5
    warning, error, *_ = result.stderr.splitlines()
    assert warning.startswith("Warning: before and after are the same code")
    assert error.startswith("loaderbench: before (HEAD (")
    assert str(folder) not in result.stderr
    assert "pass data with --data" in result.stderr
    (folder / "suite.yaml").write_text(SUITE.replace("num_workers: 0", "workers: 0"))
    result = in_process("ab", "suite.yaml", "-q", cwd=folder)
    assert result.returncode == 2
    assert ": suite.yaml:2:" in result.stderr


def test_where_only_the_later_version_fails_nothing_says_that_all_did(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    (folder / "lb_ab_data.py").write_text(DATA.replace("return Waiting()", "raise ValueError('broken')"))
    said = in_process("ab", "suite.yaml", "--out", "out", "-q", *ENOUGH, "--junit", "ab.xml", cwd=folder)
    assert said.returncode == 3
    _only_earlier(folder, said.stdout, "every trial of the later version failed", "all of its trials failed")


def test_where_the_earlier_version_fails_it_is_named_everywhere(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    (folder / "lb_ab_data.py").write_text(DATA.replace("return Waiting()", "raise ValueError('broken')"))
    git(folder, "commit", "-qam", "a version that is broken")
    (folder / "lb_ab_data.py").write_text(DATA)
    said = in_process("ab", "suite.yaml", "--out", "out", "-q", "--budget", "60s", "--junit", "ab.xml", cwd=folder)
    assert said.returncode == 3
    line = said.stderr.splitlines()[-1]
    assert line.startswith("loaderbench: before (HEAD (")
    assert "ValueError: broken" in line
    (error,) = ElementTree.parse(folder / "ab.xml").getroot().iter("error")
    assert "no pair was measured: before (HEAD (" in (error.get("message") or "")
    page = (folder / "out" / "report.html").read_text()
    assert "Failed trials" in page
    assert "ValueError: broken" in page


def test_a_version_with_a_rate_is_not_blamed_for_one_failed_trial() -> None:
    sides: tuple[Side, ...] = ("after", "before")
    trials = [
        Trial(
            id=f"p{number}-c0-{side}", role="ab", config={}, round=number, side=side,
            status="failed", failure=Failure("hang" if side == "after" else "user_code", "it broke", "look at it"),
        )
        for number in (1, 2)
        for side in sides
    ]  # fmt: skip
    trials[2] = replace(trials[2], status="completed", failure=None, samples_per_s=100.0)
    versions = (Version(side="before", name="main", suite_file="s"), Version(side="after", name="b", suite_file="s"))
    asked = SideBySide(versions=versions, configs=({},), gates=(), looks=(1,), budget_s=60, ended="decided")
    run = replace(read_run(EXAMPLE), kind="ab", trials=tuple(trials), side_by_side=asked)
    assert _nothing_measured(run, Path("r.html")).startswith("before (main): user_code: it broke; look at it")


def test_a_trial_that_misses_a_file_which_git_does_not_track_says_so(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    opened = 'Path(__file__).with_name("numbers.txt").read_text()\n    return Waiting()'
    (folder / "lb_ab_data.py").write_text(DATA.replace("return Waiting()", opened))
    git(folder, "commit", "-qam", "a file that git does not track")
    (folder / "numbers.txt").write_text("1")
    in_process("ab", "suite.yaml", "--out", "out", "-q", *ENOUGH, cwd=folder)
    trials = json.loads((folder / "out" / "run.json").read_text())["trials"]
    hints = {trial["side"]: (trial["failure"] or {}).get("hint", "") for trial in trials}
    assert "git revisions do not include untracked files" in hints["before"]
    assert hints["after"] == ""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupted_before_the_later_version_ran_nothing_says_that_it_failed(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    waiting = "Path(__file__).with_name('begun.txt').touch()\n    time.sleep(60)\n    return Waiting()"
    (folder / "lb_ab_data.py").write_text(DATA.replace("return Waiting()", waiting))
    command = [sys.executable, "-m", "loaderbench", "ab", "suite.yaml", "--out", "out", "-q", "--junit", "ab.xml"]
    process = subprocess.Popen([*command, *ENOUGH], cwd=folder, stdout=subprocess.PIPE, text=True)
    until_s = time.monotonic() + 60
    while not (folder / "begun.txt").exists():
        assert time.monotonic() < until_s
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    why = "no trial of the later version was completed: interrupted after 1 trial"
    _only_earlier(folder, said, why, "the run ended before its first trial completed")
    assert '<skipped message="not run" />' in (folder / "ab.xml").read_text()


def _only_earlier(folder: Path, said: str, why: str, of_verdict: str) -> None:
    """What is said of a run in which no trial of the later version was completed."""
    assert said.splitlines()[0] == f"Samples/s: change unknown, {why}"
    assert f'message="inconclusive: {why}"' in (folder / "ab.xml").read_text()
    shown = in_process("show", "out", cwd=folder).stdout
    assert f"the later version was not measured: {of_verdict}" in shown
    assert "Measured: no complete pair of interleaved processes" in shown
    assert f"samples_per_s:-10%: inconclusive: {why}" in shown
    for text in (said, shown, (folder / "ab.xml").read_text()):
        assert "nothing was measured" not in text
        assert "every trial failed" not in text


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupted_it_keeps_what_was_measured_and_removes_its_checkouts(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    with tempfile.TemporaryDirectory(prefix="lb-") as scratch:  # short enough for sockets
        _interrupt(folder, Path(scratch))


def _interrupt(folder: Path, scratch: Path) -> None:
    command = [sys.executable, "-m", "loaderbench", "ab", "suite.yaml", "--out", "out", "--progress", "plain"]
    process = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)}
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[Pairs 2]"):
            break
    assert list(scratch.rglob("before/lb_ab_data.py"))
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert "interrupted; results so far: out; it cannot be resumed" in rest
    assert len(json.loads((folder / "out" / "run.json").read_text())["trials"]) >= 3
    time.sleep(0.5)
    assert not list(scratch.glob("loaderbench-*"))
    assert len(git(folder, "worktree", "list").splitlines()) == 1
