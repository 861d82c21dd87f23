"""A run where there is too little: of shared memory, of disk, of open files. One sentence, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loaderbench.store import read_run, readable_trials

TARGETS = """
import time
import torch
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 4096
    def __getitem__(self, index): return torch.zeros(3, 224, 224)
class Many(Samples):
    def __getitem__(self, index):
        time.sleep(0.005)
        return [torch.full((8,), index) for _ in range(24)]
class Waiting(Samples):
    def __getitem__(self, index): time.sleep(0.005); return super().__getitem__(index)
def samples(): return Samples()
def many(): return Many()
def waiting():
    torch.set_num_threads(1)
    return Waiting()
"""
SUITE = """
dataset: {{kind: target, target: "lb_small:samples"}}
sweep: {{num_workers: [0, 2], batch_size: {batches}}}
consumer: {{kind: none}}
measure: {{rounds: {rounds}, seconds: 0.1, verify: false}}
"""
GROUPS = Path("/sys/fs/cgroup")
RUN = f"{sys.executable} -m loaderbench run s.yaml -q"
ONE_ROUND_FREED = """
from loaderbench.session import freeing
freeing.FREED_ROUNDS = freeing.MOST_ROUNDS = 1
from loaderbench.__main__ import main
main()
"""
RUN_WITH_FIXES = f"{sys.executable} -c '{ONE_ROUND_FREED}' run s.yaml -q"
"""The same with fewer rounds of free-stage trials, for tests of what is tried after them."""


def may_mount() -> bool:
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return (
        shutil.which("unshare") is not None and not subprocess.run(tried, capture_output=True, check=False).returncode
    )


mounts = pytest.mark.skipif(not may_mount(), reason="no right to mount a small file system")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lb_small.py").write_text(TARGETS)
    (tmp_path / "s.yaml").write_text(SUITE.format(batches="[4]", rounds=3))
    (tmp_path / "small").mkdir()
    return tmp_path


def shell(place: Path, script: str, *, apart: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a script; `apart`: in file systems of its own, of which nothing remains."""
    command = [*(["unshare", "--mount"] if apart else []), "sh", "-c", script]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@mounts
def test_a_shared_memory_of_64_mb_is_told_in_bytes_and_costs_only_what_does_not_fit(place: Path) -> None:
    (place / "s.yaml").write_text(SUITE.format(batches="[4, 128]", rounds=1))
    done = shell(place, f"mount -t tmpfs -o size=64m tmpfs /dev/shm && {RUN} --out r", apart=True)

    assert done.returncode == 0, done.stderr
    trials = {tuple(trial.config.values()): trial for trial in read_run(place / "r").sweep}
    full = trials.pop((2, 128))
    assert full.failure is not None
    assert full.failure.kind == "shared_memory_full"
    assert "/dev/shm: 64 MiB free of 64 MiB" in full.failure.hint
    assert "A batch of 128 takes about 74 MiB" in full.failure.hint
    assert [trial.status for trial in trials.values()] == ["completed"] * 3


@pytest.mark.slow
@pytest.mark.xdist_group("shared memory")  # long, and on a worker of its own: it shares nothing with the others
@mounts
def test_a_fix_that_the_sweep_has_found_not_to_fit_is_tried_with_less_under_way_alone(place: Path) -> None:
    suite = SUITE.format(batches="[32]", rounds=3).replace("verify: false", "verify: true")
    suite = suite.replace("lb_small:samples", "lb_small:waiting")  # other tests may use the CPUs
    (place / "s.yaml").write_text(suite.replace("consumer: {kind: none}", "consumer: {kind: emulated, demand: 100000}"))
    done = shell(place, f"mount -t tmpfs -o size=8m tmpfs /dev/shm && {RUN_WITH_FIXES} --out r", apart=True)

    assert done.returncode == 0, done.stderr
    run = read_run(place / "r")
    with_workers = [trial.failure for trial in run.sweep if trial.config["num_workers"] == 2]
    assert [failure.kind for failure in with_workers if failure] == ["shared_memory_full", "pruned", "pruned"]
    assert run.verdict.bound == "input"
    tried = [trial.config for trial in run.remedy_trials if trial.config["num_workers"]]
    assert tried
    assert all(config.get("prefetch_factor") == 1 for config in tried), tried
    assert any(line.startswith("Shared memory: ") and "8 MiB" in line for line in run.verdict.evidence)


