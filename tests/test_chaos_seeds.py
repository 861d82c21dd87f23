"""Faults that chaos once found are injected again, each by its seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOUND = {
    442: "SIGSTOP of all: one had ended meanwhile, and the others were never continued",
    623: "kill -9 of the fork server: the next attempt was refused by its dead socket",
    903: "the same in another moment",
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="faults are injected through /proc, signals and LD_PRELOAD")
def test_every_fault_that_chaos_found_stays_fixed() -> None:
    """Nothing measured is lost, nothing is left, and each run ends with a true line: see `benchmarks/chaos.py`.

    A seed gives the fault and its moment, and what is then under way depends on the machine. Tests of the cause itself
    hold each fix: `tests/runner/test_server.py`.
    """
    seeds = ",".join(map(str, FOUND))
    command = [sys.executable, "benchmarks/torture.py", "--only", "chaos", "--seeds", seeds, "--at-once", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    wrong = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    assert not wrong, "\n".join(wrong)
    assert done.stdout.count("| 0 |") >= 2, done.stdout + done.stderr  # of the table: the faults took place
