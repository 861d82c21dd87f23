"""Every verb answers wrong use with one clear line and the right exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from command_line import Cli

import loaderbench
from loaderbench.errors import UsageError

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"
SUITE = "name: s\ndataset: {root: data}\nsweep: {batch_size: [4, 8], num_workers: auto}\n"


@pytest.fixture
def place(tmp_path: Path, photos: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SUITE)
    (tmp_path / "data").symlink_to(photos, target_is_directory=True)
    return tmp_path


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert "Traceback" not in text
    return lines[0]


def test_help_imports_nothing_that_is_slow(cli: Cli) -> None:
    code = (
        "import sys; from loaderbench.commands import app\ntry: app.app(['--help'])\nexcept SystemExit: pass\n"
        "slow = {'torch', 'pandas', 'numpy', 'plotly', 'pydantic', 'rich', 'scipy', 'ruamel', 'psutil', 'hashlib'}\n"
        "slow |= {'loaderbench.records', 'loaderbench.suite'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
    for verb in ("run", "check", "report", "show", "photos", "schema"):
        assert verb in result.stdout


def test_without_a_verb_the_help_is_printed_and_it_is_wrong_use(cli: Cli) -> None:
    result = cli()
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: loaderbench")
    assert len(result.stderr.splitlines()) > 10


@pytest.mark.parametrize(
    "arguments", ["show", *(pytest.param(more, marks=pytest.mark.slow) for more in ("show --md -", "compare"))]
)
def test_a_reader_that_leaves_is_no_gate_that_failed(arguments: str) -> None:
    verb, *flags = arguments.split()
    runs = [str(EXAMPLE)] * (2 if verb == "compare" else 1)
    command = [sys.executable, "-m", "loaderbench", verb, *runs, *flags]
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (141, "")


def test_without_an_output_a_command_ends_as_ever() -> None:
    code = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, '-m', 'loaderbench', '--version'])"
    result = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_on_a_full_disk_is_one_line() -> None:
    command = [sys.executable, "-m", "loaderbench", "show", str(EXAMPLE)]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, result.stderr) == (
        2, "loaderbench: cannot write the output: No space left on device\n",
    )  # fmt: skip


def test_a_broken_pipe_other_than_the_output_is_an_internal_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks() -> int:
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            return pipe.write(b"x")

    monkeypatch.setattr("loaderbench.commands.app._call", breaks)
    result = cli("show", EXAMPLE)
    assert result.returncode == 70
    assert "BrokenPipeError" in result.stderr


@pytest.mark.parametrize("flags", [("--json", "-", "--junit", "-"), ("--md", "x", "--junit", "x")])
def test_one_place_takes_one_result(cli: Cli, flags: tuple[str, ...]) -> None:
    result = cli("compare", EXAMPLE, EXAMPLE, *flags)
    assert result.returncode == 2
    assert "two results cannot share one file" in one_line(result.stderr)


def test_check_prints_the_plan_and_measures_nothing(cli: Cli, place: Path) -> None:
    result = cli("check", "s.yaml", "-P", "num_workers=0,1")
    assert result.returncode == 0
    assert "24 images of 3 classes" in result.stdout
    assert "12 trials (4 configs, 3 rounds), plus 3 A/A trials" in result.stdout
    assert "batch_size=4 num_workers=0  (baseline)" in result.stdout
    assert {path.name for path in place.iterdir()} == {"s.yaml", "data"}


def test_check_imports_nothing_that_a_suite_names(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('imported')")
    (tmp_path / "s.yaml").write_text(
        "dataset: {kind: target, target: 'mine:make'}\nconsumer: {kind: target, target: 'mine:step'}\nsweep: {x: [1]}\n"
    )
    result = cli("check", "s.yaml")
    assert result.returncode == 0, result.stderr
    assert "mine:make" in result.stdout


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["-P", "num_worker=0"], 2, "did you mean num_workers?"),
        (["-P", "num_workers"], 2, "expected AXIS=V1,V2"),
        (["-P", "num_workers=0,[1"], 2, "-P num_workers=0,[1"),
        (["-P", "num_workers=many"], 2, "expected an integer"),
        (["-P", "num_workers=0", "-P", "num_workers=1"], 2, "num_workers was already given by -P num_workers=0"),
        (["--data", "~nobody_here/photos"], 5, "no such folder"),
        (["--rounds", "9" * 310], 2, "9: integer of more than 63 bits"),
        (["--data", "nowhere"], 5, "no such folder"),
        (["--data", ""], 2, "loaderbench: --data: expected a folder, got an empty string"),
        (["--data="], 2, "loaderbench: --data: expected a folder, got an empty string"),
        (["--data", "empty"], 5, "no images found"),
        (["--data", "s.yaml"], 5, "is a file"),
        (["--data", "a", "-P", "root=a,b"], 2, "--data a cannot be combined with -P root=a,b; remove one of them"),
    ],
)
@pytest.mark.parametrize("verb", ["check", "run"])
def test_a_wrong_call_is_one_line(cli: Cli, place: Path, verb: str, flags: list[str], code: int, words: str) -> None:
    (place / "empty").mkdir()
    quiet = ["-q"] if verb == "run" else []
    result = cli(verb, "s.yaml", *flags, *quiet)
    assert result.returncode == code
    assert words in one_line(result.stderr)
    assert not (place / "reports").exists() or not list((place / "reports").iterdir())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--rounds", "0"], "--rounds 0:"),
        (["--seconds", "-1"], "--seconds -1"),
        (["--seconds", "1e-40"], "--seconds 1e-40: expected a number between 1e-30 and 1e+30 in magnitude"),
        (["--budget", "soon"], "expected a duration"),
        (
            ["--strategy", "adaptiv"],
            "--strategy adaptiv: expected grid or adaptive, got 'adaptiv'; did you mean adaptive?",
        ),
        (["--out", "s.yaml/x"], "cannot write"),
        (["--out", "full"], "exists and is not empty"),
        (["--json", "no/such/folder.json"], "cannot write"),
    ],
)
def test_a_flag_of_run_that_cannot_be_is_one_line(cli: Cli, place: Path, flags: list[str], words: str) -> None:
    (place / "full").mkdir()
    (place / "full" / "x").touch()
    result = cli("run", "s.yaml", "-q", *flags)
    assert result.returncode == 2
    assert words in one_line(result.stderr)


@pytest.mark.parametrize("verb", ["run", "check"])
def test_a_wrong_suite_is_one_line_with_its_place(cli: Cli, tmp_path: Path, verb: str) -> None:
    (tmp_path / "s.yaml").write_text("measure:\n  rouds: 3\n")
    result = cli(verb, "s.yaml")
    assert result.returncode == 2
    assert "s.yaml:2:3: measure.rouds: unknown key; did you mean rounds?" in one_line(result.stderr)


def test_data_for_a_target_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("dataset: {kind: target, target: 'm:f'}")
    result = cli("check", "s.yaml", "--data", ".")
    assert (result.returncode, "takes no folder" in one_line(result.stderr)) == (2, True)


@pytest.mark.parametrize(
    "call", [["runn", "x"], ["run"], ["run", "x", "--no-such-flag"], ["run", "x", "--rounds", "three"], ["schema"]]
)
def test_a_call_that_cannot_be_parsed_is_one_line(cli: Cli, call: list[str]) -> None:
    result = cli(*call)
    assert result.returncode == 2
    assert one_line(result.stderr).startswith("loaderbench: ")
    assert "\\n" not in result.stderr


@pytest.mark.parametrize("flags", ["-m", "-qm", "-q -m"])
@pytest.mark.parametrize("verb", ["profile", "tune"])
def test_a_flag_without_its_module_is_one_line(cli: Cli, verb: str, flags: str) -> None:
    result = cli(verb, *flags.split())
    assert (result.returncode, "Option '-m' requires an argument" in one_line(result.stderr)) == (2, True)


def test_data_of_a_call_from_python_is_no_empty_string(place: Path) -> None:
    with pytest.raises(UsageError, match=r"^data: expected a folder, got an empty string$"):
        loaderbench.run(place / "s.yaml", data="", out=place / "out")
    assert not (place / "out").exists()


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").stdout.startswith("loaderbench 0.")


def test_a_signal_before_anything_was_measured_leaves_nothing(place: Path) -> None:
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        running = subprocess.Popen(
            [sys.executable, "-m", "loaderbench", "run", "s.yaml", "--out", "r"],
            cwd=place, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        while not psutil.Process(running.pid).children():
            time.sleep(0.05)
        os.killpg(running.pid, number)  # while the process that was started imports torch
        _, errors = running.communicate(timeout=200)
        assert running.returncode == code, errors
        assert "Traceback" not in errors
        assert not (place / "r").exists()


INTERRUPTED_TWICE = """
import atexit, os, signal
atexit.register(os.kill, os.getpid(), signal.SIGINT)
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt as error:
    raise ImportError("as libraries in C do") from error
