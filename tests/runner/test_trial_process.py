"""A trial in time slices: nothing of it runs between them, and its rate is that of its own time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import psutil
import pytest

from loaderbench.environment import describe_machine
from loaderbench.records import Failure, PlannedTrial
from loaderbench.runner import Begun, TrialOrder, TrialRunner, TrialServer, trial_process
from loaderbench.runner.patience import PAUSED_S
from loaderbench.runner.processes import signal_all
from loaderbench.runner.protocol import Result
from loaderbench.runner.trial_process import TrialProcess
from loaderbench.suite import Suite

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="time slices are measured on Linux")

TARGETS = """
import os, subprocess, time, torch
from loaderbench.loaders import LOADER_BACKENDS, Batches, LoaderBackend

class Work(torch.utils.data.Dataset):
    def __init__(self, fails_after=None): self.count, self.fails_after = 0, fails_after
    def __len__(self): return 100_000
    def __getitem__(self, index):
        self.count += 1
        if self.fails_after and self.count > self.fails_after: raise ValueError("this sample is broken")
        for _ in range(20_000): pass
        return torch.zeros(8)

class Slow(Work):
    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.zeros(8)

class Once(torch.utils.data.IterableDataset):
    def __iter__(self):
        work = Work()
        for index in range(3_000 if not os.path.exists("over") else 0): yield work[index]
        open("over", "w").close()

class OwnBatches(Batches):
    def worker_pids(self): return [WORKER.pid]

class Own(LoaderBackend):
    def build(self, source, arguments, *, seed): return OwnBatches(source)

def own_workers():
    global WORKER
    WORKER, LOADER_BACKENDS["own"] = subprocess.Popen(["sleep", "1000"]), Own()
    return batches()

def work(fails_after=None): return Work(fails_after)
def slow(): return Slow()
def once(): return Once()
def timed(): return torch.utils.data.DataLoader(Work(), batch_size=4, num_workers=1, timeout=30)
def batches(): return [torch.zeros(4, 8) for _ in range(10_000)]
"""
KILLED = """
import sys, time
from pathlib import Path
from loaderbench.environment import describe_machine
from loaderbench.records import PlannedTrial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer
from loaderbench.runner.guard import guard
from loaderbench.suite import Suite

server, here = TrialServer(), Path.cwd()
suite = Suite.model_validate({"dataset": {"kind": "target", "target": "lb_sliced:work"}, "measure": {"seconds": 0.1}})
planned = PlannedTrial(id="t", role="sweep", config={"num_workers": 2}, round=1)
order = TrialOrder(planned, suite, here, (), "none", here / "log", in_time_slices=True)
with guard(server) as watched:
    process = TrialRunner(server, describe_machine(server.method, (), {})).begin(order).process
    watched.watch(process.session)
    process.follow()
    process.run_slice(0.05)
    print(process.is_stopped, *process._pids, flush=True)
    time.sleep(1000)
"""

Begin = Callable[..., Begun]


@pytest.fixture(scope="module")
def runner() -> TrialRunner:
    server = TrialServer()
    return TrialRunner(server, describe_machine(server.method, (), {}))


@pytest.fixture
def begin(runner: TrialRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Begins a trial and follows it to its result; whatever comes of it is ended."""
    (tmp_path / "lb_sliced.py").write_text(TARGETS)
    monkeypatch.chdir(tmp_path)
    begun: list[Begun] = []

    def begin(name: str, config: dict[str, Any], consumer: dict[str, Any] | None = None, **args: Any) -> Begun:
        dataset = {"kind": "target", "target": f"lb_sliced:{name}", "args": args}
        told = {"dataset": dataset, "measure": {"seconds": 0.1}, "consumer": consumer or {"kind": "none"}}
        suite = Suite.model_validate(told)
        planned = PlannedTrial(id=f"t{len(begun)}", role="sweep", config=config, round=1)
        log = tmp_path / f"log{len(begun)}"
        begun.append(
            runner.begin(TrialOrder(planned, suite, tmp_path, (), suite.consumer.kind, log, in_time_slices=True))
        )
        begun[-1].process.follow()
        return begun[-1]

    yield begin
    for each in begun:
        each.process.end(at_once=True)


def used(pids: list[int]) -> list[Any]:
    return [psutil.Process(pid).cpu_times() for pid in pids]


def wait_until_stopped(pids: Sequence[int]) -> None:
    """Wait for every thread: each stops when it next leaves the kernel, the main thread often before the others."""
    deadline_s = time.monotonic() + 60
    while not all(state == "T" for pid in pids for state in thread_states(pid)):
        assert time.monotonic() < deadline_s, "a thread still runs"
        time.sleep(0.01)


def thread_states(pid: int) -> list[str]:
    return [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]


SPAWN = pytest.param(1, "spawn", marks=pytest.mark.slow)


@pytest.mark.parametrize(("workers", "method"), [(0, None), (2, "fork"), (1, "forkserver"), SPAWN])
def test_between_its_time_slices_nothing_of_it_runs(begin: Begin, workers: int, method: str | None) -> None:
    process = begin("work", {"batch_size": 4, "num_workers": workers, "multiprocessing_context": method}).process
    assert process.is_stopped
    for _ in range(3):
        process.run_slice(0.1)
        assert len(process._pids) >= 1 + workers
        wait_until_stopped(process._pids)
        before, taken = used(process._pids), process.slices()
        time.sleep(0.3)
        assert used(process._pids) == before
        assert process.slices() == taken
    assert taken.count == 3
    assert taken.samples == 4 * taken.batches > 0
    assert taken.batches % max(1, workers) == 0
    assert 0 < taken.seconds <= process.sliced_s


