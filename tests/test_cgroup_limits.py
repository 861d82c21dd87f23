"""Limits of a container, set for real where this machine lets a test make a control group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loaderbench.store import read_run

TARGETS = """
import torch
KEPT = []
class Hungry(torch.utils.data.Dataset):
    def __len__(self): return 4096
    def __getitem__(self, index):
        if torch.utils.data.get_worker_info(): KEPT.append(bytearray(b"x" * (100 << 20)))
        return torch.zeros(3)
def hungry(): return Hungry()
"""
SUITE = """
dataset: {kind: target, target: "lb_hungry:hungry"}
sweep: {num_workers: [0, 1], batch_size: [8, 16]}
consumer: {kind: none}
measure: {rounds: 1, seconds: 0.1, verify: false}
"""
LIMIT_BYTES = 1 << 31
Grouped = Callable[..., "subprocess.CompletedProcess[str]"]


def write_limit(controller: str, files: dict[str, str]) -> Path:
    """A group below this process's own with these limits, in version 1 or 2; skips where none can be made."""
    for mount in (Path("/sys/fs/cgroup") / controller, Path("/sys/fs/cgroup")):
        group = mount / f"loaderbench-test-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            found = [(group / name, text) for name, text in files.items() if (group / name).exists()]
            for file, text in found:
                file.write_text(text)
            if found:
                return group
            group.rmdir()
    pytest.skip(f"no right to make a control group with {controller}")


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[Grouped]:
    """Runs a command in a group with the limits that are given."""
    made: list[Path] = []

    def run(controller: str, files: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
        made.append(write_limit(controller, files))
        enter = f'echo $$ > {made[-1]}/cgroup.procs && exec "$@"'
        whole = ["sh", "-c", enter, "sh", sys.executable, "-m", "loaderbench", *command]
        return subprocess.run(whole, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    yield run
    for group in made:
        with suppress(OSError):
            group.rmdir()


@pytest.mark.slow
def test_a_worker_that_the_kernel_kills_is_told_with_limit_count_and_what_had_room(
    grouped: Grouped, tmp_path: Path
) -> None:
    (tmp_path / "lb_hungry.py").write_text(TARGETS)
    (tmp_path / "s.yaml").write_text(SUITE)
    limit = {"memory.limit_in_bytes": str(LIMIT_BYTES), "memory.max": str(LIMIT_BYTES), "memory.swap.max": "0"}
    done = grouped("memory", limit, "run", "s.yaml", "--out", "r", "-q")

    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path / "r")
    assert run.environment.memory_limit_bytes == LIMIT_BYTES
    with_worker = [trial for trial in run.trials if trial.config["num_workers"] == 1]
    assert [t.status for t in run.trials if t not in with_worker] == ["completed", "completed"]
    kinds = {trial.failure.kind for trial in with_worker if trial.failure}
    assert kinds <= {"worker_killed", "pruned"}
    killed = next(trial.failure for trial in with_worker if trial.failure and trial.failure.kind == "worker_killed")
    assert "OOM killer killed 1 of its processes" in killed.hint
    assert "cgroup limit: 2.0 GiB" in killed.hint
    assert "Fits in memory with num_workers=0" in done.stdout


def test_a_quota_is_what_a_run_may_use(grouped: Grouped, tmp_path: Path) -> None:
    quota = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000", "cpu.max": "50000 100000"}
    (tmp_path / "s.yaml").write_text("sweep: {num_workers: auto, batch_size: [8]}\n")
    done = grouped("cpu", quota, "check", "s.yaml")
    assert done.returncode == 0, done.stderr
    assert "Available CPUs: 0.5" in done.stdout
    assert json.dumps([0, 1])[1:-1] in done.stdout
