"""Which limits of a machine `loaderbench doctor` warns about, and what it advises."""

from __future__ import annotations

import pytest

from loaderbench.environment.checkup import Check, check_open_files, check_processes, check_shared_memory

MIB = 2**20


@pytest.mark.parametrize(
    ("check", "state", "fix"),
    [
        (check_processes(None), "ok", ""),
        (check_processes(512), "ok", ""),
        (check_processes(511), "warn", "docker run --pids-limit=512"),
        (check_open_files(None), "ok", ""),
        (check_open_files(4096), "ok", ""),
        (check_open_files(1024), "warn", "ulimit -n 16384"),
        (check_shared_memory(None), "ok", ""),
        (check_shared_memory((2048 * MIB, 1024 * MIB)), "ok", ""),
        (check_shared_memory((2048 * MIB, 1023 * MIB)), "warn", "--shm-size"),
        (check_shared_memory((64 * MIB, 64 * MIB)), "bad", "--shm-size"),
    ],
)
def test_a_low_limit_is_told_with_the_flag_that_raises_it(check: Check, state: str, fix: str) -> None:
    assert check.state == state
    assert fix in check.fix
    assert bool(check.fix) == (state != "ok")