def test_the_time_that_it_stood_still_is_not_its_own(begin: Begin) -> None:
    process = begin("work", {"batch_size": 4, "num_workers": 1}).process
    for _ in range(4):
        process.run_slice(0.1)
        time.sleep(0.4)
    slices = process.slices()
    assert slices.seconds <= process.sliced_s < 1.6
    process.run_slice(0.1)
    assert process.slices().seconds > slices.seconds


@pytest.mark.slow
@pytest.mark.parametrize("all_paused", [True, False])
def test_a_pause_counts_only_if_the_trial_ran_on_meanwhile(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, all_paused: bool
) -> None:
    """Ctrl-Z suspends the command alone, and a closed lid everything."""
    process = begin("work", {"batch_size": 4, "num_workers": 1}).process
    process.run_slice(0.2)
    before = process.slices()

    def late(waited: Any, timeout: float) -> Any:
        found = wait(waited, timeout)
        if all_paused:
            signal_all(process._pids, "SIGSTOP")
        time.sleep(PAUSED_S + 0.5)
        return found

    monkeypatch.setattr(trial_process, "wait", late)
    process.run_slice(0.2)
    seconds = process.slices().seconds - before.seconds
    assert (seconds > PAUSED_S) is not all_paused
    assert (process.sliced_s > PAUSED_S) is not all_paused


def test_an_emulated_accelerator_stands_still_with_the_loop(begin: Begin) -> None:
    process = begin("work", {"batch_size": 4, "num_workers": 1}, {"kind": "emulated", "demand": 100}).process
    for _ in range(10):
        process.run_slice(0.1)
        time.sleep(0.1)
    slices = process.slices()
    assert slices.samples <= 100 * slices.seconds * 1.01 + 2 * 4  # it is at most two batches behind


def test_the_record_has_the_rate_of_the_time_slices(begin: Begin, runner: TrialRunner) -> None:
    each = begin("work", {"batch_size": 4, "num_workers": 1})
    for _ in range(4):
        each.process.run_slice(0.05)
    slices = each.process.slices()
    each.process.end()
    trial = runner.outcome(each, slices).trial
    assert trial.status == "completed"
    assert trial.time_slices == slices
    assert trial.samples_per_s == slices.samples / slices.seconds
    assert "time_slices" not in trial.not_measured
    assert runner.outcome(each).trial.not_measured["time_slices"]


def test_it_may_fail_in_its_time_slice(begin: Begin, runner: TrialRunner) -> None:
    each = begin("work", {"batch_size": 4, "num_workers": 0}, fails_after=2_000)
    while each.process.is_stopped:
        each.process.run_slice(0.2)
    assert isinstance(each.process.found, Failure)
    each.process.end()
    failure = runner.outcome(each, each.process.slices()).trial.failure
    assert failure is not None
    assert "this sample is broken" in failure.message


def test_a_trial_killed_right_after_its_result_is_a_failure(
    begin: Begin, runner: TrialRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = TrialProcess._stop

    def kill_and_stop(process: TrialProcess) -> None:
        if not process._count:
            os.kill(process.session, signal.SIGKILL)
            process._process.join()
        stop(process)

    monkeypatch.setattr(TrialProcess, "_stop", kill_and_stop)
    each = begin("work", {"batch_size": 4, "num_workers": 0})
    each.process.run_slice(0.2)
    assert not each.process.is_stopped
    each.process.end()
    failure = runner.outcome(each).trial.failure
    assert failure is not None
    assert failure.kind == "process_killed"


def test_a_loader_that_ends_in_its_time_slice_takes_no_more(begin: Begin) -> None:
    process = begin("once", {"batch_size": 4, "num_workers": 0}).process
    while process.is_stopped:
        process.run_slice(0.2)
    assert not isinstance(process.found, Failure)


@pytest.mark.parametrize("name", ["slow", "timed", "batches"])
def test_what_would_win_or_fail_by_being_stopped_has_no_time_slices(begin: Begin, name: str) -> None:
    config = {"batch_size": 4, "num_workers": 1} if name == "slow" else {}
    process = begin(name, config).process
    assert not isinstance(process.found, Failure)
    assert not process.is_stopped


def test_workers_that_a_backend_started_by_itself_are_stopped_too(begin: Begin) -> None:
    found = begin("own_workers", {"loader": "own"}).process.found
    assert isinstance(found, Result)
    wait_until_stopped(found.worker_pids)


@pytest.mark.slow
def test_a_stopped_trial_ends_with_the_run_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "lb_sliced.py").write_text(TARGETS)
    run = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    stands_still, *pids = run.stdout.readline().split()
    assert stands_still == "True"
    assert len(pids) == 3
    run.kill()
    run.wait()
    deadline = time.monotonic() + 60
    while any(_is_alive(int(pid)) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_a_stopped_trial_ends_with_the_run_that_is_interrupted_while_it_ends_others(tmp_path: Path) -> None:
    """A process that is stopped cannot see that the run is over, and Python waits for it at its own end."""
    (tmp_path / "lb_sliced.py").write_text(TARGETS)
    code = KILLED.replace("time.sleep(1000)", "raise KeyboardInterrupt")
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    stands_still, *pids = run.stdout.split()
    assert (stands_still, len(pids)) == ("True", 3)
    assert not any(_is_alive(int(pid)) for pid in pids)


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
