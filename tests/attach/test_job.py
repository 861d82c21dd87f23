"""The processes of a training, found from any one of them: real processes, named as torch names them."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loaderbench.attach import job
from loaderbench.attach.job import WORKER_THREAD, Training, find_trainings
from loaderbench.errors import UsageError
from loaderbench.monitors import proc
from loaderbench.monitors.machine import is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="attach needs Linux")

WAITS = "import time; print('ready', flush=True); time.sleep(60)"
WITH_WORKERS = f"""
import os, sys, time
named = sys.argv[1] == "named"
told, tells = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        if named:
            with open("/proc/self/comm", "w") as comm:
                comm.write("{WORKER_THREAD}")
        os.write(tells, b"x")
        time.sleep(60)
for _ in range(2):
    os.read(told, 1)
print("ready", flush=True)
time.sleep(60)
"""
LAUNCHER = f"""
import os, subprocess, sys, time
for rank in (1, 0):
    environment = {{**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}}
    subprocess.Popen([sys.executable, "-c", {WITH_WORKERS!r}, "named"], env=environment, stdout=subprocess.DEVNULL)
time.sleep(1)
print("ready", flush=True)
time.sleep(60)
"""

Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program in a session of its own, and ends all of it."""
    running: list[subprocess.Popen[str]] = []

    def started(*command: str) -> int:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process.pid

    yield started
    for process in running:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.communicate()


@pytest.mark.parametrize("named", ["named", "unnamed"])
def test_workers_lead_to_their_training(start: Start, named: str) -> None:
    pid = start(sys.executable, "-c", WITH_WORKERS, named)
    (training,) = find_trainings(pid)
    assert (training.pid, training.rank) == (pid, None)
    assert len(training.workers()) == 2
    if named == "named":
        assert [one.pid for one in find_trainings(training.workers()[0])] == [pid]


def test_workers_of_a_script_in_a_folder_of_our_name_are_found(start: Start) -> None:
    pid = start(sys.executable, "-c", WITH_WORKERS, "unnamed", "loaderbench/train.py")
    (training,) = find_trainings(pid)
    assert len(training.workers()) == 2


