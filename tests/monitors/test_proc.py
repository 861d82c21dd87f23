"""Parsers of /proc are tested on text, and once on this very process."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loaderbench.monitors import proc, process_tree
from loaderbench.monitors.process_tree import PsutilReader, TreeMonitor

STAT = (
    "4242 (a (b) c) S 1 4242 4242 0 -1 4194560 2000 0 0 0 250 150 9 9 20 0 3 0 100 1000000 512 "
    "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)
linux = pytest.mark.skipif(not proc.available(), reason="no /proc with lists of children here")


def test_a_command_with_brackets_does_not_shift_the_fields() -> None:
    found = proc.parse_stat(STAT)
    ticks = os.sysconf("SC_CLK_TCK")
    assert found == proc.ProcessStat(400 / ticks, 512 * os.sysconf("SC_PAGE_SIZE"), 18 / ticks)


def test_the_cpu_of_a_thread_is_the_one_on_which_it_last_ran() -> None:
    assert proc.parse_last_cpu(STAT) == 1


def test_disk_reads_and_proportional_memory_are_found_by_name() -> None:
    assert proc.parse_read_bytes("rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 1\n") == 4096
    assert proc.parse_pss_bytes("00-ff ---p [rollup]\nRss: 9 kB\nPss: 12 kB\nPss_Anon: 3 kB\n") == 12 * 1024


COUNTS = "nr_free_pages 5\npgmajfault 90\npswpin 70\npswpout 11\nswap_ra 40\nswap_ra_hit 33\nswpin_zero 6\nzswpin 4\n"


def test_swap_ins_are_counted_with_those_that_a_fault_asked_for() -> None:
    assert proc.parse_swap_ins(COUNTS) == proc.SwapIns(pages=80, by_faults=40)
    assert proc.parse_swap_ins("pswpin 7\npswpout 1\n") == proc.SwapIns(7, 7)  # a kernel that counts nothing else
    assert proc.parse_swap_ins("pgmajfault 90\n") is None


def test_swap_space_and_what_of_a_process_is_in_it_are_found_by_name() -> None:
    assert proc.has_swap("MemTotal: 9 kB\nSwapCached: 7 kB\nSwapTotal:  2048 kB\nSwapFree: 0 kB\n")
    assert not proc.has_swap("MemTotal: 9 kB\nSwapTotal:  0 kB\n")
    assert not proc.has_swap("")
    rollup = "00-ff ---p [rollup]\nPss: 12 kB\nSwap: 300 kB\nSwapPss: 120 kB\nLocked: 0 kB\n"
    assert proc.parse_swapped_out(rollup) == proc.SwappedOut(300 * 1024, 120 * 1024)
    assert proc.parse_swapped_out("Pss: 12 kB\n") is None


LOCKS = """\
1: FLOCK  ADVISORY  WRITE 100 fe:00:53 0 EOF
1: -> FLOCK  ADVISORY  WRITE 101 fe:00:53 0 EOF
1: -> FLOCK  ADVISORY  WRITE 102 fe:00:53 0 EOF
2: POSIX  ADVISORY  READ  7 fe:00:54 128 128
3: OFDLCK ADVISORY  READ  -1 00:05:1064 0 EOF
4: POSIX  ADVISORY  WRITE 7 fe:00:55 0 EOF
4: -> POSIX  ADVISORY  WRITE 8 fe:00:55 0 EOF
"""


def test_who_waits_for_the_lock_of_a_file_is_found_with_who_holds_it() -> None:
    assert proc.parse_lock_waits(LOCKS) == [(100, 101), (100, 102), (7, 8)]
    assert proc.parse_lock_waits("") == []


@linux
def test_a_process_that_waits_for_a_lock_is_seen(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        code = f"import fcntl; fcntl.flock(open({str(lock)!r}), fcntl.LOCK_EX)"
        with subprocess.Popen([sys.executable, "-c", code]) as waiter:
            try:
                until_s = time.monotonic() + 30
                while proc.lock_holders([waiter.pid]) != {os.getpid()}:
                    assert time.monotonic() < until_s
                    time.sleep(0.01)
            finally:
                waiter.kill()


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


MANY_SHORT = """
import os, time
for _ in range(40):
    if os.fork() == 0:
        while time.process_time() < 0.02: pass
        os._exit(0)
    os.wait()
