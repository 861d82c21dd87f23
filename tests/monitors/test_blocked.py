"""What a process stands at, told by the kernel function it sleeps in."""

from __future__ import annotations

import multiprocessing
import platform
import subprocess
import sys
import time
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.monitors.blocked import (
    DEVICE,
    INTERVAL_S,
    MOST_APART,
    QUEUE,
    RARE_INTERVAL_S,
    Blocked,
    BlockedThread,
    kind_at,
    kind_at_worker,
    kind_of,
)


@pytest.mark.parametrize(
    ("wchan", "kind"),
    [
        ("futex_do_wait", "lock"),
        ("futex_wait_queue_me", "lock"),
        ("locks_lock_inode_wait", "lock"),
        ("poll_schedule_timeout.constprop.0", "queue"),
        ("ep_poll", "queue"),
        ("folio_wait_bit_common", "storage"),
        ("nfs_wait_bit_killable", "storage"),
        ("hrtimer_nanosleep", "device"),
        ("wait_woken", "device"),
        ("unix_stream_read_generic", "device"),
        ("0", "running"),
        ("", "running"),
        ("something_new", None),
    ],
)
def test_kernel_functions_are_sorted_by_what_they_wait_for(wchan: str, kind: str | None) -> None:
    assert kind_of(wchan) == kind


def test_shares_are_of_the_processes_asked_for_and_need_a_few_looks(tmp_path: Path) -> None:
    for pid, wchan in ((1, "futex_do_wait"), (2, "hrtimer_nanosleep")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "wchan").write_text(wchan)
    blocked = Blocked(str(tmp_path))
    for _ in range(4):
        blocked.look([1, 2])
    assert blocked.shares() is None
    for _ in range(6):
        blocked.look([1, 2])
    assert blocked.shares() == {"device": 0.5, "lock": 0.5}
    assert blocked.shares([1]) == {"lock": 1.0}


def test_a_main_process_at_a_lock_is_not_judged_by_its_other_threads(tmp_path: Path) -> None:
    for thread, wchan in (("7", "futex_do_wait"), ("7/task/7", "futex_do_wait"), ("7/task/8", "hrtimer_nanosleep")):
        (tmp_path / thread).mkdir(parents=True)
        (tmp_path / thread / "wchan").write_text(wchan)
    worker, main = Blocked(str(tmp_path)), Blocked(str(tmp_path))
    for _ in range(10):
        worker.look([7])
        main.look_at_main(7)
    assert worker.shares() == {"device": 1.0}
    assert main.shares() == {"lock": 1.0}


def put(folder: Path, wchan: str, syscall: str) -> None:
    folder.mkdir(parents=True)
    (folder / "wchan").write_text(wchan)
    (folder / "syscall").write_text(syscall)


FAULT = "-1 0x7ffcf92a8dc8 0x7faa547a02ad\n"
READ = "0 0x3 0x7faa54627000 0x20000 0x0 0x0 0x0 0x7ffcf92a8dc8 0x7faa547a02ad\n"


@pytest.mark.parametrize(
    ("wchan", "syscall", "kind"),
    [
        ("folio_wait_bit_common", FAULT, "page_fault"),
        ("reclaim_throttle", FAULT, "page_fault"),
        ("folio_wait_bit_common", READ, "storage"),
        ("folio_wait_bit_common", "", "storage"),  # another user's process
        ("reclaim_throttle", READ, "other"),
        ("folio_wait_bit_common", "running\n", "running"),  # the wait has ended
        ("futex_do_wait", FAULT, "lock"),
        ("0", "running\n", "running"),
    ],
)
def test_a_page_fault_is_a_wait_for_storage_outside_of_any_system_call(
    tmp_path: Path, wchan: str, syscall: str, kind: str
) -> None:
    put(tmp_path / "7", wchan, syscall)
    put(tmp_path / "8", "poll_schedule_timeout", READ)
    blocked = Blocked(str(tmp_path))
    for _ in range(10):
        blocked.look([7, 8])
    assert blocked.shares() == {kind: 0.5, "queue": 0.5}


