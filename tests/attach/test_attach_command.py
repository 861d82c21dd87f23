"""`loaderbench attach` on running trainings: what it says of each, and that it changes nothing in them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from command_line import in_process
from nvml_stub import NOT_SUPPORTED, StubNvml

from loaderbench.attach import watch
from loaderbench.attach.stacks import StackRecorder, py_spy
from loaderbench.result import load_concluded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="attach needs Linux")

TRAINING = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Waits(Dataset):
    def __init__(self, sample_s): self.sample_s = sample_s
    def __len__(self): return 4000
    def __getitem__(self, index):
        time.sleep(self.sample_s)  # as a slow disk
        return torch.zeros(8), index

if __name__ == "__main__":
    sample_s, step_s, workers = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    loader = DataLoader(Waits(sample_s), batch_size=8, num_workers=workers)
    while True:
        for batch in loader:
            print("step", flush=True)
            time.sleep(step_s)
"""

Training = Callable[..., "subprocess.Popen[str]"]
Seen = tuple[dict[str, Any], str]


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    """Starts a training, or finds it running, and returns once it has taken its first batch."""
    place = tmp_path_factory.mktemp("training")
    (place / "train.py").write_text(TRAINING)
    started: dict[tuple[float, float, int], subprocess.Popen[str]] = {}

    def start(sample_s: float, step_s: float, workers: int) -> subprocess.Popen[str]:
        found = started.get(key := (sample_s, step_s, workers))
        if found is None or found.poll() is not None:
            command = [sys.executable, "train.py", *map(str, key)]
            found = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True, start_new_session=True)
            started[key] = found
            assert found.stdout is not None
            assert found.stdout.readline() == "step\n"
        return found

    yield start
    for process in started.values():
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


WAITS = 0.005, 0.001, 1
LOADS_BY_ITSELF = 0.004, 0.01, 0