print("done", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("reader", [None, PsutilReader()], ids=["fastest", "psutil"])
@linux
def test_processes_that_nobody_saw_count_once_their_parent_has_waited_for_them(reader: PsutilReader | None) -> None:
    with subprocess.Popen([sys.executable, "-c", MANY_SHORT], stdout=subprocess.PIPE) as parent:
        monitor = TreeMonitor(parent.pid, reader)
        before_s = monitor.read(with_disk=False).cpu_s
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"done\n"
        after_s = monitor.read(with_disk=False).cpu_s
        parent.kill()
    assert after_s - before_s > 0.5


class Table:
    """Processes with a CPU time each, which come and go; the root has waited for `waited_s` of them."""

    def __init__(self) -> None:
        self.cpu_s: dict[int, float] = {}
        self.waited_s: dict[int, float] = {}
        self.bytes: dict[int, int] = {}

    def tree(self, root: int) -> list[int]:
        return [root, *(pid for pid in self.cpu_s if pid != root)]

    def stat(self, pid: int) -> proc.ProcessStat | None:
        if pid not in self.cpu_s:
            return None
        return proc.ProcessStat(self.cpu_s[pid], 0, self.waited_s.get(pid, 0.0))

    def read_bytes(self, pid: int) -> int | None:
        return self.bytes.get(pid)

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
    assert found.cpu_s == 1000 * 2.0 + 1099
    assert len(monitor._used) == 2


def read(monitor: TreeMonitor) -> tuple[float | None, int | None]:
    monitor.look_for_processes()
    found = monitor.read(with_disk=True)
    return found.cpu_s, found.read_bytes


def test_what_a_parent_waited_for_counts_once() -> None:
    table = Table()
    monitor = TreeMonitor(1, table)
    table.cpu_s, table.bytes = {1: 1.0, 7: 2.0}, {1: 100, 7: 50}
    assert read(monitor) == (3.0, 150)
    table.cpu_s, table.bytes = {1: 1.0}, {1: 100}  # ended after its parent was read
    assert read(monitor) == (3.0, 150)
    table.waited_s, table.bytes = {1: 2.5}, {1: 155}
    assert read(monitor) == (3.5, 155)
    table.cpu_s[9] = 4.0
    assert read(monitor) == (7.5, 155)
    del table.cpu_s[9]
    table.waited_s = {1: 7.5}  # and another one, which nobody saw
    assert read(monitor) == (8.5, 155)


def test_what_nobody_waits_for_is_kept() -> None:
    table = Table()
    monitor = TreeMonitor(1, table)
    table.cpu_s = {1: 1.0, 7: 2.0}
    read(monitor)
    del table.cpu_s[7]
    for _ in range(3):
        assert read(monitor) == (3.0, None)


def test_what_nobody_waited_for_stays_where_others_are_waited_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table()
    monitor = TreeMonitor(1, table)
    table.cpu_s = {1: 1.0, 7: 10.0}
    read(monitor)
    del table.cpu_s[7]
    assert read(monitor)[0] == 11.0
    monkeypatch.setattr(process_tree, "SOON_S", 0.0)
    assert read(monitor)[0] == 11.0
    table.waited_s = {1: 6.0}
    assert read(monitor)[0] == 17.0


def test_of_watched_processes_others_that_the_root_waited_for_do_not_count() -> None:
    table = Table()
    monitor = TreeMonitor(1, table)
    table.cpu_s = {1: 1.0, 7: 2.0}
    monitor.watch([7])
    assert monitor.read(with_disk=False).cpu_s == 3.0
    table.waited_s = {1: 50.0}
    assert monitor.read(with_disk=False).cpu_s == 3.0
    del table.cpu_s[7]
    table.waited_s = {1: 100.0}
    monitor.watch([])
    clock_s = time.monotonic() - monitor._ended._counted_at_s
    assert 3.0 + clock_s <= monitor.read(with_disk=False).cpu_s < 40.0


def test_another_process_of_the_same_number_adds_to_the_one_before() -> None:
    table = Table()
    monitor = TreeMonitor(1, table)
    for used_s in (3.0, 0.5):
        table.cpu_s = {7: used_s}
        monitor.watch([7])
        found = monitor.read(with_disk=False)
    assert found.cpu_s == 3.5