def test_a_worker_whose_thread_is_in_a_page_fault_waits_for_that(tmp_path: Path) -> None:
    put(tmp_path / "7", "futex_do_wait", READ)
    put(tmp_path / "7" / "task" / "7", "futex_do_wait", READ)
    put(tmp_path / "7" / "task" / "8", "folio_wait_bit_common", FAULT)
    blocked = Blocked(str(tmp_path))
    for _ in range(10):
        blocked.look([7])
    assert blocked.shares() == {"page_fault": 1.0}


def test_each_thread_of_a_process_is_seen_by_its_own_number(tmp_path: Path) -> None:
    for thread, wchan in ((7, "futex_do_wait"), (8, "hrtimer_nanosleep"), (9, "0")):
        (tmp_path / "7" / "task" / str(thread)).mkdir(parents=True)
        (tmp_path / "7" / "task" / str(thread) / "wchan").write_text(wchan)
    blocked = Blocked(str(tmp_path))
    for _ in range(10):
        blocked.look_at_threads(7)
    assert blocked.shares([7]) == {"lock": 1.0}
    assert blocked.shares([8, 9]) == {"device": 0.5, "running": 0.5}
    blocked.look_at_threads(10)  # ended
    assert blocked.shares([10]) is None


THREADS = 3


def test_threads_are_looked_at_in_another_order_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for thread in range(THREADS):
        (tmp_path / "7" / "task" / str(thread)).mkdir(parents=True)
    order: list[tuple[int, ...]] = []
    blocked = Blocked(str(tmp_path))
    for _ in range(40):
        looked_at: list[int] = []
        monkeypatch.setattr(blocked, "_count", lambda thread, _kind, seen=looked_at: seen.append(thread))
        blocked.look_at_threads(7)
        order.append(tuple(looked_at))
    assert set(order) == set(permutations(range(THREADS)))


def test_a_kernel_that_hides_it_is_no_evidence_of_running(tmp_path: Path) -> None:
    blocked = Blocked(str(tmp_path))
    for _ in range(20):
        blocked.look([1])
    assert blocked.shares() is None


def _stand(kind: str, lock: Any) -> None:
    if kind == "lock":
        lock.acquire()
    elif kind == "device":
        time.sleep(60)
    else:
        ours, _theirs = multiprocessing.Pipe()
        ours.poll(60)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a thread stands at")
@pytest.mark.parametrize("kind", ["lock", "device", "queue"])
def test_a_real_process_is_seen_at_what_it_stands_at(kind: str) -> None:
    lock = multiprocessing.Lock()
    lock.acquire()
    process = multiprocessing.get_context("fork").Process(target=_stand, args=(kind, lock), daemon=True)
    process.start()
    watch = BlockedThread()
    try:
        assert process.pid is not None
        for _ in range(50):
            time.sleep(0.1)
            if (Path("/proc") / str(process.pid) / "wchan").read_text() != "0":
                break
        else:
            pytest.skip("this kernel hides what a thread stands at")
        watch.begin([process.pid])
        time.sleep(1.0)
        watch.end()
        assert (watch.blocked.shares() or {}).get(kind, 0.0) > 0.8
    finally:
        process.kill()
        process.join()


def looked_at(root: Path, *wchans: str) -> Blocked:
    """What ten looks at process 1 find, whose threads sleep in these functions; the first is its main thread."""
    for thread, wchan in enumerate(wchans, 1):
        (root / "1" / "task" / str(thread)).mkdir(parents=True)
        (root / "1" / "task" / str(thread) / "wchan").write_text(wchan)
    (root / "1" / "wchan").write_text(wchans[0])
    blocked = Blocked(str(root))
    for _ in range(10):
        blocked.look([1])
    return blocked


