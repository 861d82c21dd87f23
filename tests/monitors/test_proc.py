"""Parsers of /proc are tested on text, and once on this very process."""

import os
import subprocess
import sys
import time

import pytest

from loaderbench.monitors import proc
from loaderbench.monitors.processes import PsutilReader, TreeMonitor

STAT = (
    "4242 (a (b) c) S 1 4242 4242 0 -1 4194560 2000 0 0 0 250 150 9 9 20 0 3 0 100 1000000 512 "
    "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)
linux = pytest.mark.skipif(not proc.available(), reason="no /proc with lists of children here")


def test_a_command_with_brackets_does_not_shift_the_fields() -> None:
    found = proc.parse_stat(STAT)
    ticks = os.sysconf("SC_CLK_TCK")
    assert found == proc.ProcessStat(400 / ticks, 512 * os.sysconf("SC_PAGE_SIZE"))


def test_disk_reads_and_proportional_memory_are_found_by_name() -> None:
    assert proc.parse_read_bytes("rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 1\n") == 4096
    assert proc.parse_pss_bytes("00-ff ---p [rollup]\nRss: 9 kB\nPss: 12 kB\nPss_Anon: 3 kB\n") == 12 * 1024


@linux
def test_this_process_can_be_read() -> None:
    found = proc.read_stat(os.getpid())
    assert found is not None
    assert found.rss_bytes > 1_000_000
    assert (proc.read_pss_bytes(os.getpid()) or 0) > 100_000


@linux
def test_a_process_that_is_gone_reads_as_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert proc.read_stat(child.pid) is None
    assert proc.read_read_bytes(child.pid) is None


BURN = "import os,time\nif os.fork() == 0:\n while time.process_time() < 0.4: pass\nelse:\n os.wait()\n"


@pytest.mark.parametrize("reader", [None, PsutilReader()], ids=["fastest", "psutil"])
@linux
def test_the_cpu_time_of_children_counts_and_is_kept_when_they_die(reader: PsutilReader | None) -> None:
    child = subprocess.Popen([sys.executable, "-c", BURN])
    monitor = TreeMonitor(child.pid, reader)
    seen = 0
    used_s = 0.0
    while child.poll() is None:
        monitor.look_for_processes()
        seen = max(seen, len(monitor._alive))
        used_s = monitor.read(with_disk=False).cpu_s
        time.sleep(0.02)
    assert seen == 2
    assert monitor.read(with_disk=False).cpu_s >= used_s > 0.1


class Table:
    """Processes with a CPU time each, which come and go."""

    def __init__(self) -> None:
        self.cpu_s: dict[int, float] = {}

    def tree(self, root: int) -> list[int]:
        return [root, *self.cpu_s]

    def stat(self, pid: int) -> proc.ProcessStat | None:
        return proc.ProcessStat(self.cpu_s[pid], 0) if pid in self.cpu_s else None

    def read_bytes(self, pid: int) -> int | None:
        return 10 if pid in self.cpu_s else None

    def pss_bytes(self, _: int) -> int | None:
        return None


def test_thousands_of_workers_are_kept_as_one_sum() -> None:
    table = Table()
    monitor = TreeMonitor(1, table)
    for pid in range(100, 1100):
        table.cpu_s = {pid: 2.0, 50: float(pid)}
        monitor.watch([pid, 50])
        monitor.read(with_disk=True)
    found = monitor.read(with_disk=True)
    assert (found.cpu_s, found.read_bytes) == (1000 * 2.0 + 1099, 1001 * 10)
    assert len(monitor._cpu_s) == 2


def test_another_process_of_the_same_number_adds_to_the_one_before() -> None:
    table = Table()
    monitor = TreeMonitor(1, table)
    for used_s in (3.0, 0.5):
        table.cpu_s = {7: used_s}
        monitor.watch([7])
        found = monitor.read(with_disk=False)
    assert found.cpu_s == 3.5
