"""What workers were doing: sums are tested on folders of text with a clock of our own, and once on real processes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from proc_folder import Machine

from loaderbench.monitors import WorkerWatch, proc
from loaderbench.records import WorkerStates

linux = pytest.mark.skipif(not proc.available(), reason="no /proc with lists of children here")


def test_the_time_of_child_programs_is_a_share_of_the_time_of_all_workers(machine: Machine) -> None:
    machine.put(1, waited=(100, 10))
    machine.put(2)
    machine.read(1, 2)
    machine.put(1, waited=(100 + proc.TICKS_PER_S // 2, 10 + proc.TICKS_PER_S // 4))
    machine.put(2)
    machine.read(1, 2)
    assert machine.states().children_cpu_share == pytest.approx(0.75 / 2)


def test_times_are_shares_of_the_main_threads_over_all_workers(machine: Machine) -> None:
    machine.put(1, run=5000, wait=100, others=(10,))
    machine.put(2, run=9000)
    machine.read(1, 2)
    machine.put(1, run=5900, wait=150, others=(210, 40))  # its second other thread was born meanwhile
    machine.put(2, run=9100, wait=450)
    machine.read(1, 2)
    found = machine.states()
    assert (found.on_cpu_share, found.run_queue_share) == (pytest.approx(0.5), pytest.approx(0.25))
    assert found.other_threads_cpu_share == pytest.approx((0.2 + 0.04) / 2)
    assert (found.count, found.threads_per_worker) == (2, 2.0)
    assert found.mean_count == pytest.approx(2)


def test_threads_that_send_batches_are_a_known_part_of_the_other_threads(machine: Machine) -> None:
    machine.put(1, run=5000, others=(10, 10))
    machine.put(2, run=9000, others=(10,))
    machine.read(1, 2, senders=(9000,))
    machine.put(1, run=5500, others=(210, 310))
    machine.put(2, run=9500, others=(110,))
    machine.read(1, 2, senders=(9000,))
    found = machine.states()
    assert found.other_threads_cpu_share == pytest.approx((0.2 + 0.3 + 0.1) / 2)
    assert found.sending_cpu_share == pytest.approx((0.2 + 0.1) / 2)
    assert found.sending_threads == pytest.approx(0.2 + 0.1)
    assert found.runnable_threads == pytest.approx(0.5 + 0.2 + 0.3 + 0.5 + 0.1)


def test_threads_that_are_known_to_send_only_at_the_end_count_from_the_beginning(machine: Machine) -> None:
    machine.put(1, run=5000, others=(10, 10))
    machine.read(1)
    machine.put(1, run=5500, others=(210, 310))
    machine.read(1)
    found = machine.watch.states({9001, 4})
    assert found is not None
    assert found.sending_cpu_share == pytest.approx(0.3)
    assert found.sending_threads == pytest.approx(0.3)


def test_without_a_known_sender_its_part_is_missing_with_a_reason(machine: Machine) -> None:
    machine.put(1, others=(10,))
    machine.read(1)
    machine.read(1)
    found = machine.states()
    assert (found.sending_cpu_share, found.sending_threads) == (None, None)
    assert {"sending_cpu_share", "sending_threads"} <= found.not_measured.keys()


def test_a_worker_that_ends_before_the_others_is_missing_from_their_mean_number(machine: Machine) -> None:
    for pid in (1, 2):
        machine.put(pid)
    machine.read(1, 2)
    machine.read(1, 2, after_s=1)
    machine.read(1, after_s=2)
    machine.read(1, after_s=1)
    found = machine.states()
    assert (found.count, found.mean_count) == (2, pytest.approx(1 + 1 / 4))


def test_a_longer_interval_weighs_more(machine: Machine) -> None:
    machine.put(1, run=1000)
    machine.read(1)
    machine.put(1, run=2000)
    machine.read(1, after_s=1)
    machine.read(1, after_s=3)
    assert machine.states().on_cpu_share == pytest.approx(1 / 4)


def test_faults_count_per_second_of_one_clock_however_many_workers_there_are(machine: Machine) -> None:
    for pid in (1, 2):
        machine.put(pid)
    machine.read(1, 2)
    for pid in (1, 2):
        machine.put(pid, faults=(600, 4))
    machine.read(1, 2, after_s=2)
    found = machine.states()
    assert (found.minor_faults_per_s, found.major_faults_per_s) == (pytest.approx(600), pytest.approx(4))


def test_what_a_disk_had_to_give_is_no_hit(machine: Machine) -> None:
    machine.put(1, io=(1 << 20, 0))
    machine.read(1)
    machine.put(1, io=(5 << 20, 1 << 20))
    machine.read(1)
    assert machine.states().page_cache_hit_share == pytest.approx(0.75)


def test_more_from_the_disk_than_was_asked_for_is_no_hit_at_all(machine: Machine) -> None:
    machine.put(1)
    machine.read(1)
    machine.put(1, io=(1 << 20, 9 << 20))
    machine.read(1)
    assert machine.states().page_cache_hit_share == 0


@pytest.mark.parametrize(
    ("io", "why"), [(None, "/proc/<pid>/io"), ((64 * 1024 - 1, 0), "less than 64 KiB")], ids=["hidden", "little read"]
)
def test_page_cache_hits_that_cannot_be_told_have_a_reason(
    machine: Machine, io: tuple[int, int] | None, why: str
) -> None:
    machine.put(1, io=None if io is None else (0, 0))
    machine.read(1)
    machine.put(1, io=io)
    machine.read(1)
    found = machine.states()
    assert found.page_cache_hit_share is None
    assert why in found.not_measured["page_cache_hit_share"]


def test_workers_that_end_keep_what_was_seen_of_them_and_new_ones_are_added(machine: Machine) -> None:
    machine.put(1, run=100)
    machine.read(1)
    machine.put(1, run=1100)
    machine.read(1)
    machine.remove(1)
    machine.put(2, run=7000)
    machine.read(1, 2)
    machine.read(1, 2)
    found = machine.states()
    assert found.on_cpu_share == pytest.approx(1 / 2)
    assert found.count == 1


def test_nothing_counts_between_a_pause_and_the_next_reading(machine: Machine) -> None:
    machine.put(1, run=100)
    machine.read(1)
    machine.read(1)
    machine.watch.pause()
    machine.put(1, run=99_000, faults=(99, 99))
    machine.read(1, after_s=99)
    machine.read(1)
    found = machine.states()
    assert (found.on_cpu_share, found.minor_faults_per_s) == (0, 0)


def test_counters_that_fall_are_not_let_in(machine: Machine) -> None:
    machine.put(1, run=900, wait=900, others=(900, 900), faults=(900, 900), io=(1 << 20, 1 << 20))
    machine.read(1)
    machine.put(1, run=100, wait=400, others=(100,), faults=(3, 3), io=(0, 0))
    machine.read(1)
    found = machine.states()
    assert (found.on_cpu_share, found.run_queue_share, found.other_threads_cpu_share) == (0, 0, 0)
    assert (found.minor_faults_per_s, found.major_faults_per_s, found.page_cache_hit_share) == (0, 0, None)


def test_bytes_that_fall_take_nothing_from_what_was_read_since(machine: Machine) -> None:
    for asked in (9 << 20, 0, 1 << 20):
        machine.put(1, io=(asked, asked // 2))
        machine.read(1)
    assert machine.states().page_cache_hit_share == pytest.approx(0.5)


def test_another_process_of_the_same_number_begins_anew(machine: Machine) -> None:
    machine.put(1, run=100, began=7)
    machine.read(1)
    machine.put(1, run=900, began=8)
    machine.read(1)
    assert machine.watch.states() is None


def test_more_time_than_went_by_leaves_nothing_blocked(machine: Machine) -> None:
    machine.put(1)
    machine.read(1)
    machine.put(1, run=701, wait=700)  # a wait that began before the first reading is added when it ends
    machine.read(1)
    found = machine.states()
    assert (found.on_cpu_share, found.run_queue_share) == (pytest.approx(0.7), pytest.approx(0.3))


def test_a_zombie_is_gone(machine: Machine) -> None:
    machine.put(1, state="Z")
    machine.read(1)
    machine.read(1)
    assert machine.watch.states() is None


def test_why_there_are_no_states_is_said(machine: Machine) -> None:
    assert WorkerWatch(str(machine.root / "nothing")).why_not() == "worker states need Linux and its /proc"
    machine.put(1)
    machine.read(1)
    assert machine.watch.states() is None
    assert machine.watch.why_not() == "no worker was read twice"
    machine.read(1)
    assert machine.watch.states() is not None
    assert machine.watch.why_not() == ""


@pytest.mark.parametrize("text", ["0 0 0\n", None], ids=["zeros", "no file"])
def test_a_kernel_without_scheduler_statistics_is_named(machine: Machine, text: str | None) -> None:
    machine.put(1)
    file = machine.root / "1" / "task" / "1" / "schedstat"
    file.unlink() if text is None else file.write_text(text)
    machine.read(1)
    machine.read(1)
    assert machine.watch.states() is None
    assert machine.watch.why_not() == "no scheduler statistics in this kernel"


def test_what_cannot_be_understood_raises_nothing_in_the_training_loop(machine: Machine) -> None:
    machine.put(1)
    (machine.root / "1" / "stat").write_text("no stat at all")
    machine.put(2)
    (machine.root / "2" / "io").write_text("rchar\n")
    machine.read(1, 2)
    machine.read(1, 2)
    assert machine.watch.states() is None


@contextmanager
def worker(code: str) -> Iterator[int]:
    """A real process that has begun to do what it is there for."""
    with subprocess.Popen([sys.executable, "-uc", f"print()\n{code}"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child.pid
        finally:
            child.kill()


def seen_of(pid: int) -> WorkerStates:
    """Half a second of a process; the wait of one that stood in the queue is told when it runs again."""
    watch = WorkerWatch()
    for _ in range(6):
        watch.read([pid])
        time.sleep(0.1)
    watch.read_memory([pid])
    found = watch.states()
    assert found is not None, watch.why_not()
    assert found.on_cpu_share + found.run_queue_share + found.blocked_share == pytest.approx(1)
    return found


@linux
def test_a_process_that_spins_runs_or_waits_for_a_cpu() -> None:
    with worker("while True: pass") as pid:
        found = seen_of(pid)
    assert found.on_cpu_share + found.run_queue_share > 0.5
    assert (found.count, found.threads_per_worker) == (1, 1)
    assert (found.pss_bytes or 0) > 100_000


@linux
def test_a_process_that_sleeps_is_blocked() -> None:
    with worker("import time; time.sleep(60)") as pid:
        assert seen_of(pid).blocked_share > 0.9


PINS = """
import ctypes, threading
def spin():
    ctypes.CDLL(None).prctl(15, b"pt_data_pin", 0, 0, 0)
    while True: pass
threading.Thread(target=spin).start()
"""


@linux
def test_the_thread_that_pins_memory_is_known_by_its_name() -> None:
    with worker(PINS) as pid:
        time.sleep(0.3)
        assert (seen_of(pid).pinning_share or 0) > 0.8


@linux
def test_without_such_a_thread_there_is_a_reason() -> None:
    with worker("while True: pass") as pid:
        found = seen_of(pid)
    assert found.pinning_share is None
    assert "no thread pins memory" in found.not_measured["pinning_share"]
