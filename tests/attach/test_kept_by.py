"""What the kernel says of workers: who keeps a batch from coming, and whether blocked reads wait for bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from loaderbench.attach.watch import AwaitedLooks
from loaderbench.attach.workers import BlockedReads

AT_QUEUE, SLEEPS, RUNS, AT_LOCK = "do_poll", "hrtimer_nanosleep", "0", "futex_do_wait"
MAIN = 1


def thread(root: Path, pid: int, wchan: str, thread: int = 0, blocked: int = 5) -> None:
    """Write a thread of a process to a folder that looks like /proc; the main one where none is named."""
    for folder in (root / str(pid), root / str(pid) / "task" / str(thread or pid))[1 if thread else 0 :]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "wchan").write_text(wchan)
        (folder / "status").write_text(f"Name:\tpt\nvoluntary_ctxt_switches:\t{blocked}\n")


@pytest.mark.parametrize(
    ("workers", "part"),
    [
        ({2: [SLEEPS], 3: [AT_QUEUE, AT_LOCK]}, "order"),
        ({2: [SLEEPS], 3: [AT_QUEUE, RUNS]}, "making"),  # its thread is still at sending a batch
        ({2: [SLEEPS], 3: [RUNS]}, "making"),
        ({2: [AT_QUEUE], 3: [AT_QUEUE, RUNS]}, "transport"),
    ],
)
def test_who_keeps_a_batch_is_told_by_what_all_workers_are_at(
    tmp_path: Path, workers: dict[int, list[str]], part: str
) -> None:
    thread(tmp_path, MAIN, AT_QUEUE)
    for pid, (first, *others) in workers.items():
        thread(tmp_path, pid, first)
        for number, wchan in enumerate(others):
            thread(tmp_path, pid, wchan, 100 + number)
    looks = AwaitedLooks(str(tmp_path))
    for _ in range(9):
        looks.look(MAIN, list(workers))
    assert looks.shares is None  # too few
    looks.look(MAIN, list(workers))
    assert looks.shares == {part: 1.0}


def test_a_look_in_which_the_main_process_ran_does_not_count(tmp_path: Path) -> None:
    thread(tmp_path, MAIN, RUNS)
    thread(tmp_path, 2, SLEEPS)
    looks = AwaitedLooks(str(tmp_path))
    for _ in range(20):
        looks.look(MAIN, [2])
        looks.look(MAIN, [])
    assert looks.shares is None


class Worker:
    """Reads files one after the other, each after a wait, in a folder that looks like /proc."""

    def __init__(self, root: Path, latency_s: float, bytes_per_s: float, least: int, most: int) -> None:
        self.root, self.latency_s, self.bytes_per_s = root, latency_s, bytes_per_s
        self.sizes, self.draws = (least, most), random.Random(7)
        self.now_s = self.next_s = 0.0
        self.waits = self.read_bytes = 0

    def until(self, moment_s: float) -> None:
        while self.next_s < moment_s:
            size = self.draws.randint(*self.sizes)
            self.waits, self.read_bytes = self.waits + 1, self.read_bytes + size
            self.next_s += self.draws.uniform(0.9, 1.2) * self.latency_s + size / self.bytes_per_s
        self.now_s = moment_s
        folder = self.root / "2"
        folder.mkdir(exist_ok=True)
        (folder / "status").write_text(f"voluntary_ctxt_switches:\t{self.waits}\n")
        (folder / "schedstat").write_text("1000000 1000000 9\n")
        (folder / "io").write_text(f"rchar: {self.read_bytes}\nread_bytes: 0\n")

    def seen(self) -> BlockedReads:
        reads = BlockedReads(str(self.root), lambda: self.now_s)
        for number in range(40):
            self.until(number / 4)
            reads.read([2, 3])
        return reads


def test_where_requests_are_waited_for_their_number_is_steady(tmp_path: Path) -> None:
    share = Worker(tmp_path, 0.01, 1e12, 10_000, 500_000).seen().bytes_share
    assert share is not None
    assert share < 0.3


def test_where_bytes_are_waited_for_their_sum_is_steady(tmp_path: Path) -> None:
    reads = Worker(tmp_path, 0.0, 20e6, 10_000, 500_000).seen()
    assert reads.bytes_share is not None
    assert reads.bytes_share > 0.7
    assert reads.bytes_per_wait == pytest.approx(255_000, rel=0.1)


@pytest.mark.parametrize(("latency_s", "bytes_per_s"), [(0.01, 1e12), (0.0, 20e6)])
def test_files_of_one_size_tell_nothing(tmp_path: Path, latency_s: float, bytes_per_s: float) -> None:
    assert Worker(tmp_path, latency_s, bytes_per_s, 200_000, 200_000).seen().bytes_share is None


def test_what_comes_through_the_queue_alone_is_no_reading(tmp_path: Path) -> None:
    assert Worker(tmp_path, 0.01, 1e12, 10, 3_000).seen().bytes_share is None


def test_workers_that_are_gone_or_hidden_are_none(tmp_path: Path) -> None:
    reads = BlockedReads(str(tmp_path))
    reads.read([2])
    reads.read([2])
    assert (reads.bytes_per_wait, reads.bytes_share) == (None, None)
