"""Ctrl-C while the fork server starts is neither lost nor does it reach the server; one that dies is started anew."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest
from quick_server import quick_server

from loaderbench.runner import ForkServerKilledError, TrialServer, server

WHILE_IT_STARTS = """
import os, signal, sys, threading
from multiprocessing import forkserver, util
from loaderbench.runner import TrialServer

spawn, started = util.spawnv_passfds, []

def spawn_and_interrupt(path, args, fds):
    pid = spawn(path, args, fds)
    if "forkserver" in args[-1]:
        started.append(pid)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        os.kill(pid, signal.SIGINT)
    return pid

util.spawnv_passfds = spawn_and_interrupt
try:
    TrialServer().warm_up()
except KeyboardInterrupt:
    print("interrupted")
process = TrialServer().start(print, "a process", sys.version_info.major)
process.join()
print("exit code", process.exitcode, "of", len(started), "server")
"""
BEFORE_THE_ORDER_IS_SENT = """
from multiprocessing import popen_forkserver
from loaderbench.runner import TrialServer

connect = popen_forkserver.forkserver.connect_to_new_process

def connect_and_interrupt(fds):
    connect(fds)
    raise KeyboardInterrupt

popen_forkserver.forkserver.connect_to_new_process = connect_and_interrupt
try:
    TrialServer().start(print, "never")
except KeyboardInterrupt:
    print("interrupted")
"""


def run(script: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.slow
def test_ctrl_c_while_the_server_starts_reaches_this_process_and_not_the_server(tmp_path: Path) -> None:
    result = run(WHILE_IT_STARTS, quick_server(tmp_path))
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["interrupted", "a process 3", "exit code 0 of 1 server"]


def test_ctrl_c_before_a_process_has_its_target_leaves_no_traceback() -> None:
    result = run(BEFORE_THE_ORDER_IS_SENT)
    assert (result.stdout, result.stderr) == ("interrupted\n", "")


KILLED_BEFORE_IT_ANSWERS = """
import os, signal, threading, time
from multiprocessing import forkserver
from loaderbench.runner import TrialServer

server = TrialServer()
server.start(print).join()
pid = forkserver._forkserver._forkserver_pid
os.kill(pid, signal.SIGSTOP)
threading.Timer(1.0, os.kill, (pid, signal.SIGKILL)).start()
process = server.start(print, "a process")
process.join()
print("exit code", process.exitcode, "of another server:", forkserver._forkserver._forkserver_pid != pid)
"""


@pytest.mark.slow
def test_a_fork_server_that_is_killed_before_it_answers_is_started_anew(tmp_path: Path) -> None:
    done = run(KILLED_BEFORE_IT_ANSWERS, quick_server(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-3:-1] == ["a process", "exit code 0 of another server: True"]


@pytest.mark.parametrize("error", [EOFError, BrokenPipeError])
def test_a_second_fork_server_that_is_killed_is_an_error_of_its_own_and_no_answer(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    tried: list[object] = []

    def killed(_: TrialServer, *call: object) -> None:
        tried.append(call)
        raise error

    monkeypatch.setattr(TrialServer, "_start", killed)
    monkeypatch.setattr(TrialServer, "has_died", lambda _: True)
    with pytest.raises(ForkServerKilledError):
        TrialServer().start(print)
    assert len(tried) == 2
    assert TrialServer().ask(print, timeout_s=1.0) is None
    assert list(TrialServer().ask_each(print, timeout_s=1.0)) == []


def say(pipe: Connection, words: str) -> None:
    print(words, flush=True)
    os.system(f"echo a child says {words} >&2")
    pipe.send(len(words))


def test_what_a_question_prints_goes_to_its_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "question.log"
    assert TrialServer().ask(say, "hello", timeout_s=60.0, log=log) == 5
    assert log.read_text() == "hello\na child says hello\n"
    assert "hello" not in "".join(capfd.readouterr())


A_THREAD_OUTLIVES_THE_FIRST = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(100,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="this system tells no more than that a process is a zombie")
def test_a_fork_server_one_of_whose_threads_still_runs_is_not_dead_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", A_THREAD_OUTLIVES_THE_FIRST]) as dying:
        while psutil.Process(dying.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        monkeypatch.setattr(forkserver._forkserver, "_forkserver_pid", dying.pid)
        monkeypatch.setattr(server, "DYING_S", 0.1)
        assert not TrialServer().has_died()
        dying.kill()
        monkeypatch.undo()
        monkeypatch.setattr(forkserver._forkserver, "_forkserver_pid", dying.pid)
        assert TrialServer().has_died()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no safe path before 3.11")
def test_a_file_in_the_working_directory_does_not_hide_a_module_of_python(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('imported the file of the user')\n")
    program = tmp_path / "bin" / "program.py"
    program.parent.mkdir()
    program.write_text(
        "import os\n"
        "from loaderbench.runner import TrialServer\n"
        "process = TrialServer().start(os.system, 'echo safe path: $PYTHONSAFEPATH')\n"
        "process.join()\n"
        "print(process.exitcode, os.environ.get('PYTHONSAFEPATH'))\n"
    )
    environment = {name: value for name, value in quick_server(program.parent).items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("safe path:\n0 None\n", "")
