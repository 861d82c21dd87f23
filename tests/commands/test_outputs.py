"""Where results go besides the run folder: `--md`, `--json`, and the list of runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import SMALL_SUITE, Cli

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

import run_factory as runs

from loaderbench.commands.outputs import Outputs
from loaderbench.commands.run import write_results
from loaderbench.commands.scripts import write_copies
from loaderbench.conclusion import conclude
from loaderbench.errors import UsageError
from loaderbench.report.perfetto import chrome_trace
from loaderbench.result import Run, load
from loaderbench.session import SessionResult
from loaderbench.store import run_json


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "reports" / "images-20260312T140300Z"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(run_json(runs.typical()))
    return folder


def test_show_writes_markdown_to_stdout_and_nothing_else(cli: Cli, saved: Path) -> None:
    result = cli("show", saved, "--md", "-")

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == Run(conclude(load(saved).record)).to_markdown()


def test_show_writes_markdown_to_a_file_and_prints_its_summary(cli: Cli, saved: Path, tmp_path: Path) -> None:
    result = cli("show", saved, "--md", "comment.md")

    assert "num_workers" in result.stdout
    shown = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert shown == Run(conclude(load(saved).record)).to_markdown()


def test_what_a_browser_prints_stays_apart_from_a_result_on_stdout(tmp_path: Path) -> None:
    code = "from pathlib import Path; from loaderbench.commands.outputs import show_page; show_page(Path('r.html'))"
    environment = {**os.environ, "BROWSER": f"{sys.executable} -c 'import\tsys;print(sys.argv[1])' %s"}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print('result')"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "result\n"
    assert "r.html" in done.stderr


@pytest.mark.parametrize(("after_script", "first"), [(True, "\n{"), (False, "{\n")])
def test_a_result_after_the_output_of_a_script_begins_a_line(
    after_script: bool, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_copies(Run(conclude(runs.typical())), Outputs(json="-"), after_script=after_script)
    assert capsys.readouterr().out.startswith(first)


def test_markdown_is_utf_8_whatever_the_terminal_knows(cli: Cli, saved: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "loaderbench", "show", str(saved), "--md", "-"],
        env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, capture_output=True, check=True,
    )  # fmt: skip
    assert "18% (18\u201318%)" in result.stdout.decode("utf-8")


def test_report_redraws_the_list_of_runs_and_writes_markdown(cli: Cli, saved: Path, tmp_path: Path) -> None:
    result = cli("report", "reports/images-20260312T140300Z", "--md", "comment.md")

    assert result.stdout == "reports/images-20260312T140300Z/report.html\n"
    assert "images-20260312T140300Z/report.html" in (tmp_path / "reports" / "index.html").read_text()
    assert (tmp_path / "comment.md").read_text(encoding="utf-8").startswith("## ")
    assert cli("report", saved / "run.json", "--md", "-").stdout.startswith("## ")


def test_report_leaves_a_list_of_somebody_else_alone(cli: Cli, saved: Path) -> None:
    (saved.parent / "index.html").write_text("mine")

    assert cli("report", saved).returncode == 0
    assert (saved.parent / "index.html").read_text() == "mine"


@pytest.mark.parametrize("verb", ["show", "report"])
def test_a_timeline_that_was_cut_off_costs_its_charts_and_one_line(cli: Cli, saved: Path, verb: str) -> None:
    (saved / "timeline.parquet").write_bytes(b"PAR1")
    result = cli(verb, "reports/images-20260312T140300Z")

    assert result.returncode == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("loaderbench: reports/images-20260312T140300Z/timeline.parquet: cannot read: ")
    assert line.endswith("; its charts are missing")


@pytest.mark.parametrize("verb", ["show", "report"])
def test_a_place_that_cannot_be_written_is_one_line(cli: Cli, saved: Path, verb: str) -> None:
    result = cli(verb, saved, "--md", "no/such/file.md")

    assert result.returncode == 2
    assert result.stderr.strip() == ("loaderbench: --md no/such/file.md: cannot write: No such file or directory")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--md", "no/such/file.md"], "--md no/such/file.md: cannot write"),
        (["--json", "-", "--md", "-"], "two results cannot share one file"),
        (["--json", "same", "--md", "same"], "two results cannot share one file"),
        (["--json", "same", "--md", "./same"], "--json same and --md ./same: two results cannot share one file"),
        (["--md", "new/deeper/c.md", "--out", "new"], "--md new/deeper/c.md: cannot write"),
    ],
)
def test_run_finds_out_before_measuring(cli: Cli, tmp_path: Path, photos: Path, flags: list[str], words: str) -> None:
    (tmp_path / "s.yaml").write_text(SMALL_SUITE)
    result = cli("run", "s.yaml", "--data", photos, *flags)

    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert words in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


def test_a_run_leaves_the_list_of_runs_and_its_markdown(cli: Cli, tmp_path: Path, photos: Path) -> None:
    (tmp_path / "s.yaml").write_text(SMALL_SUITE)
    few = ("-P", "num_workers=0", "--rounds", "1", "--no-verify", "-q")
    result = cli("run", "s.yaml", "--data", photos, *few, "--md", "-", "--json", "copy.json")
    (folder,) = [path for path in (tmp_path / "reports").iterdir() if path.is_dir()]

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == load(folder).to_markdown()
    assert f"{folder.name}/report.html" in (tmp_path / "reports" / "index.html").read_text()
    assert (tmp_path / "copy.json").read_text() == (folder / "run.json").read_text() + "\n"
    found = json.loads((folder / "run.json").read_text())
    assert found["verification"] is None
    assert "turned off" in found["not_measured"]["verification"]


def test_a_result_may_go_into_the_folder_that_the_run_makes(tmp_path: Path) -> None:
    for place in (tmp_path / "new" / "c.md", tmp_path / "other" / ".." / "new" / "c.md"):
        (tmp_path / "other").mkdir(exist_ok=True)
        Outputs(md=str(place)).check(folder=tmp_path / "new")
    with pytest.raises(UsageError, match="No such file"):
        Outputs(md=str(tmp_path / "elsewhere" / "c.md")).check(folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_report_writes_html_to_stdout_and_nothing_else(cli: Cli, saved: Path, tmp_path: Path) -> None:
    result = cli("report", saved, "--out", "-")

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("<!DOCTYPE html>")
    assert result.stdout.rstrip().endswith("</html>")
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]
    assert not (saved / "report.html").exists()


def test_export_refuses_stdout(cli: Cli, saved: Path, tmp_path: Path) -> None:
    result = cli("export", saved, "--to", "csv", "--out", "-")

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "loaderbench: --out -: expected a path; an export cannot be written to stdout\n"
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


@pytest.mark.parametrize("name", ["run.json", "trials.jsonl", "batches.parquet", "report.html", "logs", "."])
@pytest.mark.parametrize("exists", [True, False])
def test_a_result_does_not_take_a_path_that_the_run_writes_to(tmp_path: Path, name: str, exists: bool) -> None:
    if exists:
        (tmp_path / "new").mkdir()
    with pytest.raises(UsageError, match="the run writes to this path itself; choose another file"):
        Outputs(md=str(tmp_path / "new" / name)).check(folder=tmp_path / "new")


@pytest.mark.parametrize("arguments", [("run", "s.yaml"), ("ab", "s.yaml"), ("profile", "s.py"), ("tune", "s.py")])
def test_a_result_never_replaces_the_suite_or_the_script(
    cli: Cli, tmp_path: Path, photos: Path, arguments: tuple[str, str]
) -> None:
    command, name = arguments
    (tmp_path / name).write_text(SMALL_SUITE)
    data = ["--data", photos] if command in {"run", "ab"} else []
    result = cli(command, "--json", f"./{name}", *data, name)

    assert result.returncode == 2
    assert result.stderr.endswith(": would replace a file that this command reads; choose another file\n")
    assert result.stderr.count("\n") == 1
    assert (tmp_path / name).read_text() == SMALL_SUITE


def test_a_result_never_replaces_the_run_that_is_resumed_or_compared_with(
    cli: Cli, tmp_path: Path, photos: Path, saved: Path
) -> None:
    (tmp_path / "s.yaml").write_text(SMALL_SUITE)
    result = cli("run", "s.yaml", "--data", photos, "--baseline", saved, "--json", saved / "run.json")

    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "would replace what was measured" in result.stderr


def test_a_result_replaces_neither_another_run_nor_a_program(tmp_path: Path) -> None:
    for name in ("run.json", "trials.jsonl", "mine.py"):
        (tmp_path / name).touch()
    for name, why in (("run.json", "what was measured"), ("mine.py", "a Python file")):
        with pytest.raises(UsageError, match=f"would replace {why}; choose another file"):
            Outputs(json=str(tmp_path / name)).check()
    (tmp_path / "trials.jsonl").unlink()
    Outputs(json=str(tmp_path / "run.json")).check()  # a copy that an earlier `--json` wrote


def test_a_report_and_its_markdown_are_two_files(cli: Cli, saved: Path) -> None:
    page = saved / "report.html"
    for flags in (["--md", page], ["--out", "same", "--md", "same"]):
        result = cli("report", saved, *flags)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
        assert "two results cannot share one file" in result.stderr
    assert not page.exists()


@pytest.mark.parametrize("name", ["perfetto", "speedscope"])
def test_a_trace_is_never_written_to_stdout(name: str) -> None:
    with pytest.raises(UsageError, match=f"^--{name} -: this result cannot go to stdout; name a file$"):
        Outputs(**{name: Path("-")}).check()  # type: ignore[arg-type]


def test_a_run_that_kept_batches_of_other_configs_only_has_all_results_but_the_trace(
    small_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = small_run
    run = load(folder)
    shown = chrome_trace(run.record, run.readings)["otherData"]["trial"]
    of_verdict = next(trial.config for trial in run.trials if trial.id == shown)
    others = [trial.id for trial in run.record.sweep if trial.config != of_verdict]
    resumed = Run(run.record, run.readings.only(others), None)
    outputs = Outputs(perfetto=tmp_path / "trace.json", junit=tmp_path / "junit.xml")
    with pytest.raises(UsageError, match="no batch of the verdict's config was kept"):
        outputs.write_perfetto(resumed)
    write_results(SessionResult(resumed, folder, folder / "report.html", None), outputs, None, [], verbose=False)
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "no batch of the verdict's config was kept; choose another trial" in said.err
    assert f"expected one of {others[0]}" in said.err
    assert "num_workers" in said.out
    assert (tmp_path / "junit.xml").exists()
    assert not (tmp_path / "trace.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "RUN", "--md", "RUN/run.json"),
        ("show", "RUN/run.json", "--perfetto", "RUN/trials.jsonl"),
        ("report", "RUN", "--out", "RUN/run.json"),
        ("compare", "RUN", "RUN", "--json", "RUN/run.json"),
        ("export", "RUN", "--to", "csv", "--out", "RUN/timeline.parquet"),
    ],
)
def test_a_result_never_replaces_what_was_measured(cli: Cli, saved: Path, arguments: tuple[str, ...]) -> None:
    before = (saved / "run.json").read_bytes()
    result = cli(*(argument.replace("RUN", str(saved)) for argument in arguments))
    assert result.returncode == 2
    assert result.stderr.endswith(": would replace what was measured; choose another file\n")
    assert [file.name for file in saved.iterdir()] == ["run.json"]
    assert (saved / "run.json").read_bytes() == before


def test_a_link_to_a_file_that_is_not_there_yet_is_left(tmp_path: Path) -> None:
    (tmp_path / "latest.md").symlink_to("run.md")
    Outputs(md=str(tmp_path / "latest.md")).check()
    assert (tmp_path / "latest.md").is_symlink()


@pytest.mark.skipif(sys.platform == "win32", reason="/dev/stdout of POSIX")
def test_markdown_goes_to_a_pipe_that_is_named_as_a_file(saved: Path) -> None:
    command = [sys.executable, "-m", "loaderbench", "report", str(saved), "--md", "/dev/stdout"]
    result = subprocess.run(command, capture_output=True, check=False, text=True, encoding="utf-8")

    assert (result.returncode, result.stderr) == (0, "")
    assert Run(conclude(load(saved).record)).to_markdown() in result.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="/dev/fd of POSIX")
def test_two_results_go_to_two_pipes_as_a_shell_substitutes_them(saved: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, encoding="utf-8") as piped:
        flags = ["--md", "/dev/stdout", "--junit", f"/dev/fd/{writer}"]
        command = [sys.executable, "-m", "loaderbench", "compare", str(saved), str(saved), *flags]
        result = subprocess.run(command, pass_fds=[writer], capture_output=True, check=False, text=True)
        os.close(writer)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("## ")
        assert ElementTree.parse(piped).getroot().tag == "testsuite"


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of POSIX")
def test_a_named_pipe_is_opened_once_there_is_a_result(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    Outputs(md=str(tmp_path / "pipe")).check()  # to open it would wait for its reader


def test_a_folder_is_refused_before_measuring(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Is a directory"):
        Outputs(md=str(tmp_path)).check()
