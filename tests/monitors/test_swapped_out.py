"""What the monitors see of a process whose memory is swapped out, for real."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loaderbench.monitors import MachineWatch, WorkerWatch
from loaderbench.monitors.blocked import Blocked

KEEPER = Path(__file__).parents[2] / "benchmarks" / "diagnosis" / "swap_keeper.py"
LIMIT_MIB, HELD_MIB, SWAP_MIB = 100, 240, 512

READS = f"""
import mmap, random
held = mmap.mmap(-1, {HELD_MIB} << 20)
for place in range(0, len(held), 4096):
    held[place] = 1 + place % 255
print(flush=True)
while True:
    held[random.randrange(len(held))]
"""
SPINS = READS.replace("held[random.randrange(len(held))]", "pass")


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with little memory, while there is swap space."""
    command = [sys.executable, str(KEEPER), str(LIMIT_MIB), str(SWAP_MIB)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            said = keeper.stdout.readline().strip()
            if not said.startswith("/"):
                pytest.skip(f"memory cannot be swapped out here: {said}")
            yield Path(said)
        finally:
            keeper.stdin.close()
            keeper.wait()


@contextmanager
def process_in(group: Path, code: str) -> Iterator[int]:
    enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    command = ["sh", "-c", enter, "sh", sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child.pid
        finally:
            child.kill()


@pytest.mark.slow
@pytest.mark.parametrize("code", [READS, SPINS], ids=["reads all of it", "reads none of it"])
def test_memory_in_swap_is_seen_and_whether_it_comes_back(group: Path, code: str) -> None:
    worker, machine, blocked = WorkerWatch(), MachineWatch(), Blocked()
    with process_in(group, code) as pid:
        worker.read([pid])
        machine.begin()
        for _ in range(40):
            time.sleep(0.05)
            blocked.look([pid])
        worker.read([pid])
        machine.look()
        worker.read_memory([pid])
    states, use, seen = worker.states(), machine.use(), blocked.shares() or {}
    assert states is not None
    assert use is not None
    assert (states.swapped_bytes or 0) > (HELD_MIB - LIMIT_MIB - 20) << 20
    if code == SPINS:
        assert (states.major_faults_per_s or 0) < 100  # of its code
        assert seen.get("page_fault", 0) < 0.5
        return
    assert (states.major_faults_per_s or 0) > 100
    assert (use.swap_faults_per_s or 0) >= 0.5 * (states.major_faults_per_s or 0)
    assert (use.swapped_in_bytes_per_s or 0) > 0
    assert seen.get("page_fault", 0) > seen.get("storage", 0)