def attach(place: Path, pid: int, *flags: str, out: str = "seen") -> Seen:
    """The run that attaching to a process writes, and what it prints."""
    done = in_process("attach", str(pid), "--out", out, *flags, cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("loaderbench: watching process")
    assert done.stdout.startswith(("INPUT-BOUND", "COMPUTE-BOUND", "UNKNOWN"))
    found: dict[str, Any] = json.loads((place / out / "run.json").read_text())
    return found, done.stdout


@pytest.fixture(scope="module")
def waiting(training: Training, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Seen]:
    """A training whose loader waits as for a slow disk, seen for some seconds."""
    place, process = tmp_path_factory.mktemp("waiting"), training(0.005, 0.001, 2)
    seen = attach(place, process.pid, "--seconds", "5", "--md", "seen.md", "--junit", "seen.xml")
    assert process.poll() is None
    return place, seen


@pytest.mark.sleeping
def test_a_loader_that_waits_is_named_with_its_line(waiting: tuple[Path, Seen]) -> None:
    place, (found, said) = waiting
    assert (found["verdict"]["bound"], found["verdict"]["limit"]) == ("input", "storage_latency")
    assert "storage latency and bandwidth look alike from outside the process" in found["verdict"]["confidence_reasons"]
    (trial,) = found["trials"]
    assert trial["config"] == {"num_workers": 2}
    assert trial["data_wait_share"] > 0.6
    assert trial["samples_per_s"] is None
    assert "not visible from outside" in trial["not_measured"]["samples_per_s"]
    line = found["hotspots"][0]
    assert (line["file"], line["line"], line["function"]) == ("train.py", 9, "Waits.__getitem__")
    assert line["share"] > 0.8
    if sys.version_info >= (3, 11):  # py-spy knows the IDs of threads
        assert 0 <= trial["workers"]["sending_cpu_share"] <= trial["workers"]["other_threads_cpu_share"]
    assert "time.sleep(self.sample_s)" in said
    assert "as a slow disk" in (place / "seen" / "report.html").read_text()


@pytest.mark.sleeping
def test_a_saved_look_is_concluded_again_as_it_was(waiting: tuple[Path, Seen]) -> None:
    place, (found, _) = waiting
    saved = load_concluded(place / "seen")
    assert saved.verdict.headline == found["verdict"]["headline"]
    assert "Lines with the largest share of loading time" in (place / "seen.md").read_text()
    assert "Lines with the largest share of loading time" in str(saved)
    assert 'name="num_workers=2"' in (place / "seen.xml").read_text()


@pytest.mark.sleeping
def test_a_loader_that_keeps_up_is_not_blamed(training: Training, tmp_path: Path) -> None:
    process = training(0.0, 0.3, 1)
    found, said = attach(tmp_path, process.pid, "--seconds", "4")
    assert found["verdict"]["bound"] == "compute", said
    assert "Run complete" not in said
    assert found["trials"][0]["workers"]["blocked_on"]["queue"] > 0.5


@pytest.mark.slow
@pytest.mark.sleeping
def test_the_main_process_is_seen_to_load_by_itself(training: Training, tmp_path: Path) -> None:
    found, _ = attach(tmp_path, training(*LOADS_BY_ITSELF).pid, "--seconds", "4")
    assert (found["verdict"]["bound"], found["verdict"]["limit"]) == ("input", "storage_latency")
    assert found["trials"][0]["config"] == {"num_workers": 0}


@pytest.mark.slow
@pytest.mark.sleeping
def test_without_py_spy_the_kernel_tells_less_and_says_so(
    training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaderbench.attach.stacks.py_spy", lambda: None)
    known, unknown = (
        attach(tmp_path, training(*which).pid, "--seconds", "3", out=name)[0]
        for name, which in (("workers", WAITS), ("alone", LOADS_BY_ITSELF))
    )
    assert (known["verdict"]["bound"], known["verdict"]["confidence"]) == ("input", "low")
    assert any("py-spy is not installed" in note for note in known["notes"])
    assert unknown["verdict"]["bound"] == "unknown"
    assert (
        "no workers and no stacks, so loading and training look the same; py-spy is not installed"
        in unknown["verdict"]["headline"]
    )


@pytest.mark.slow
@pytest.mark.sleeping
def test_the_gpu_of_a_training_is_read(training: Training, tmp_path: Path, stub_nvml: StubNvml) -> None:
    process = training(*WAITS)
    stub_nvml.set({"process_pid@0": process.pid}, busy_percent=12)
    command = [sys.executable, "-m", "loaderbench", "attach", str(process.pid), "--out", "seen", "--seconds", "4"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **stub_nvml.environment}, timeout=120, check=True)
    found = json.loads((tmp_path / "seen" / "run.json").read_text())
    (gpu,) = found["trials"][0]["gpus"]
    assert gpu["utilization_percent"] == pytest.approx(12)
    assert len(found["environment"]["gpus"]) == 1


@pytest.mark.slow
@pytest.mark.sleeping
def test_what_was_seen_until_a_signal_or_the_end_is_shown(training: Training, tmp_path: Path) -> None:
    for name, what, code in (("stopped", signal.SIGINT, 130), ("terminated", signal.SIGTERM, 143), ("ended", None, 0)):
        process = training(*WAITS)
        command = [sys.executable, "-m", "loaderbench", "attach", str(process.pid), "--out", name, "--seconds", "60"]
        looking = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert looking.stderr is not None
        assert "watching process" in looking.stderr.readline()
        time.sleep(3)
        if what is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        else:
            looking.send_signal(what)
        shown, said = looking.communicate(timeout=60)
        assert looking.returncode == code, said
        assert "-BOUND" in shown or "UNKNOWN" in shown
        found = json.loads((tmp_path / name / "run.json").read_text())
        assert any("results until then are shown" in note for note in found["notes"]), found["notes"]
        assert found["trials"][0]["workers"]["count"] == 1


def test_a_py_spy_that_may_not_look_says_what_it_needs(tmp_path: Path) -> None:
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\necho 'Error: Permission Denied: Try again with elevated permissions' >&2; exit 1")
    program.chmod(0o755)
    recorder = StackRecorder(os.getpid(), 1, tmp_path, str(program))
    assert "kernel.yama.ptrace_scope=0" in recorder.stacks().why_not
    program.write_text("#!/bin/sh\necho 'Error: Failed to find python version' >&2; exit 1")
    recorder = StackRecorder(os.getpid(), 1, tmp_path, str(program))
    assert recorder.stacks().why_not == "py-spy: Failed to find python version"
    assert py_spy() is not None


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loaderbench", "attach", str(2**22 + 1)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == f"loaderbench: no process {2**22 + 1} on this machine, or in this container\n"
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_ends_at_once_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"], stdout=-1)
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"

    def end(_: float) -> None:
        process.kill()
        process.wait()

    monkeypatch.setattr(watch.time, "sleep", end)
    done = in_process("attach", str(process.pid), "--out", "seen", cwd=tmp_path)
    assert done.returncode == 3
    why = "ended before it could be read twice; attach while the training runs"
    assert done.stderr.splitlines()[-1] == f"loaderbench: process {process.pid} {why}"
    assert (tmp_path / "seen" / "run.json").exists()


def test_gpus_are_those_with_a_process_of_the_training(stub_nvml: StubNvml) -> None:
    stub_nvml.set({"process_pid@1": 4321}, gpus=3)
    code = "found, why = gpus_used_by({1, 4321}); show([[one.index for one in found], why])"
    assert stub_nvml.run_python(code) == [[1], ""]
    stub_nvml.set({"process_pid@1": 4321, "nvmlDeviceGetMemoryInfo": NOT_SUPPORTED}, gpus=3)
    shared = stub_nvml.run_python("(found,), why = gpus_used_by({4321}); show([found.index, found.memory_total_bytes])")
    assert shared == [1, psutil.virtual_memory().total]
    none = stub_nvml.run_python("show(gpus_used_by({7}))")
    assert none[0] == []
    assert "no GPU reports a process of the training" in none[1]
