"""Copies of a process that uses OpenMP, workers and pipes: they answer, and nothing of them stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

BEGIN = """\
import multiprocessing, os, signal, sys, time
import torch
from torch.utils.data import DataLoader
from loaderbench.runner.forking import ForkingServer
from loaderbench.tuning.forked import call_in_copy

numbers = torch.randn(900, 900)
def compute(): return float((numbers + numbers).sum() + (numbers @ numbers).sum())
def answer(pipe): pipe.send((compute(), os.getppid()))
def wait(pipe): pipe.send(os.getpid()); time.sleep(1000)
def fail(): raise ValueError("planted")
compute()  # OpenMP now has threads, which no copy has
"""


ONE_AFTER_ANOTHER = """
    def ask(): return ForkingServer().ask(answer, timeout_s=60), os.getpid()
    (found, parent), copy = call_in_copy(ask).answer
    print(found == compute(), parent == copy, copy != os.getpid(), call_in_copy(compute).answer == compute())

    print("before", end=" ")  # in a buffer that the copy must not write again
    print(call_in_copy(fail).raised)
    print(call_in_copy(lambda: os.kill(os.getpid(), 9)).raised)
    print(call_in_copy(lambda: sys.exit(3)).raised)

    loader = DataLoader(list(range(400)), batch_size=4, num_workers=2, persistent_workers=True)
    epoch = iter(loader)
    found = [next(epoch)]
    print(call_in_copy(lambda: ForkingServer().ask(answer, timeout_s=60) is not None).answer, end=" ")
    found += list(epoch)
    print(torch.cat(found).tolist() == list(range(400)), len(list(loader)))
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a program of its own: pytest's process is not to be copied."""
    place = tmp_path_factory.mktemp("copied")
    (place / "program.py").write_text(f"{BEGIN}\nif __name__ == '__main__':\n{ONE_AFTER_ANOTHER}")
    temporary = place / "t"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=place,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(temporary.glob("loaderbench-*"))
    return done.stdout.splitlines()


def test_a_copy_computes_with_threads_and_so_do_its_own_copies(printed: list[str]) -> None:
    assert printed[0].split() == ["True"] * 4


def test_what_a_copy_raises_is_a_line_and_the_process_goes_on(printed: list[str]) -> None:
    said = printed[1:4]
    assert said == ["before ValueError: planted", "the process that tunes was killed", "SystemExit: 3"]


def test_an_epoch_that_is_under_way_is_whole_afterwards(printed: list[str]) -> None:
    assert printed[4].split() == ["True", "True", "100"]
    assert len(printed) == 5


@pytest.mark.parametrize("number", [pytest.param(9, marks=pytest.mark.slow), 15])
def test_a_copy_and_its_copies_end_with_the_process(tmp_path: Path, number: int) -> None:
    text = f"""
    def begin():
        server = ForkingServer()
        for _ in range(2):
            ours, theirs = server.pipe()
            server.start(wait, theirs)
            print(ours.recv(), file=sys.stderr, flush=True)
        os.kill(os.getppid(), {number})
        time.sleep(1000)
    call_in_copy(begin)
"""
    (tmp_path / "program.py").write_text(f"{BEGIN}\nif __name__ == '__main__':\n" + text)
    program = subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert program.stderr is not None
    pids = [int(program.stderr.readline()) for _ in range(2)]
    assert program.wait(60) == -number
    deadline = time.monotonic() + 20
    while any(map(lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(lives, pids))


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
