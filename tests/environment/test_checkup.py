"""Which limits of a machine `loaderbench doctor` warns about, and what it advises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loaderbench.environment import Limits
from loaderbench.environment.checkup import (
    Check,
    PackageHealth,
    check_memory,
    check_open_files,
    check_processes,
    check_quota,
    check_shared_memory,
    look_at_packages,
)

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("check", "state", "fix"),
    [
        (check_processes(None), "ok", ""),
        (check_processes(512), "ok", ""),
        (check_processes(511), "warn", "docker run --pids-limit=512"),
        (check_open_files(None, None), "ok", ""),
        (check_open_files(4096, 4096), "ok", ""),
        (check_open_files(1024, None), "warn", "ulimit -n 16384"),
        (check_open_files(1024, 16384), "warn", "ulimit -n 16384"),
        (
            check_open_files(1024, 4096),
            "warn",
            "ulimit -n 4096; only an administrator can raise it",
        ),
        (
            check_open_files(1024, 1024),
            "warn",
            "docker run --ulimit nofile",
        ),
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


NO_CODE = "CUDA error: no kernel image is available for execution on the device"
TOO_OLD = "CUDA initialization: The NVIDIA driver on your system is too old (found version 12020)."


@pytest.mark.parametrize(
    ("torch", "gpus", "state", "words"),
    [
        ({"platform": "CUDA 13.0", "available": True, "devices": ["H100"], "why": ""}, 1, "ok", "H100 (CUDA 13.0)"),
        ({"platform": "ROCm 6.4", "available": True, "devices": ["MI300X"]}, 0, "ok", "MI300X (ROCm 6.4)"),
        ({"platform": "CUDA 13.0", "available": True, "devices": ["H100"], "kernel": NO_CODE}, 1, "warn", NO_CODE),
        ({"platform": "CUDA 13.0", "available": False, "devices": [], "why": ""}, 0, "ok", "built for CUDA 13.0"),
        ({"platform": "CUDA 13.0", "available": False, "devices": [], "why": TOO_OLD}, 2, "warn", TOO_OLD),
        ({"platform": "", "available": False, "devices": [], "why": ""}, 1, "warn", "torch is a CPU build"),
        ({"platform": "", "available": False, "devices": [], "why": ""}, 0, "ok", "torch is a CPU build"),
        ({"error": "ImportError: no"}, 0, "warn", "unknown: torch does not work"),
    ],
)
def test_a_gpu_that_torch_does_not_find_is_never_ok(torch: dict[str, Any], gpus: int, state: str, words: str) -> None:
    (check,) = [check for check in PackageHealth({"torch": torch}, gpus_of_driver=gpus).checks() if check.name == "GPU"]
    assert (check.state, words in check.said) == (state, True)
    assert bool(check.fix) == (state != "ok")


@pytest.mark.parametrize(
    ("simplejpeg", "state", "said"),
    [
        ({}, "ok", "works"),
        ({"error": "ModuleNotFoundError: No module named 'simplejpeg'"}, "ok", "not installed (optional: "),
        ({"error": "ImportError: numpy.core.multiarray failed"}, "warn", "ImportError: numpy.core.multiarray failed"),
    ],
)
def test_a_broken_simplejpeg_is_not_called_missing(simplejpeg: dict[str, Any], state: str, said: str) -> None:
    check = next(check for check in PackageHealth({"simplejpeg": simplejpeg}).checks() if check.name == "simplejpeg")
    assert check.state == state
    assert check.said.startswith(said)


def test_files_of_the_current_folder_are_not_mistaken_for_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "io.py").touch()
    (tmp_path / "json.py").write_text("raise RuntimeError('not a module')")
    (tmp_path / "simplejpeg.py").write_text("raise RuntimeError('not a module')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    found = look_at_packages()
    assert not found.crashed
    assert "not a module" not in str(found.found)


def test_memory_that_others_in_the_container_use_is_not_available() -> None:
    limits = Limits(memory_bytes=8 * GIB)
    assert check_memory(256 * GIB, 200 * GIB, limits, None).state == "ok"
    found = check_memory(256 * GIB, 200 * GIB, limits, GIB // 2)
    assert (found.state, found.said) == (
        "warn",
        "200.0 GiB free of 256.0 GiB; cgroup limit: 8.0 GiB, 512 MiB of it unused",
    )


def test_of_several_cgroups_the_most_throttled_one_is_told() -> None:
    assert check_quota({}).state == "ok"
    found = check_quota({"outer": (100_000, 10), "inner": (100, 60)})
    assert found.state == "warn"
    assert "60.0%" in found.said
