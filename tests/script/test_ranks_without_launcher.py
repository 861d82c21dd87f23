"""Ranks that a script starts itself: with `torch.multiprocessing.spawn`, or as Lightning's launcher does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from saved_recordings import saved_at
from scripts import HEAD, profile, write

from loaderbench import ranks
from loaderbench.monitors.machine import other_ranks
from loaderbench.records import OnlyRank
from loaderbench.result import load
from loaderbench.script import tuning_ranks
from loaderbench.script.hosts import only_rank
from loaderbench.script.recorded_processes import begun_pids, note_begun, ranks_by_files, wait_for_last_saves
from loaderbench.script.recording import write_recordings
from loaderbench.script.tuning_ranks import (
    DONE,
    REFUSED,
    WITHOUT_BATCHES,
    all_take_batches,
    one_rank_tunes,
    shortest_step_s,
)

NAME = "train_loader"

STARTS_THE_OTHER = (
    HEAD
    + """\
import subprocess
from torch import distributed

torch.set_num_threads(1)
rank = int(os.environ.get("LOCAL_RANK", 0))
if not rank:  # rank 0 does not wait for the other one, which saves later
    place = dict(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1], WORLD_SIZE="2", NODE_RANK="0")
    os.environ.update(place)
    subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "LOCAL_RANK": "1"})
distributed.init_process_group("gloo", rank=rank, world_size=2)
total = torch.zeros(1)
for inputs, labels in DataLoader(Slow(400, 0.006), batch_size=8):
    distributed.all_reduce(total)
distributed.destroy_process_group()
time.sleep(3 * rank)
"""
)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.mark.slow
@pytest.mark.sleeping
def test_a_rank_that_nobody_waits_for_is_recorded_to_its_end_and_is_no_other_program(tmp_path: Path) -> None:
    write(tmp_path, STARTS_THE_OTHER)
    done = profile(tmp_path, "--out", "run", "--", sys.executable, "train.py", str(free_port()))
    assert done.returncode == 0, done.stderr
    assert "cannot save" not in done.stderr
    run = load(tmp_path / "run")
    assert run.record.only_rank is None
    assert [(one.rank, one.host) for one in run.ranks] == [(0, socket.gethostname()), (1, socket.gethostname())]
    for trial in run.record.trials:
        assert trial.batches == 40, "all but the warm-up"
        assert trial.machine is not None
        assert trial.machine.ranks == 2


@pytest.mark.slow
def test_a_rank_that_is_recorded_alone_does_not_speak_for_the_training(tmp_path: Path) -> None:
    write(tmp_path, STARTS_THE_OTHER)
    port = str(free_port())
    done = profile(tmp_path, "--out", "run", "train.py", port)
    assert done.returncode == 0, done.stderr
    run, command = load(tmp_path / "run"), f"loaderbench profile -- python train.py {port}"
    assert run.record.only_rank == OnlyRank(rank=0, ranks=2, command=command)
    assert run.verdict.confidence == "low"
    assert run.verdict.headline.startswith("in rank 0 of 2 alone: ")
    said = " ".join(done.stderr.split())
    assert f"only rank 0 of 2 was recorded, and another rank may hold it back; to record all: {command}" in said
    assert f"Next: Record all ranks: {command}" in said
    assert "Loader: rank 0: " in said


@pytest.mark.parametrize(
    ("environment", "launcher"),
    [
        ({"RANK": "1", "WORLD_SIZE": "4"}, "loaderbench profile -- torchrun ..."),
        (
            {"RANK": "1", "WORLD_SIZE": "4", "SLURM_PROCID": "1"},
            "srun --ntasks-per-node=1 loaderbench profile -- torchrun ...",
        ),
        ({"RANK": "1", "WORLD_SIZE": "4", "TORCHELASTIC_USE_AGENT_STORE": "True"}, None),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({}, None),
    ],
)
def test_a_rank_that_a_cluster_started_does_not_speak_for_the_training_either(
    environment: dict[str, str], launcher: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "TORCHELASTIC_USE_AGENT_STORE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(ranks._groups, os.getpid(), raising=False)
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", "--lr", "1"])
    expected = launcher and OnlyRank(rank=1, ranks=4, command=f"{launcher} train.py --lr 1")
    assert only_rank() == expected


@pytest.fixture
def in_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """This process is rank 0 of two, by its process group; the folder is that of their recordings."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(ranks._groups, os.getpid(), (0, 2))
    monkeypatch.setattr(ranks, "_finders", [ranks_by_files(tmp_path)])
    note_begun(tmp_path)
    return tmp_path


