"""All programs together, and this one among them."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections import namedtuple
from contextlib import ExitStack
from typing import Any

import pytest

from loaderbench.cpu_lists import allowed_cpus
from loaderbench.monitors import machine, proc
from loaderbench.monitors.machine import MachineWatch, ProgramUse, busy_s, other_ranks, use_of_this_program
from loaderbench.records import MachineUse


def _burn(seconds: float) -> None:
    until_s = time.process_time() + seconds
    while time.process_time() < until_s:
        pass


def test_what_this_program_and_its_children_use_is_theirs() -> None:
    watch = MachineWatch()
    watch.begin()
    child = multiprocessing.get_context("fork").Process(target=_burn, args=(5.0,), daemon=True)
    child.start()
    _burn(0.6)
    watch.look()
    use = watch.use()
    child.kill()
    child.join()
    assert use is not None
    assert use.processes >= 1  # other tests may have left some of theirs
    assert 0 < use.own_cpus <= len(allowed_cpus()) + 0.2
    assert use.busy_cpus <= use.cpus == len(allowed_cpus())
    assert use.idle_cpus + use.busy_cpus == use.cpus
    assert use.not_measured.keys() == {name for name in vars(use) if getattr(use, name) is None}


def _burn_in_child_processes() -> None:
    for _ in range(4):
        child = multiprocessing.get_context("fork").Process(target=_burn, args=(0.2,))
        child.start()
        child.join()
    time.sleep(30)


@pytest.mark.skipif(not proc.available(), reason="no /proc with lists of children here")
def test_programs_that_a_worker_started_and_waited_for_belong_to_this_program() -> None:
    before_s = use_of_this_program().cpu_s
    worker = multiprocessing.get_context("fork").Process(target=_burn_in_child_processes, daemon=False)
    worker.start()
    try:
        for _ in range(300):
            if (used_s := use_of_this_program().cpu_s - before_s) >= 0.5:
                break
            time.sleep(0.1)
        assert used_s >= 0.5
    finally:
        worker.kill()
        worker.join()


def test_the_time_between_two_parts_does_not_count() -> None:
    watch = MachineWatch()
    watch.begin()
    time.sleep(0.2)
    watch.look()
    _burn(1.0)
    watch.resume()
    time.sleep(0.2)
    watch.look()
    use = watch.use()
    assert use is not None
    assert use.own_cpus < 0.5


def test_too_short_a_time_tells_nothing() -> None:
    watch = MachineWatch()
    assert watch.use() is None
    watch.begin()
    watch.look()
    assert watch.use() is None


@pytest.mark.parametrize(
    ("began", "last", "share"),
    [
        ({"a": (100, 10)}, {"a": (120, 25)}, 0.75),
        ({"outer": (100_000, 5_000), "inner": (10, 0)}, {"outer": (100_100, 5_000), "inner": (110, 90)}, 0.9),
    ],
    ids=["one quota", "nested quotas"],
)
def test_the_share_of_throttled_periods_is_of_those_that_passed(began: Any, last: Any, share: float) -> None:
    told = iter([began, last])
    watch = MachineWatch(lambda: next(told))
    watch.begin()
    time.sleep(0.3)
    watch.look()
    use = watch.use()
    assert use is not None
    assert use.throttled_share == share


def machine_of(monkeypatch: pytest.MonkeyPatch, swap_kb: int, *counts: str) -> MachineUse:
    """What is read on a machine with this swap space, and with these counters one after the other."""
    texts = iter(counts)
    real = proc.read_text

    def read_text(path: str) -> str:
        if path == "/proc/meminfo":
            return f"MemTotal: 9 kB\nSwapTotal: {swap_kb} kB\n"
        return next(texts) if path == "/proc/vmstat" else real(path)

    monkeypatch.setattr(machine.proc, "read_text", read_text)
    watch = MachineWatch()
    watch.begin()
    time.sleep(0.3)
    watch.look()
    use = watch.use()
    assert use is not None
    return use


def test_what_comes_back_from_swap_is_counted_in_bytes_and_by_the_faults_that_asked_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use = machine_of(monkeypatch, 2048, "pswpin 100\nswap_ra 10\n", "pswpin 300\nswap_ra 110\n")
    assert use.swap_faults_per_s
    assert use.swapped_in_bytes_per_s == pytest.approx(2 * use.swap_faults_per_s * proc.PAGE_BYTES)
    assert not {"swap_faults_per_s", "swapped_in_bytes_per_s"} & use.not_measured.keys()


@pytest.mark.parametrize(
    ("swap_kb", "counts"), [(0, "pswpin 0\n"), (2048, "pgfault 9\n")], ids=["no swap", "uncounted"]
)
def test_a_system_that_swaps_nothing_in_has_a_reason(
    monkeypatch: pytest.MonkeyPatch, swap_kb: int, counts: str
) -> None:
    use = machine_of(monkeypatch, swap_kb, counts, counts)
    assert (use.swap_faults_per_s, use.swapped_in_bytes_per_s) == (None, None)
    assert use.not_measured["swap_faults_per_s"] == use.not_measured["swapped_in_bytes_per_s"] == machine.NO_SWAP


def test_counters_only_grow() -> None:
    before = busy_s(allowed_cpus()), use_of_this_program().cpu_s
    _burn(0.1)
    assert busy_s(allowed_cpus()) >= before[0]
    assert use_of_this_program().cpu_s > before[1]


def test_outside_of_a_distributed_training_there_are_no_other_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert other_ranks() == []


def test_processes_of_the_same_parent_that_are_no_ranks_are_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert os.getpid() not in other_ranks()
    assert all("RANK" in proc.environment_of(pid) for pid in other_ranks())


def test_a_program_that_inherits_the_variables_of_a_rank_is_no_other_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example `tee`, in a shell that exports `RANK` for `python train.py | tee log`."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "29555"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(machine.os, "getppid", os.getpid)
    with ExitStack() as started:
        pids = {}
        for rank in ("0", "1"):
            command = [sys.executable, "-c", "print(flush=True); input()"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            process = subprocess.Popen(command, env={**os.environ, "RANK": rank}, **pipes)
            started.callback(process.communicate, b"\n")
            assert process.stdout is not None
            assert process.stdout.readline()  # /proc has its variables by now
            pids[rank] = process.pid
        assert other_ranks() == [pids["1"]]


def test_cpus_are_found_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CPUs offline, or in containers that renumber them, a CPU's position in the list is not its number."""
    times = namedtuple("times", ["user", "idle"])
    monkeypatch.setattr(machine.psutil, "cpu_times", lambda **_: [times(1.0, 7.0), times(2.0, 7.0)])
    monkeypatch.setattr(machine.proc, "read_text", lambda _: "cpu  3 0\ncpu0 1 0\ncpu2 2 0\nintr 7\n")
    assert busy_s([0, 2]) == 3.0
    assert busy_s([2]) == 2.0
    assert busy_s([0, 1]) is None


def test_a_rank_that_ended_takes_nothing_from_the_others() -> None:
    before = ProgramUse({1: 3600.0, 2: 50.0}, 4, 2)
    assert ProgramUse({2: 53.0}, 2).since(before) == pytest.approx(3.0)
    assert ProgramUse({1: 3601.0, 2: 53.0, 3: 0.5}, 6, 3).since(before) == pytest.approx(4.5)