def test_any_process_of_a_job_leads_to_all_its_ranks(start: Start) -> None:
    launcher = start(sys.executable, "-c", LAUNCHER)
    ranks = find_trainings(launcher)
    assert [one.rank for one in ranks] == [0, 1]
    assert str(ranks[1]).startswith(f"rank 1 of 2, process {ranks[1].pid}: {sys.executable} -c")
    deadline = time.monotonic() + 20
    while not (workers := ranks[1].workers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in (ranks[0].pid, ranks[1].pid, workers[0]):
        assert [one.pid for one in find_trainings(pid)] == [one.pid for one in ranks]


def test_a_rank_may_have_a_shell_script_around_it(start: Start) -> None:
    """As `torchrun --no-python ./wrapper.sh train.py` starts it."""
    wrapped = LAUNCHER.replace("[sys.executable,", "['sh', '-c', '\"$@\"; true', 'wrapper', sys.executable,")
    launcher = start(sys.executable, "-c", wrapped)
    ranks = find_trainings(launcher)
    assert [one.rank for one in ranks] == [0, 1]
    assert all("wrapper" not in one.command for one in ranks)
    assert [one.pid for one in find_trainings(ranks[1].pid)] == [one.pid for one in ranks]


def test_a_shell_leads_to_the_python_below_it(start: Start) -> None:
    shell = start("sh", "-c", f'{sys.executable} -c "{WAITS}"; true')
    (training,) = find_trainings(shell)
    assert training.pid != shell
    assert "print" in training.command


def test_of_several_trainings_below_a_shell_one_has_to_be_chosen(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the first process of a container."""
    monkeypatch.setattr(job, "_uses_torch", job.is_python)
    both = " & ".join(f'{sys.executable} -c "{WAITS}" {name} >/dev/null' for name in ("one", "two"))
    shell = start("sh", "-c", f"{both} & echo ready; wait")
    while sum(map(job.is_python, pids := proc.process_tree(shell)[1:])) < 2:
        time.sleep(0.01)
    with pytest.raises(UsageError) as found:
        find_trainings(shell)
    assert str(found.value).startswith(f"process {shell} (sh) started several trainings; pass the PID of one: ")
    assert all(f"{pid} ({job.command_of(pid)})" in str(found.value) for pid in pids)
    assert [one.pid for one in find_trainings(pids[0])] == [pids[0]]


def test_what_is_no_training_is_one_line(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"no process 4194305 on this machine"):
        find_trainings(2**22 + 1)
    with pytest.raises(UsageError, match=r"is this command"):
        find_trainings(os.getpid())
    shell = start("sh", "-c", "echo ready; read x; sleep 60 & wait")
    with pytest.raises(UsageError, match=r"\(sh\) is not Python and has no Python child"):
        find_trainings(shell)
    monkeypatch.setattr(job.os, "geteuid", lambda: 12345)
    with pytest.raises(UsageError, match=r"belongs to user .*; run attach as that user, or as root"):
        find_trainings(shell)


def test_a_zombie_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        while Path(f"/proc/{process.pid}/stat").read_text().split(") ")[-1][0] != "Z":
            time.sleep(0.01)
        with pytest.raises(UsageError, match=r"has ended"):
            find_trainings(process.pid)
        assert not is_alive(process.pid)


def test_a_training_that_is_stopped_has_to_continue_first(start: Start) -> None:
    pid = start(sys.executable, "-c", WAITS)
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    with pytest.raises(UsageError, match=rf"process {pid} is stopped, .*; continue it: kill -CONT {pid}"):
        find_trainings(pid)
    os.kill(pid, signal.SIGCONT)
    assert [one.pid for one in find_trainings(pid)] == [pid]


def test_a_process_that_is_gone_has_nothing() -> None:
    gone = 2**22 + 1
    assert (job.parent_of(gone), job.rank_of(gone), job.command_of(gone)) == (0, None, "")
    assert not job.is_python(gone)
    assert str(Training(gone, "python train.py")) == f"process {gone}: python train.py"


@pytest.mark.slow
def test_a_launcher_that_uses_torch_itself_is_not_the_training(start: Start, tmp_path: Path) -> None:
    """`accelerate launch` imports torch, and sets no rank for one process."""
    training, launcher = tmp_path / "train.py", tmp_path / "accelerate"
    training.write_text("import torch, time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    launcher.write_text("import subprocess, sys, torch\nsubprocess.run([sys.executable, *sys.argv[2:]])\n")
    (found,) = find_trainings(start(sys.executable, str(launcher), "launch", str(training), "deepspeed"))
    assert found.command == f"{sys.executable} {training} deepspeed"


CLUSTER = f"""
import os, subprocess, sys, time
for rank in (3, 2):
    environment = {{**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank - 2)}}
    one = subprocess.Popen([sys.executable, "-c", {WAITS!r}], env=environment, stdout=subprocess.PIPE)
    one.stdout.readline()
print("ready", flush=True)
time.sleep(60)
"""


def test_a_rank_that_a_cluster_gives_to_the_launcher_is_none(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second machine of two, as Kubeflow's PyTorchJob starts torchrun."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    launcher = start(sys.executable, "-c", CLUSTER)
    ranks = find_trainings(launcher)
    assert [(one.rank, one.ranks) for one in ranks] == [(2, 4), (3, 4)]
    assert launcher not in [one.pid for one in ranks]
    assert str(ranks[1]).startswith("rank 3 of 4, process ")


SPAWNS = f"""
import subprocess, sys, time
started = [
    subprocess.Popen([sys.executable, "-c", {WITH_WORKERS!r}, "named"], stdout=subprocess.PIPE) for _ in range(2)
]
for one in started:
    one.stdout.readline()
print("ready", flush=True)
time.sleep(60)
"""


def test_a_script_that_starts_its_trainings_by_itself_is_none(start: Start) -> None:
    """As `torch.multiprocessing.spawn` does, whose ranks have none in their environment."""
    parent = start(sys.executable, "-c", SPAWNS)
    found = find_trainings(parent)
    assert len(found) == 2
    assert parent not in [one.pid for one in found]
    assert [len(one.workers()) for one in found] == [2, 2]


STARTS_ANOTHER_RANK = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {WITH_WORKERS!r}, "named"], stdout=subprocess.PIPE).stdout.readline()
{WITH_WORKERS}
"""


def test_workers_of_a_rank_that_another_has_started_are_its_own(start: Start) -> None:
    """As Lightning's launcher does."""
    first = start(sys.executable, "-c", STARTS_ANOTHER_RANK, "named")
    found = find_trainings(first)
    assert [one.pid == first for one in found] == [True, False]
    assert [len(one.workers()) for one in found] == [2, 2]


FORKSERVER = f"""
import multiprocessing, sys, time
def worker(pipe):
    with open("/proc/self/comm", "w") as comm:
        comm.write("{WORKER_THREAD}")
    pipe.send(1)
    time.sleep(60)
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    context.Process(target=worker, args=(theirs,), daemon=True).start()
    ours.recv()
    print("ready", flush=True)
    time.sleep(60)
"""


def test_workers_of_a_fork_server_lead_to_the_process_that_takes_their_batches(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKSERVER)
    pid = start(sys.executable, str(tmp_path / "train.py"))
    (training,) = find_trainings(pid)
    assert training.pid == pid
    (worker,) = training.workers()
    assert [one.pid for one in find_trainings(worker)] == [pid]


RANKS_OF_A_SERVER = FORKSERVER.replace(
    "def worker(pipe):", "def worker(pipe):\n    if os.fork():\n        time.sleep(60)", 1
).replace("import multiprocessing, sys, time", "import multiprocessing, os, sys, time", 1)


def test_a_training_that_a_fork_server_started_is_not_the_server(start: Start, tmp_path: Path) -> None:
    """It has the command of the server, and workers of its own."""
    (tmp_path / "train.py").write_text(RANKS_OF_A_SERVER)
    pid = start(sys.executable, str(tmp_path / "train.py"))
    (training,) = find_trainings(pid)
    (worker,) = training.workers()
    assert job.parent_of(worker) == training.pid
    assert "forkserver" in job.command_of(job.parent_of(training.pid))
    assert [one.pid for one in find_trainings(worker)] == [training.pid]


def test_two_jobs_of_a_launcher_are_not_one(start: Start) -> None:
    jobs = " & ".join(f"{sys.executable} -c {shlex.quote(LAUNCHER)} {name} >/dev/null" for name in ("one", "two"))
    shell = start("sh", "-c", f"{jobs} & echo ready; wait")
    while len(proc.process_tree(shell)) < 1 + 2 * 7:  # each with two ranks of two workers
        time.sleep(0.01)
    with pytest.raises(UsageError, match="started several trainings"):
        find_trainings(shell)
    one, _ = (pid for pid in proc.process_tree(shell) if job.parent_of(pid) == shell)
    assert [training.rank for training in find_trainings(one)] == [0, 1]


IN_A_THREAD = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); " + WAITS


def test_a_thread_leads_to_its_process(start: Start) -> None:
    """`htop` lists threads by default."""
    pid = start(sys.executable, "-c", IN_A_THREAD)
    threads = [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    assert len(threads) == 2
    assert {one.pid for thread in threads for one in find_trainings(thread)} == {pid}