"""


def test_ctrl_c_twice_while_the_command_is_imported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(INTERRUPTED_TWICE)
    as_in_a_terminal = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    found = subprocess.run(
        [sys.executable, "-c", f"{as_in_a_terminal}; from loaderbench.__main__ import main; main()"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (130, "loaderbench: interrupted\n")


@pytest.mark.parametrize("verb", ["show", "report"])
def test_a_run_that_is_none_is_one_line(cli: Cli, tmp_path: Path, verb: str) -> None:
    (tmp_path / "run.json").write_text("{}")
    for place in (".", "nowhere"):
        result = cli(verb, place)
        assert result.returncode == 2
        assert "run.json" in one_line(result.stderr) or "nowhere" in result.stderr


@pytest.mark.parametrize("kind", ["suite", "run"])
def test_the_schema_names_what_interfaces_rely_on(cli: Cli, kind: str) -> None:
    schema = json.loads(cli("schema", kind).stdout)
    wanted = {"suite": {"dataset", "sweep", "measure"}, "run": {"trials", "verdict", "best", "recommendations"}}
    assert wanted[kind] <= set(schema["properties"])


def test_photos_writes_a_folder_and_refuses_one_that_is_full(cli: Cli, tmp_path: Path) -> None:
    result = cli("photos", "made", "--images", "4", "--classes", "2", "--progress", "none")
    assert result.returncode == 0, result.stderr
    assert len(list((tmp_path / "made").rglob("*.jpg"))) == 4
    again = cli("photos", "made", "--images", "4", "--progress", "none")
    assert again.returncode == 2
    one_line(again.stderr)
    many = cli("photos", "many", "--images", "99999999999", "--progress", "none")
    assert (many.returncode, "--images" in one_line(many.stderr)) == (2, True)


def test_a_model_without_a_gpu_is_planned_as_with_one_and_cannot_be_run(cli: Cli, place: Path) -> None:
    from loaderbench.monitors import count_gpus

    if count_gpus():
        pytest.skip("there is a GPU")
    (place / "s.yaml").write_text(SUITE + "consumer: {kind: model}\n")
    planned = cli("check", "s.yaml")
    assert planned.returncode == 0, planned.stderr
    assert "This suite needs a GPU" in planned.stdout
    result = cli("run", "s.yaml")
    assert (result.returncode, "needs a CUDA device" in one_line(result.stderr)) == (5, True)


UNREADABLE = "n" * 300


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (["show", UNREADABLE], 2),
        (["report", UNREADABLE], 2),
        (["compare", UNREADABLE, UNREADABLE], 2),
        (["export", UNREADABLE, "--to", "csv", "--out", "x.csv"], 2),
        (["run", "s.yaml", "--resume", UNREADABLE], 2),
        (["run", "s.yaml", "--out", UNREADABLE], 2),
        (["photos", UNREADABLE], 2),
        (["profile", UNREADABLE], 2),
        (["check", "s.yaml", "--data", "~nobody-of-this-name/images"], 5),
        (["attach", "1", "--seconds", "nan"], 2),
        (["profile", "--seconds", "nan", "train.py"], 2),
    ],
)
def test_a_path_or_a_number_that_nothing_can_be_done_with_is_one_line(
    cli: Cli, place: Path, call: list[str], code: int
) -> None:
    found = cli(*call)
    assert found.returncode == code
    assert one_line(found.stderr).startswith("loaderbench: ")


@pytest.mark.parametrize("root", ["~nobody-of-this-name/images", "a\\0b"])
def test_a_root_that_cannot_be_is_one_line(cli: Cli, tmp_path: Path, root: str) -> None:
    (tmp_path / "s.yaml").write_text(f'dataset: {{root: "{root}"}}\n')
    found = cli("check", "s.yaml")
    assert found.returncode == 5
    one_line(found.stderr)


def test_a_name_that_stdout_cannot_hold_is_escaped(command: Cli, photos: Path) -> None:
    suite = photos.parent / "named.yaml"
    suite.write_text(f"name: \u0444\u043e\u0442\u043e\ndataset: {{root: '{photos}'}}\n", encoding="utf-8")
    found = command("check", suite, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (found.returncode, "\\u0444" in found.stdout) == (0, True), found.stderr


def test_data_takes_the_place_of_a_root_that_is_not_set(cli: Cli, place: Path) -> None:
    (place / "s.yaml").write_text("dataset: {root: '${NOT_SET_ANYWHERE}'}\nsweep: {threads: [1, 2]}\n")
    assert cli("check", "s.yaml", "--data", "data", "-P", "loader=threads").returncode == 0
    assert "environment variable NOT_SET_ANYWHERE is not set" in cli("check", "s.yaml").stderr
    (place / "s.yaml").write_text("sweep: {num_workers: ['${NOT_SET_ANYWHERE}']}\n")
    assert cli("check", "s.yaml", "-P", "num_workers=2").returncode == 0


def test_a_kind_that_is_no_word_is_one_line(cli: Cli, place: Path) -> None:
    (place / "s.yaml").write_text("dataset: {kind: [image_folder]}\n")
    found = cli("check", "s.yaml", "--data", "data")
    assert found.returncode == 2
    one_line(found.stderr)


def test_photos_fills_the_current_folder(cli: Cli, tmp_path: Path) -> None:
    assert cli("photos", ".", "--images", "4").returncode == 0
    assert len([*tmp_path.rglob("*.jpg")]) == 4


def test_a_command_to_paste_has_its_path_quoted(cli: Cli, place: Path) -> None:
    found = cli("init", "data", "--out", "my suite.yaml")
    assert "loaderbench run 'my suite.yaml'" in found.stdout