@pytest.mark.slow
@pytest.mark.timed  # the fix has to be faster than no workers
def test_where_open_files_run_out_sharing_by_files_is_tried(place: Path) -> None:
    suite = SUITE.format(batches="[16]", rounds=3).replace("verify: false", "verify: true")
    suite = suite.replace("lb_small:samples", "lb_small:many")
    (place / "s.yaml").write_text(suite.replace("consumer: {kind: none}", "consumer: {kind: emulated, demand: 100000}"))
    done = shell(place, f"ulimit -n 64; {RUN_WITH_FIXES} --out r")

    assert done.returncode == 0, done.stderr
    run = read_run(place / "r")
    with_workers = [trial.failure for trial in run.sweep if trial.config["num_workers"] == 2]
    kinds = [failure.kind for failure in with_workers if failure]
    assert kinds == ["too_many_files", "pruned", "pruned"], with_workers[0]
    assert with_workers[0] is not None
    assert "open-file limit: 64 per process" in with_workers[0].hint
    (fix,) = [fix for fix in run.recommendations if fix.change.get("worker_sharing") == "file_system"]
    assert (fix.basis, fix.status) == ("measured", "open")
    assert fix.gain is not None
    assert fix.gain.lo is not None
    assert fix.gain.lo > 1
    assert "set_sharing_strategy" in fix.snippet


@pytest.mark.slow
@mounts
def test_a_disk_that_fills_up_is_one_line_and_with_room_the_run_goes_on(place: Path) -> None:
    script = f"""
        mount -t tmpfs -o size=40k tmpfs small
        {RUN} --out small/r; echo "code $?"; cp -r small/r full
        mount -o remount,size=10m small
        {RUN} --resume small/r > printed; echo "code $?"; cp -r small/r whole
    """
    done = shell(place, script, apart=True)

    assert done.stdout.split("\n")[:2] == ["code 2", "code 0"], done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("loaderbench: small/r/trials.jsonl: cannot write: No space left on device; results")
    kept = {trial.id: trial.samples_per_s for trial in readable_trials(place / "full")[0]}
    run = read_run(place / "whole")
    assert kept
    assert kept.items() <= {trial.id: trial.samples_per_s for trial in run.trials}.items()
    assert [trial.status for trial in run.sweep] == ["completed"] * 6


@mounts
def test_a_file_system_that_cannot_be_written_to_is_found_before_measuring(place: Path) -> None:
    done = shell(place, f"mount -t tmpfs -o ro tmpfs small && {RUN} --out small/r", apart=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "loaderbench: small/r: cannot write: Read-only file system\n"


def test_too_few_open_files_for_anything_is_one_line(place: Path) -> None:
    done = shell(place, f"ulimit -n 10; {RUN} --out r")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == "loaderbench: Too many open files; raise the limit with `ulimit -n`\n"
    assert not (place / "r").exists()


@pytest.mark.slow
def test_too_few_processes_are_named_with_the_limit_and_more_workers_not_tried(place: Path) -> None:
    first = (GROUPS / "pids").is_dir()
    group = GROUPS / ("pids" if first else "") / f"loaderbench-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "pids.max").write_text("14")
    except OSError as error:
        pytest.skip(f"no right to limit processes: {error}")
    try:
        (place / "s.yaml").write_text(SUITE.format(batches="[4]", rounds=3).replace("[0, 2]", "[0, 2, 6]"))
        done = shell(place, f"echo $$ > {group}/cgroup.procs && {RUN} --out r")
    finally:
        time.sleep(1)
        group.rmdir()

    assert done.returncode == 0, done.stderr
    trials = read_run(place / "r").sweep
    assert {trial.status for trial in trials if trial.config["num_workers"] == 0} == {"completed"}
    failed = [trial.failure for trial in trials if trial.config["num_workers"] and trial.failure]
    kinds = [failure.kind for failure in failed]
    assert kinds.count("too_many_processes") in (1, 2)
    assert set(kinds) == {"too_many_processes", "pruned"}
    assert "cgroup limit: 14 processes and threads" in next(one.hint for one in failed if one.kind != "pruned")


MEMORY_MIB = 900  # the imports of the run and its fork server take some 400 of it


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A control group with little memory, of version 1 or 2; what it holds is killed at the end."""
    first = (GROUPS / "memory").is_dir()
    group = GROUPS / ("memory" if first else "") / f"loaderbench-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(MEMORY_MIB * 2**20))
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        pytest.skip(f"no right to make a memory group: {error}")
    yield group
    for _ in range(100):
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


@pytest.mark.slow
def test_what_a_memory_limit_does_not_hold_is_named_and_not_tried_again(place: Path, memory_group: Path) -> None:
    (place / "s.yaml").write_text(SUITE.format(batches="[4, 512]", rounds=3))
    done = shell(place, f"echo $$ > {memory_group}/cgroup.procs && {RUN} --out r")

    assert done.returncode == 0, done.stderr
    trials = read_run(place / "r").sweep
    assert {trial.status for trial in trials if trial.config["batch_size"] == 4} == {"completed"}
    for workers in (0, 2):
        large = [one.failure for one in trials if one.config == {"num_workers": workers, "batch_size": 512}]
        tried = [failure for failure in large if failure and failure.kind != "pruned"]
        assert len(tried) <= 1
        assert all(failure.by_oom_killer for failure in tried)
        assert all(f"cgroup limit: {MEMORY_MIB} MiB" in failure.hint for failure in tried)
    assert any(trial.failure and trial.failure.by_oom_killer for trial in trials)
