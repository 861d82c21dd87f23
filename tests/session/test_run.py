"""A real run through the command: what it prints, writes and concludes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL_SUITE, Cli

import loaderbench as public
from loaderbench.errors import MissingError
from loaderbench.records import Verdict
from loaderbench.session import Listener

SmallRun = tuple[Path, "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(small_run: SmallRun) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((small_run[0] / "run.json").read_text())
    return found


def sweep(run: dict[str, Any]) -> list[dict[str, Any]]:
    """The trials that configurations are made of."""
    return [trial for trial in run["trials"] if trial["role"] == "sweep"]


def test_the_run_folder_holds_everything(small_run: SmallRun) -> None:
    folder, result = small_run
    assert result.returncode == 0, result.stderr
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "trials.jsonl", "timeline.parquet", "batches.parquet", "report.html", "logs",
    }  # fmt: skip


def test_the_result_is_on_stdout_and_progress_on_stderr(small_run: SmallRun) -> None:
    _, result = small_run
    assert "num_workers" in result.stdout
    assert "report.html" in result.stdout
    assert re.findall(r"\[Sweep (\d+)/9\] num_workers=", result.stderr) == [str(number) for number in range(1, 10)]
    isolated = re.findall(r"\[Isolation runs (\d+)/(\d+)\]", result.stderr)
    assert isolated[-1] in {("3", "3"), ("6", "6")}  # the best configuration decides which there are
    assert "almost done" in result.stderr
    provisional = re.findall(r"Provisional, after (.+?): (?:(?:INPUT|COMPUTE|TRANSFER)-BOUND|UNKNOWN)", result.stderr)
    assert provisional == ["round 1 of 3", "round 2 of 3", "the sweep"]
    assert "Provisional" not in result.stdout
    assert "\x1b" not in result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert "leaked" not in result.stderr


def test_a_report_exists_after_the_first_round_and_says_that_it_is_provisional(photos: Path, tmp_path: Path) -> None:
    pages = list[str]()

    class Reads(Listener):
        def verdict_so_far(self, verdict: Verdict, after: str, report: Path) -> None:
            pages.append(report.read_text())
            assert str(verdict).partition(" ")[0] in ("INPUT-BOUND", "COMPUTE-BOUND", "UNKNOWN"), after

    (tmp_path / "s.yaml").write_text(
        f"name: s\ndataset: {{kind: image_folder, root: {photos}}}\nsweep: {{batch_size: [4], num_workers: [0]}}\n"
        "measure: {rounds: 2, seconds: 0.05, verify: false}\n"
    )
    done = public.run(tmp_path / "s.yaml", out=tmp_path / "run", listener=Reads())
    assert len(pages) == 2
    assert all("provisional" in page for page in pages)
    last = (tmp_path / "run" / "report.html").read_text()
    assert "provisional" not in last
    assert done.complete
    assert not done.in_progress


def test_run_json_has_the_shape_that_others_rely_on(run: dict[str, Any]) -> None:
    assert run["schema_version"] == 2
    assert run["complete"] is True
    for name in ("suite", "environment", "started_at", "finished_at", "trials", "configurations", "best", "baseline",
                 "ceiling", "verdict", "recommendations", "overhead", "warnings"):  # fmt: skip
        assert name in run
        assert run[name] is not None or name in run["not_measured"]
    assert run["environment"]["cpus_allotted"] > 0
    assert len(sweep(run)) == len(run["configurations"]) * 3 == 6
    assert {trial["status"] for trial in run["trials"]} == {"completed"}
    assert run["verdict"]["bound"] in ("input", "compute", "transfer", "unknown")


def test_every_null_of_a_trial_has_its_reason(run: dict[str, Any]) -> None:
    for trial in run["trials"]:
        silent = {name for name, value in trial.items() if value is None} - set(trial["not_measured"])
        assert silent <= {"failure", "freed", "isolation", "rank", "rank_wait_share", "side", "slowest_rank"}


def test_intervals_hold_their_estimates(run: dict[str, Any]) -> None:
    for configuration in run["configurations"]:
        rate = configuration["samples_per_s"]
        assert rate["lo"] <= rate["est"] <= rate["hi"]
        assert 0 <= configuration["data_wait_share"]["est"] <= 1
        assert len(configuration["trials"]) == 3
    assert run["best"]["config"] in [configuration["config"] for configuration in run["configurations"]]


def test_the_order_is_shuffled_within_rounds_and_each_round_is_whole(run: dict[str, Any]) -> None:
    rounds = [trial["round"] for trial in sweep(run)]
    assert rounds == sorted(rounds)
    for number in (1, 2, 3):
        configs = [str(trial["config"]) for trial in sweep(run) if trial["round"] == number]
        assert len(set(configs)) == 2


@pytest.mark.skipif(bool(__import__("loaderbench.monitors").monitors.count_gpus()), reason="there is an accelerator")
def test_pinning_collapsed_and_the_page_says_why(small_run: SmallRun, run: dict[str, Any]) -> None:
    assert {trial["config"]["pin_memory"] for trial in run["trials"]} == {False}
    assert "without a GPU" in run["plan"]["collapsed"]["pin_memory"]
    assert run["plan"]["collapsed"]["pin_memory"].split(",")[0] in (small_run[0] / "report.html").read_text()
    assert run["environment"]["gpus"] == []
    assert run["trials"][0]["gpus"] == []


def test_the_noise_of_the_machine_is_measured_beside(run: dict[str, Any]) -> None:
    assert run["noise"]["reference_decode_spread"] >= 1
    assert run["noise"]["aa_difference"]["est"] > 0
    assert sum(trial["role"] == "twin" for trial in run["trials"]) == 3
    assert run["overhead"]["per_batch_s"] < 1e-3


def test_the_copy_is_the_same_json(small_run: SmallRun, run: dict[str, Any]) -> None:
    assert json.loads((small_run[0].parent / "copy.json").read_text()) == run


def test_a_run_loads_into_data_frames(small_run: SmallRun, run: dict[str, Any]) -> None:
    loaded = public.load(small_run[0])
    frame = loaded.to_dataframe()
    swept = [trial for trial in run["trials"] if trial["role"] == "sweep"]
    assert len(swept) < len(run["trials"])
    assert list(frame["num_workers"]) == [trial["config"]["num_workers"] for trial in swept]
    assert frame["samples_per_s"].min() > 0
    assert set(loaded.timeline_to_dataframe()["metric"]) >= {"cpu_percent_of_allotted", "data_wait_s"}
    assert loaded.verdict.headline == run["verdict"]["headline"]
    assert loaded.to_dict() == run


def test_a_saved_run_is_shown_and_redrawn_without_measuring(cli: Cli, small_run: SmallRun, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(small_run[0], folder)
    (folder / "report.html").unlink()
    shown = cli("show", folder)
    assert shown.returncode == 0
    assert json.loads((folder / "run.json").read_text())["verdict"]["headline"] in shown.stdout
    redrawn = cli("report", folder / "run.json")
    assert redrawn.returncode == 0, redrawn.stderr
    assert (folder / "report.html").read_text() == (small_run[0] / "report.html").read_text()


def test_json_on_stdout_is_json_and_nothing_else(cli: Cli, photos: Path) -> None:
    Path(photos.parent / "s.yaml").write_text(SMALL_SUITE)
    flags = ("--rounds", "1", "--seconds", "0.1", "-P", "num_workers=0", "-P", "pin_memory=false")
    result = cli("run", photos.parent / "s.yaml", *flags, "--out", "r", "--json", "-")
    run = json.loads(result.stdout)
    assert result.returncode == 0
    assert len(sweep(run)) == 1
    assert run["best"] is None
    assert "only 1 round" in run["not_measured"]["best"]
    assert run["suite"]["measure"]["rounds"] == 1


def test_a_corrupt_image_fails_its_trials_and_names_its_path(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data" / "a").mkdir(parents=True)
    (tmp_path / "data" / "a" / "bad.jpg").write_bytes(b"no JPEG at all")
    (tmp_path / "s.yaml").write_text(
        "dataset: {root: data}\nsweep: {num_workers: [0, 1]}\nmeasure: {rounds: 1, seconds: 0.1, verify: false}"
    )
    result = cli("run", "s.yaml", "--out", "r")
    run = json.loads((tmp_path / "r" / "run.json").read_text())
    assert result.returncode == 3
    assert run["complete"] is True
    assert [trial["failure"]["kind"] for trial in run["trials"]] == ["bad_image", "bad_image"]
    assert all("bad.jpg" in trial["failure"]["message"] for trial in run["trials"])
    assert "bad_image" in result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "r" / "report.html").is_file()


def test_a_crashing_configuration_leaves_the_others_untouched(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os\n\ndef make(mood):\n    if mood == 'bad': os.abort()\n    return ([0] * 4 for _ in range(10**6))\n"
    )
    (tmp_path / "s.yaml").write_text(
        "dataset: {kind: target, target: 'mine:make'}\nsweep: {mood: [good, bad]}\n"
        "consumer: {kind: none}\nmeasure: {rounds: 1, seconds: 0.1, verify: false}\n"
    )
    result = cli("run", "s.yaml", "--out", "r")
    run = json.loads((tmp_path / "r" / "run.json").read_text())
    assert result.returncode == 0, result.stderr
    found = {trial["config"]["mood"]: trial for trial in run["trials"]}
    assert found["good"]["status"] == "completed"
    assert found["bad"]["failure"]["kind"] == "process_crashed"
    assert any("process_crashed" in warning for warning in run["warnings"])


def test_a_decoder_without_its_package_is_told_before_anything_is_measured(
    photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(f"dataset: {{root: {photos}}}\nsweep: {{decoder: [pillow, simplejpeg]}}\n")
    monkeypatch.setattr("loaderbench.datasets.image_folder.find_spec", lambda _: None)
    with pytest.raises(MissingError, match="uv pip install simplejpeg"):
        public.run(tmp_path / "s.yaml", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_target_that_is_not_there_is_told_before_anything_is_measured(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def make_dataset(): ...\n")
    (tmp_path / "s.yaml").write_text("dataset: {kind: target, target: 'mine:make_datset'}")
    result = cli("run", "s.yaml", "-q", "--out", "r")
    assert result.returncode == 5
    assert result.stderr == (
        "loaderbench: s.yaml:1:33: dataset.target: target mine:make_datset: mine.py has no make_datset; "
        "did you mean make_dataset?\n"
    )
    assert not (tmp_path / "r").exists()


def test_rounds_end_when_every_trial_of_the_first_failed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def make(): raise ValueError('planted\\nsecond line')\n")
    (tmp_path / "s.yaml").write_text("dataset: {kind: target, target: 'mine:make'}\nmeasure: {rounds: 9}\n")
    result = cli("run", "s.yaml", "-q", "--out", "r")
    assert result.returncode == 3
    assert "ValueError: planted" in result.stderr
    assert len(sweep(json.loads((tmp_path / "r" / "run.json").read_text()))) == 1


def test_a_file_name_that_is_no_unicode_loses_nothing(cli: Cli, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/data/caf\xe9"
    os.makedirs(folder)  # noqa: PTH103 - pathlib has no bytes
    with open(folder + b"/caf\xe9.jpg", "wb") as file:  # noqa: PTH123
        file.write(b"no JPEG")
    (tmp_path / "s.yaml").write_text("dataset: {root: data}\nmeasure: {rounds: 1, seconds: 0.1, verify: false}\n")
    result = cli("run", "s.yaml", "--out", "r")
    assert result.returncode == 3, result.stderr
    assert json.loads((tmp_path / "r" / "run.json").read_text())["trials"][0]["failure"]["kind"] == "bad_image"
    assert (tmp_path / "r" / "report.html").is_file()


def test_a_budget_ends_the_run_and_says_so(cli: Cli, photos: Path) -> None:
    Path(photos.parent / "s.yaml").write_text(SMALL_SUITE)
    result = cli("run", photos.parent / "s.yaml", "--budget", "3s", "--seconds", "1", "--out", "r", "--json", "-")
    run = json.loads(result.stdout)
    assert run["complete"] is False
    assert len(run["trials"]) < 6
    assert any("budget" in note for note in run["notes"])


@pytest.mark.slow
def test_a_program_is_interrupted_by_ctrl_c_after_its_run_was_written(photos: Path, tmp_path: Path) -> None:
    (photos.parent / "s.yaml").write_text(SMALL_SUITE)
    (tmp_path / "p.py").write_text(f"import loaderbench\nloaderbench.run({str(photos.parent / 's.yaml')!r}, out='r')\n")
    running = subprocess.Popen([sys.executable, "p.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for_trials(tmp_path / "r" / "trials.jsonl", 1)
    os.kill(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert "KeyboardInterrupt: results so far: r" in errors
    assert json.loads((tmp_path / "r" / "run.json").read_text())["complete"] is False


def wait_for_trials(file: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while not (file.is_file() and file.read_text().count("\n") >= count) and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.slow
def test_a_second_ctrl_c_while_the_page_is_drawn_loses_nothing(photos: Path, tmp_path: Path) -> None:
    (photos.parent / "s.yaml").write_text(SMALL_SUITE)
    command = [sys.executable, "-m", "loaderbench", "run", str(photos.parent / "s.yaml"), "--out", str(tmp_path / "r")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_trials(tmp_path / "r" / "trials.jsonl", 9)
    for _ in range(20):
        if running.poll() is not None or not is_provisional(tmp_path / "r" / "report.html"):
            break
        os.kill(running.pid, signal.SIGINT)
        time.sleep(0.05)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert len(sweep(json.loads((tmp_path / "r" / "run.json").read_text()))) == 6
    assert (tmp_path / "r" / "report.html").is_file()


def is_provisional(report: Path) -> bool:
    return not report.is_file() or "provisional: " in report.read_text()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_a_signal_keeps_what_was_measured(photos: Path, tmp_path: Path, number: int, code: int) -> None:
    (photos.parent / "s.yaml").write_text(SMALL_SUITE)
    command = [sys.executable, "-m", "loaderbench", "run", str(photos.parent / "s.yaml"), "--out", str(tmp_path / "r")]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for_trials(tmp_path / "r" / "trials.jsonl", 2)
    os.kill(running.pid, number)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == code, errors
    run = json.loads((tmp_path / "r" / "run.json").read_text())
    assert run["complete"] is False
    assert len(run["trials"]) >= 2
    assert (tmp_path / "r" / "report.html").is_file()
    assert "Traceback" not in errors


def test_transforms_of_the_user_s_own_are_functions_of_an_image_classes_or_what_makes_them(
    cli: Cli, photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "def small(image): return torch.zeros(3, 8, 8)\n"
        "def made(): return small\n"
        "class Recipe:\n"
        "    def __init__(self, size=8): self.size = size\n"
        "    def __call__(self, image): return torch.zeros(3, self.size, self.size)\n"
    )
    (tmp_path / "s.yaml").write_text(
        f"dataset: {{root: {photos}}}\nloader: {{batch_size: 4}}\nconsumer: {{kind: none}}\n"
        "sweep: {transform: ['mine:small', 'mine:made', 'mine:Recipe']}\n"
        "measure: {rounds: 1, seconds: 0.1, verify: false}\n"
    )
    result = cli("run", "s.yaml", "--out", "r", "-q")
    assert result.returncode == 0, result.stderr
    trials = json.loads((tmp_path / "r" / "run.json").read_text())["trials"]
    assert [trial["status"] for trial in trials] == ["completed"] * 3
