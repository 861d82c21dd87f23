"""The limits that bind a process are found wherever in the tree they stand."""

import os
from pathlib import Path

import psutil
import pytest

from loaderbench.environment import (
    Limits,
    allotted_to,
    busy_percent,
    cpus_allotted,
    machine,
    oom_kills,
    process_limit,
    quota_periods,
    read_limits,
    refused_processes,
)
from loaderbench.environment.cgroups import memory_left_bytes


def tree(root: Path, files: dict[str, str]) -> tuple[Path, Path]:
    for name, text in files.items():
        file = root / "sys" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / "membership", root / "sys"


def test_version_2_takes_the_tightest_limit_above(tmp_path: Path) -> None:
    membership, mount = tree(
        tmp_path,
        {
            "a/b/cpu.max": "max 100000\n",
            "a/cpu.max": "150000 100000\n",
            "a/b/memory.max": "max\n",
            "a/memory.max": "4096\n",
            "cpu.max": "400000 100000\n",
        },
    )
    membership.write_text("0::/a/b\n")
    assert read_limits(membership, mount) == Limits(1.5, 4096)


def test_version_1_reads_quota_over_period_and_ignores_no_limit(tmp_path: Path) -> None:
    membership, mount = tree(
        tmp_path,
        {
            "cpu,cpuacct/x/cpu.cfs_quota_us": "-1\n",
            "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
            "cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
            "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "memory/x/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    membership.write_text("3:memory:/x\n1:cpu,cpuacct:/x\n")
    assert read_limits(membership, mount) == Limits(0.5, None)


def test_in_a_container_the_mount_itself_is_the_group(tmp_path: Path) -> None:
    membership, mount = tree(tmp_path, {"cpu.max": "200000 100000\n"})
    membership.write_text("0::/docker/0123\n")
    assert read_limits(membership, mount).cpus == 2


def test_no_control_groups_means_no_limit(tmp_path: Path) -> None:
    assert read_limits(tmp_path / "none", tmp_path) == Limits(None, None)


def test_the_quota_binds_below_the_affinity() -> None:
    assert cpus_allotted(Limits(cpus=0.5)) == 0.5
    assert cpus_allotted(Limits()) >= 1


def test_each_group_with_a_quota_tells_its_periods(tmp_path: Path) -> None:
    membership, mount = tree(
        tmp_path,
        {
            "a/b/cpu.stat": "usage_usec 10\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
            "a/cpu.stat": "usage_usec 10\nnr_periods 40\nnr_throttled 30\nthrottled_usec 900\n",
            "cpu.stat": "nr_periods 90\nnr_throttled 2\n",
        },
    )
    membership.write_text("0::/a/b\n")
    top, inner = str(mount), str(mount / "a")
    assert quota_periods(membership, mount) == {inner: (40, 30), top: (90, 2)}
    (tmp_path / "membership").write_text("0::/\n")
    assert quota_periods(membership, mount) == {top: (90, 2)}
    assert quota_periods(tmp_path / "none", mount) == {}


def test_the_tightest_process_limit_counts_and_refusals_are_counted(tmp_path: Path) -> None:
    membership, mount = tree(
        tmp_path,
        {"a/b/pids.max": "max\n", "a/pids.max": "40\n", "pids.max": "900\n", "a/pids.events": "max 3\n"},
    )
    membership.write_text("0::/a/b\n")
    assert process_limit(membership, mount) == 40
    assert refused_processes(membership, mount) == 3
    (mount / "a" / "pids.max").write_text("max\n")
    (mount / "pids.max").write_text("max\n")
    assert process_limit(membership, mount) is None
    assert refused_processes(tmp_path / "none", mount) is None


@pytest.mark.parametrize("file", ["memory.events", "memory.oom_control"])
def test_what_the_out_of_memory_killer_ended_is_counted(tmp_path: Path, file: str) -> None:
    group = tmp_path / "fs" / "a"
    group.mkdir(parents=True)
    (tmp_path / "cgroup").write_text("0::/a\n")
    assert oom_kills(tmp_path / "cgroup", tmp_path / "fs") is None
    (group / file).write_text("oom_kill_disable 0\noom_kill 3\n")
    assert oom_kills(tmp_path / "cgroup", tmp_path / "fs") == 3


@pytest.mark.parametrize(
    ("used", "limit", "cached"),
    [
        ("memory.current", "memory.max", "inactive_file"),
        ("memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"),
    ],
)
def test_the_memory_that_is_left_under_a_limit(tmp_path: Path, used: str, limit: str, cached: str) -> None:
    files = {f"a/{used}": "7000\n", f"a/{limit}": "8000\n", "a/memory.stat": f"anon 5\n{cached} 1500\n"}
    membership, mount = tree(tmp_path, {**files, used: "100\n"})
    membership.write_text("0::/a\n")
    assert memory_left_bytes(membership, mount) == 2500
    membership.write_text("0::/\n")
    assert memory_left_bytes(membership, mount) is None


def test_what_is_available_to_this_process_is_found_from_outside_too() -> None:
    found = allotted_to(os.getpid())
    assert found.cpus == cpus_allotted()
    assert found.memory_bytes == read_limits().memory_bytes
    assert found.shm_bytes == psutil.disk_usage("/dev/shm").total


def test_only_the_available_cpus_count_as_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_percent", lambda *_, **__: [100.0, 0.0, 50.0])
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 3)
    monkeypatch.setattr(machine, "allowed_cpus", lambda: [0, 2])
    assert busy_percent(0.1) == 75.0
    monkeypatch.setattr(machine, "allowed_cpus", lambda: [3])
    assert busy_percent(0.1) is None