def test_a_thread_that_waits_for_threads_of_its_own_waits_for_what_they_fetch(tmp_path: Path) -> None:
    blocked = looked_at(tmp_path, "futex_do_wait", "hrtimer_nanosleep", "inet_csk_accept")
    assert blocked.shares() == {"device": 1.0}
    (tmp_path / "1" / "task" / "2" / "wchan").write_text("futex_do_wait")
    for _ in range(10):
        blocked.look([1])
    assert blocked.shares() == {"device": 0.5, "lock": 0.5}


@pytest.mark.parametrize("wchan", ["do_epoll_wait", "poll_schedule_timeout.constprop.0", "do_select"])
def test_a_thread_that_waits_for_an_own_thread_that_polls_waits_for_a_device(tmp_path: Path, wchan: str) -> None:
    assert looked_at(tmp_path, "futex_do_wait", wchan, "futex_do_wait").shares() == {"device": 1.0}


def test_a_thread_that_waits_for_an_event_loop_and_its_working_pool_waits_for_own_threads(tmp_path: Path) -> None:
    assert looked_at(tmp_path, "futex_do_wait", "do_epoll_wait", "0").shares() == {"own_threads": 1.0}
    assert looked_at(tmp_path / "without a loop", "futex_do_wait", "0").shares() == {"lock": 1.0}


def test_counts_of_many_processes_become_one(tmp_path: Path) -> None:
    blocked = Blocked(str(tmp_path))
    for pid in range(3 * MOST_APART):
        blocked._count(pid, "queue")
    assert blocked.shares() == {"queue": 1.0}
    assert sum(seen.total() for seen in blocked._seen.values()) == 3 * MOST_APART
    assert len(blocked._seen) <= MOST_APART


def test_how_late_timed_waits_end_is_averaged_until_the_warm_up_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = BlockedThread()
    assert watch.gil_wait_s is None
    now_s = iter([0.0, 0.052, 1.0, 1.056, 2.0, 2.049])
    monkeypatch.setattr("loaderbench.monitors.blocked.time", SimpleNamespace(monotonic=lambda: next(now_s)))
    monkeypatch.setattr(watch._done, "wait", lambda _: False)
    assert not watch._is_over()
    assert not watch._is_over()
    assert watch.gil_wait_s == pytest.approx(0.004)
    watch.forget()
    assert watch.gil_wait_s is None
    assert not watch._is_over()
    assert watch.gil_wait_s == 0


def test_later_samples_are_rarer_and_have_more_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, pauses_s = BlockedThread(), list[float]()
    monkeypatch.setattr(watch._done, "wait", lambda pause_s: pauses_s.append(pause_s) or len(pauses_s) > 500)
    monkeypatch.setattr(watch.blocked, "_kind", lambda _: "lock" if len(pauses_s) <= 250 else "queue")
    watch._pids = [1]
    monkeypatch.setattr(watch.blocked, "_cause_of_lock_wait", lambda _: "lock")
    watch._run()
    assert pauses_s == [INTERVAL_S] * 250 + [RARE_INTERVAL_S] * 251
    frequent_s, rare_s = 250 * INTERVAL_S, 250 * RARE_INTERVAL_S
    assert watch.blocked.shares() == pytest.approx({"lock": 1 - rare_s / (frequent_s + rare_s), "queue": 0.8})


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="numbers of Linux on x86-64")
@pytest.mark.parametrize(("limit_s", "kind"), [(5, QUEUE), (10, DEVICE), (1, DEVICE)])
def test_a_worker_that_polls_with_another_limit_than_torch_s_waits_for_a_device(limit_s: int, kind: str) -> None:
    code = f"import multiprocessing\nours, theirs = multiprocessing.Pipe()\nprint(flush=True)\nours.poll({limit_s})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.2)
        folder = f"/proc/{process.pid}"
        if not Path(folder, "syscall").read_text().startswith("7 "):
            pytest.skip("this kernel hides the system call")
        assert (kind_at(folder), kind_at_worker(folder)) == (QUEUE, kind)
        process.kill()
