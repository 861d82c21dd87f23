"""What is left of a process that was killed, and who takes it away."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from quick_server import quick_server

CLAIM = "from loaderbench.runner.scratch import claim_scratch; print(claim_scratch(), flush=True); input()"
TARGETS = """
import torch, torch.multiprocessing as mp
mp.set_sharing_strategy("file_system")

class Samples(torch.utils.data.Dataset):
    def __len__(self): return 1 << 20
    def __getitem__(self, index): return torch.zeros(10_000)

def samples(): return Samples()
"""
ASKED = """
import os, time
def wait(pipe):
    print(os.getpid(), flush=True)
    time.sleep(1000)
"""
IMPORTS_FOR_EVER = """
import ctypes, os, pathlib
(pathlib.Path(__file__).parents[1] / "importing").write_text(str(os.getpid()))
ctypes.PyDLL(None).sleep(1000)  # with the GIL, as a library is loaded
"""
WAITS_FOR_THE_DEATH_OF_ITS_PARENT = """
import os, pathlib, sys, time
if "forkserver" in sys.orig_argv[-1]:
    run = os.getppid()
    (pathlib.Path(__file__).parent / "started").write_text(str(os.getpid()))
    while os.getppid() == run:
        time.sleep(0.01)
"""
FORKED = """
import os
from loaderbench.errors import UsageError
from loaderbench.runner import TrialServer
TrialServer().warm_up()
if os.fork() == 0:
    try:
        TrialServer().warm_up()
    except UsageError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
TrialServer().warm_up()
"""
SUITE = """
dataset: {kind: target, target: 'lb_sharing:samples'}
sweep: {num_workers: [2], batch_size: [4]}
consumer: {kind: none}
measure: {seconds: 60, verify: false}
"""


def shared_files(pids: set[int]) -> list[Path]:
    """What processes hold in shared memory; torch puts the pid of the process into each name."""
    return [path for path in Path("/dev/shm").glob("torch_*_*") if int(path.name.split("_")[1]) in pids]


def wait_until(true: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def left_by_a_killed_run(place: Path, killed_when: Path) -> psutil.Process:
    """The fork server of a run that is killed as soon as the server has written its pid to this file."""
    (place / "torchvision").mkdir()
    (place / "torchvision" / "__init__.py").write_text(IMPORTS_FOR_EVER)
    code = "import time; from loaderbench.runner import TrialServer; TrialServer().warm_up(); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(place)}) as run:
        wait_until(lambda: killed_when.exists() and killed_when.read_text())
        server = psutil.Process(int(killed_when.read_text()))
        run.kill()
    return server


def claimed(tmp: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM],
        env={**os.environ, "TMPDIR": str(tmp)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_process_that_was_killed_is_removed_by_the_next_and_that_of_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    killed, left = claimed(tmp_path)
    living, held = claimed(tmp_path)
    killed.kill()
    killed.wait()
    assert left.is_dir()

    later, _ = claimed(tmp_path)
    assert not left.exists()
    assert held.is_dir()
    for process in (living, later):
        assert process.communicate("\n")[1] == ""
    assert list(tmp_path.iterdir()) == []


def test_where_a_socket_s_path_would_be_too_long_it_lies_in_a_shorter_place(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    process, folder = claimed(deep)
    assert folder.parent == Path("/tmp")
    process.communicate("\n")
    assert not folder.exists()


@pytest.mark.slow
def test_a_process_that_was_asked_ends_with_whoever_asked(tmp_path: Path) -> None:
    (tmp_path / "lb_asked.py").write_text(ASKED)
    ask = "import lb_asked; from loaderbench.runner import TrialServer as S; S().ask(lb_asked.wait, timeout_s=1000)"
    command, environment = [sys.executable, "-c", ask], quick_server(tmp_path)
    asking = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    assert asking.stderr is not None
    asked = psutil.Process(int(asking.stderr.readline()))  # stdout has results only
    asking.kill()
    asking.wait()
    assert psutil.wait_procs([asked], timeout=30)[1] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_fork_server_that_still_imports_ends_with_the_run_that_is_killed(tmp_path: Path) -> None:
    """Python's own server looks for its parent only after its imports, which take long on a busy machine."""
    server = left_by_a_killed_run(tmp_path, killed_when=tmp_path / "importing")
    assert psutil.wait_procs([server], timeout=120)[1] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_server_whose_run_is_killed_before_its_first_instruction_imports_nothing(tmp_path: Path) -> None:
    """The death of a parent that is gone already sends no signal."""
    (tmp_path / "sitecustomize.py").write_text(WAITS_FOR_THE_DEATH_OF_ITS_PARENT)
    server = left_by_a_killed_run(tmp_path, killed_when=tmp_path / "started")
    wait_until(lambda: not server.is_running())
    assert not (tmp_path / "importing").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_was_forked_from_one_with_a_server_is_told_that_it_can_start_nothing() -> None:
    found = subprocess.run([sys.executable, "-c", FORKED], check=True, capture_output=True, text=True, timeout=120)
    assert "cannot start trials in a process forked from one that ran loaderbench" in found.stdout


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm")
@pytest.mark.parametrize("killed", ["run", pytest.param("trial", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_shared_memory_and_processes_go_with_the_run_or_the_trial_that_is_killed(tmp_path: Path, killed: str) -> None:
    (tmp_path / "lb_sharing.py").write_text(TARGETS)
    (tmp_path / "s.yaml").write_text(SUITE)
    run = subprocess.Popen(
        [sys.executable, "-m", "loaderbench", "run", "s.yaml", "--rounds", "1", "--out", "r", "-q"], cwd=tmp_path
    )
    wait_until(lambda: trial_of(run) and len(shared_files(pids_of(run))) > 1)
    started = psutil.Process(run.pid).children(recursive=True)
    pids = {process.pid for process in started}
    if killed == "run":
        run.kill()
    else:
        psutil.Process(trial_of(run)).kill()
    run.wait(timeout=120)

    _, alive = psutil.wait_procs(started, timeout=30)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    wait_until(lambda: not shared_files(pids), 30)


def pids_of(run: subprocess.Popen[bytes]) -> set[int]:
    return {process.pid for process in psutil.Process(run.pid).children(recursive=True)}


def trial_of(run: subprocess.Popen[bytes]) -> int | None:
    """The pid of the trial under way: it heads a session of its own and has workers."""
    for process in psutil.Process(run.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):  # one that only answered a question has ended
            if os.getsid(process.pid) == process.pid and len(process.children()) >= 2:
                return process.pid
    return None