@pytest.fixture
def other_process(in_a_job: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has begun to record, next to this one."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        (in_a_job / f"{process.pid}.begun").touch()
        yield process
        process.kill()


def test_processes_that_record_are_the_other_ranks_until_they_end(
    in_a_job: Path, other_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert begun_pids(in_a_job) == sorted([os.getpid(), other_process.pid])
    assert other_ranks() == [other_process.pid]
    other_process.kill()
    other_process.wait()
    assert other_ranks() == []
    monkeypatch.delitem(ranks._groups, os.getpid())
    assert other_ranks() == []


def test_processes_without_a_group_are_other_programs(
    in_a_job: Path, other_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(ranks._groups, os.getpid())
    assert len(begun_pids(in_a_job)) == 2
    assert other_ranks() == []


def test_a_command_waits_for_a_last_save_or_the_end_of_the_process(
    in_a_job: Path, other_process: subprocess.Popen[bytes]
) -> None:
    (own,) = saved_at([6])
    write_recordings(in_a_job, [own], str(os.getpid()))
    assert own.has_ended is False
    assert wait_for_last_saves(in_a_job, 0.0) == 2
    for pid in (os.getpid(), other_process.pid):
        write_recordings(in_a_job, [replace(own, has_ended=True)], str(pid))
    assert wait_for_last_saves(in_a_job, 0.0) == 0


def test_rank_0_tunes_where_all_ranks_record_on_this_machine(
    in_a_job: Path, other_process: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    with one_rank_tunes(in_a_job) as tunes:
        assert tunes
        assert not (in_a_job / DONE).exists()
    assert (in_a_job / DONE).exists()
    assert other_process.pid
    assert "on several machines" not in capsys.readouterr().err


def test_ranks_of_which_one_is_elsewhere_are_not_tuned(in_a_job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with one_rank_tunes(in_a_job) as tunes:
        assert not tunes
    assert (in_a_job / REFUSED).exists()
    assert "ranks on several machines cannot be tuned" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("own_s", "other_s", "shortest_s"),
    [(0.003, 0.001, 0.001), (0.001, 0.003, 0.001), (None, 0.003, 0.003), (0.003, None, 0.003)],
)
def test_the_rank_that_waits_least_for_the_others_shows_how_long_a_step_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_s: float | None, other_s: float | None, shortest_s: float
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    (tmp_path / "step-of-rank-0").touch()
    monkeypatch.setenv("RANK", "1")
    assert shortest_step_s(tmp_path, other_s, NAME) == other_s
    monkeypatch.setenv("RANK", "0")
    assert shortest_step_s(tmp_path, own_s, NAME) == shortest_s


def test_rank_0_does_not_wait_forever_for_the_step_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_ranks, "PATIENCE_S", 0.0)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    assert shortest_step_s(tmp_path, 0.003, NAME) == 0.003
    monkeypatch.delenv("RANK")
    assert shortest_step_s(tmp_path, 0.003, NAME) == 0.003


@pytest.mark.parametrize("rank", [0, 1])
def test_a_job_of_which_a_rank_takes_no_batches_is_not_tuned_and_continues(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": f"{rank}"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tuning_ranks, "PATIENCE_S", 0.0)
    assert all_take_batches(tmp_path)
    assert shortest_step_s(tmp_path, 0.003, NAME) == 0.003
    assert not all_take_batches(tmp_path)
    with one_rank_tunes(tmp_path) as tunes:
        assert not tunes
    said = f"loaderbench: rank {1 - rank} took no batch of {NAME} within 0 s: not tuned; the script continues\n"
    assert capsys.readouterr().err == said


def test_a_rank_that_waits_for_rank_0_continues_if_another_was_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    missed = threading.Timer(0.3, (tmp_path / WITHOUT_BATCHES).touch)
    missed.start()
    with one_rank_tunes(tmp_path) as tunes:
        assert not tunes
    assert not all_take_batches(tmp_path)
    missed.join()


def test_rank_0_waits_for_no_step_of_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_ranks, "time", None)  # waiting would raise
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    assert shortest_step_s(tmp_path, 0.003, NAME) == 0.003
