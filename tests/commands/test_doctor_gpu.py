"""`doctor` as a command, and with `--gpu`: without a GPU for real, and with checks that are played by a fake."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.environment.checkup import PackageHealth, look_at_packages
from loaderbench.errors import MissingError
from loaderbench.gpu_checkup.records import CheckState, GpuCheck
from loaderbench.monitors import count_gpus
from loaderbench.records import Gpu
from loaderbench.runner import TrialServer, gpu_checks

GPU = Gpu(0, "a", "NVIDIA Z1", 8 << 30)


@pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU")
def test_without_a_gpu_the_machine_is_checked_and_one_line_says_so(cli: Cli, tmp_path: Path) -> None:
    result = cli("doctor", "--gpu")
    assert result.returncode == 5
    assert "torch" in result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("loaderbench: no GPU to check: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--out", "x.json"), "--out needs --gpu"),
        (("--device", "cuda:1"), "--device needs --gpu"),
        (("--gpu", "--device", "gpu1"), "--device gpu1: expected cuda:N, e.g. cuda:1"),
    ],
)
def test_a_wrong_call_is_one_line(cli: Cli, flags: tuple[str, ...], said: str) -> None:
    result = cli("doctor", *flags)
    assert (result.returncode, result.stderr) == (2, f"loaderbench: {said}\n")


@pytest.fixture(scope="module")
def packages() -> PackageHealth:
    """What a process that imports them says of torch and the others; once, for it takes seconds."""
    return look_at_packages()


@pytest.fixture(autouse=True)
def looked_at_once(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr("loaderbench.environment.checkup.look_at_packages", lambda: request.getfixturevalue("packages"))


def test_doctor_looks_at_the_machine_line_by_line(cli: Cli) -> None:
    result = cli("doctor")
    assert result.returncode == 0, result.stdout
    for name in ("CPUs", "Shared memory", "Open files", "torch", "torchvision", "Pillow", "GPU"):
        assert any(line[:5].strip() in ("ok", "warn") and f" {name}: " in line for line in result.stdout.splitlines())


def plays(monkeypatch: pytest.MonkeyPatch, state: CheckState) -> None:
    def checks(*_: object) -> Iterator[GpuCheck]:
        yield GpuCheck(id="kernel", title="Kernel", state="passed", said="runs")
        yield GpuCheck(id="wait", title="Wait", state=state, said="22 ms, planted 20 ms")

    monkeypatch.setattr(gpu_checks, "find_gpu", lambda *_: GPU)
    monkeypatch.setattr(gpu_checks, "check_gpu", checks)


def test_checks_are_lines_and_a_file(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, "passed")
    result = cli("doctor", "--gpu")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "ok    cuda:0: NVIDIA Z1, 8.0 GiB" in lines
    assert "ok    Wait: 22 ms, planted 20 ms" in lines
    (file,) = tmp_path.glob("loaderbench-gpu-*.json")
    assert f"Wrote {file.name}; it names no path, user or host of this machine" in lines
    assert [check["id"] for check in json.loads(file.read_text())["checks"]] == ["kernel", "wait"]


def test_a_failed_check_is_exit_code_1_and_its_file_is_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plays(monkeypatch, "failed")
    result = cli("doctor", "--gpu", "--out", "x.json")
    assert result.returncode == 1
    assert result.stderr == "loaderbench: checks failed: Wait; please report it with x.json\n"
    assert json.loads((tmp_path / "x.json").read_text())["passed"] is False


def test_results_on_stdout_leave_the_lines_to_stderr(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, "passed")
    result = cli("doctor", "--gpu", "--out", "-")
    assert [check["id"] for check in json.loads(result.stdout)["checks"]] == ["kernel", "wait"]
    assert "ok    cuda:0: NVIDIA Z1, 8.0 GiB" in result.stderr.splitlines()
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_that_cuda_does_not_show_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = TrialServer()
    monkeypatch.setattr(server, "ask", lambda *_, **__: ((GPU,), {}))
    assert gpu_checks.find_gpu(server, 0) == GPU
    with pytest.raises(MissingError, match=r"no cuda:1 to check: CUDA shows 1, up to cuda:0"):
        gpu_checks.find_gpu(server, 1)


def test_gpus_that_the_driver_has_and_torch_does_not_find_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    server = TrialServer()
    monkeypatch.setattr(server, "ask", lambda *_, **__: ((), {"gpus": "driver too old"}))
    for of_driver, said in [
        (8, "torch finds none of the 8 that the driver has: driver too old; see"),
        (0, "driver too"),
    ]:
        monkeypatch.setattr(gpu_checks, "count_gpus", lambda count=of_driver: count)
        with pytest.raises(MissingError, match=f"no GPU to check: {said}"):
            gpu_checks.find_gpu(server, 0)


def kernel_then_crash(pipe: Connection, gpu: Gpu) -> None:
    pipe.send(GpuCheck(id="kernel", title="Kernel", state="passed", said="runs"))
    os._exit(1)


def kernel_then_hang(pipe: Connection, gpu: Gpu) -> None:
    pipe.send(GpuCheck(id="kernel", title="Kernel", state="passed", said="runs"))
    time.sleep(600)


@pytest.mark.parametrize(
    ("behaves", "said"),
    [
        (kernel_then_crash, "the checking process crashed after: Kernel"),
        (kernel_then_hang, "no answer for 5 s after: Kernel; the GPU or its driver hangs"),
    ],
)
def test_a_driver_that_crashes_or_hangs_is_a_failed_check(
    monkeypatch: pytest.MonkeyPatch, behaves: object, said: str
) -> None:
    monkeypatch.setattr(gpu_checks, "_answer_checks", behaves)
    monkeypatch.setattr(gpu_checks, "CHECKS_TIMEOUT_S", 5.0)
    server = TrialServer()
    server.ask(_nothing, timeout_s=60)  # the time of its start does not count as a hang of the driver
    found = list(gpu_checks.check_gpu(server, GPU))
    assert [(check.id, check.state) for check in found] == [("kernel", "passed"), ("process", "failed")]
    assert found[-1].said == said


def _nothing(pipe: Connection) -> None:
    pipe.send("started")
