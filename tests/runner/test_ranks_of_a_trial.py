"""A trial of several ranks: torch's launcher starts them, they are measured together, and one that fails is named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image

from loaderbench.environment import describe_machine
from loaderbench.records import PlannedTrial, Trial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer, rank_launch
from loaderbench.suite import Suite

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="ranks are forked")

TARGETS = """
import os, signal, time, torch
from torch import distributed

class Samples(torch.utils.data.Dataset):
    def __init__(self, length, slow=0.0): self.length, self.slow, self.seen = length, slow, 0
    def __len__(self): return self.length
    def __getitem__(self, index):
        self.seen += 1
        time.sleep(self.slow)
        return torch.full((3, 64, 64), float(index)), index % 10

class Fails(Samples):
    def __init__(self, how): super().__init__(10_000); self.how = how
    def __getitem__(self, index):
        if distributed.get_rank() == 1 and self.seen == 40:
            self.how()
        return super().__getitem__(index)

class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        for index in range(100_000):
            yield torch.full((3, 64, 64), float(index)), index % 10

def some(length=10_000, slow_rank=-1):
    return Samples(length, 0.01 if distributed.get_rank() == slow_rank else 0.0)
def raises(): return Fails(lambda: int("x"))
def killed(): return Fails(lambda: os.kill(os.getpid(), signal.SIGKILL))
def exits(): return Fails(lambda: os._exit(0))
def hangs(): return Fails(lambda: time.sleep(1000))
def late():
    if distributed.get_rank() == 1: time.sleep(1000)
    return Samples(10_000)
def stream(): return Stream()
def step(batch): time.sleep(0.01)

def few():
    batch = torch.zeros(4, 3, 64, 64), torch.zeros(4, dtype=torch.long)
    return (batch for _ in range(8)) if distributed.get_rank() else some()
"""
KILLED = """
import sys, time
from pathlib import Path
from loaderbench.environment import describe_machine
from loaderbench.records import PlannedTrial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer
from loaderbench.suite import Suite

server, here = TrialServer(), Path.cwd()
suite = Suite.model_validate({"dataset": {"kind": "target", "target": "lb_ranks:some"}, "measure": {"seconds": 1000}})
planned = PlannedTrial(id="t", role="sweep", config={"ranks": 2, "num_workers": 1}, round=1)
order = TrialOrder(planned, suite, here, (), "none", here / "t.log")
TrialRunner(server, describe_machine(server.method, (), {})).run(order)
"""
EMULATED = {"kind": "emulated", "demand": 400}
MODEL = {"kind": "model", "model": "squeezenet1_1", "device": "cpu"}

Measure = Callable[..., Trial]


@pytest.fixture(scope="module")
def runner() -> TrialRunner:
    server = TrialServer()
    return TrialRunner(server, describe_machine(server.method, (), {}))


@pytest.fixture
def measured(runner: TrialRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Measures a target in two ranks, or as the configuration says."""
    (tmp_path / "lb_ranks.py").write_text(TARGETS)
    monkeypatch.chdir(tmp_path)

    def measure(
        target: str,
        consumer: dict[str, Any] | None = None,
        *,
        timeout_s: float = 60,
        seconds: float = 0.3,
        **config: Any,
    ) -> Trial:
        args = {name: config.pop(name) for name in ("length", "slow_rank") if name in config}
        asked_for = {name: value for name, value in {"ranks": 2, "batch_size": 4, **config}.items() if value}
        dataset = {"kind": "target", "target": f"lb_ranks:{target}", "args": args}
        asked = {"seconds": seconds, "timeout_s": timeout_s}
        suite = Suite.model_validate({"dataset": dataset, "measure": asked, "consumer": consumer or {"kind": "none"}})
        planned = PlannedTrial(id="t", role="sweep", config=asked_for, round=1)
        kind = suite.consumer.kind
        return runner.run(TrialOrder(planned, suite, tmp_path, (), kind, tmp_path / "t.log")).trial

    return measure


def test_each_rank_is_read_and_their_rates_add_up(measured: Measure) -> None:
    trial = measured("some", num_workers=1)

    assert trial.status == "completed", trial.failure
    assert [rank.rank for rank in trial.ranks] == [0, 1]
    assert trial.samples_per_s == pytest.approx(sum(rank.samples_per_s or 0 for rank in trial.ranks))
    assert trial.samples_per_epoch == 10_000
    assert [rank.samples_per_epoch for rank in trial.ranks] == [5_000, 5_000]
    assert all(rank.stages and rank.workers and rank.workers.count == 1 for rank in trial.ranks)
    assert trial.machine
    assert trial.machine.ranks == 2
    assert trial.consumer_note is None
    assert not list(Path.cwd().glob("*.launcher"))


def test_gpus_are_hidden_only_while_the_launcher_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    with rank_launch._gpus_hidden():
        assert (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["HIP_VISIBLE_DEVICES"]) == ("", "")
    assert (os.environ["CUDA_VISIBLE_DEVICES"], "HIP_VISIBLE_DEVICES" in os.environ) == ("MIG-1", False)


def test_a_slow_rank_is_the_slowest(measured: Measure) -> None:
    trial = measured("some", slow_rank=1)

    assert trial.slowest_rank == 1
    assert trial.data_wait_share == trial.ranks[1].data_wait_share


@pytest.mark.parametrize("consumer", [pytest.param(MODEL, marks=pytest.mark.slow), EMULATED], ids=["model", "emulated"])
def test_ranks_that_train_together_take_the_same_steps_and_wait_for_one_another(
    measured: Measure, consumer: dict[str, Any]
) -> None:
    trial = measured("some", consumer, slow_rank=1, seconds=3 if consumer is MODEL else 1)

    assert trial.status == "completed", trial.failure
    fast, slow = trial.ranks
    assert (fast.warmup_batches or 0) + (fast.batches or 0) == (slow.warmup_batches or 0) + (slow.batches or 0)
    assert (slow.data_wait_share or 0) > (fast.data_wait_share or 0)
    assert (fast.rank_wait_share or 0) > (slow.rank_wait_share or 0)


def test_ranks_may_have_a_step_of_the_user_without_any_gpu(measured: Measure) -> None:
    trial = measured("some", {"kind": "target", "target": "lb_ranks:step"})

    assert trial.status == "completed", trial.failure
    assert [rank.rank for rank in trial.ranks] == [0, 1]


def test_an_iterable_that_does_not_divide_its_samples_is_noted(measured: Measure) -> None:
    trial = measured("stream")

    assert trial.status == "completed", trial.failure
    assert "Every rank loads the same samples" in (trial.consumer_note or "")


@pytest.mark.parametrize(
    ("target", "kind", "said"),
    [
        ("raises", "error", "ValueError"),
        ("killed", "process_killed", "signal 9"),
        ("exits", "process_exited", "exited with code 0"),
    ],
)
def test_a_rank_that_fails_is_named_with_its_log(measured: Measure, target: str, kind: str, said: str) -> None:
    trial = measured(target)

    assert trial.failure
    assert trial.failure.kind == kind
    assert trial.failure.rank == 1
    assert trial.failure.message.startswith("rank 1: ")
    assert said in trial.failure.message
    assert trial.log == "logs/t-rank1.log"
    assert _no_rank_lives()


@pytest.mark.slow
@pytest.mark.parametrize("consumer", [None, MODEL])
def test_a_rank_that_hangs_is_named_within_the_time_limit(measured: Measure, consumer: dict[str, Any] | None) -> None:
    trial = measured("hangs", consumer, timeout_s=8 if consumer is None else 15)  # a model's first step takes long

    assert trial.status == "timed_out"
    assert trial.failure
    assert trial.failure.rank == 1
    assert "is in" in trial.failure.message
    assert _no_rank_lives()


@pytest.mark.slow
def test_a_rank_that_is_late_is_named(measured: Measure) -> None:
    trial = measured("late", timeout_s=6)

    assert trial.failure
    assert trial.failure.rank == 1
    assert "building the dataset" in trial.failure.message


def test_fewer_samples_than_ranks_is_said_in_one_line(measured: Measure) -> None:
    trial = measured("some", length=1)

    assert trial.failure
    assert "1 sample for 2 ranks" in trial.failure.message


@pytest.mark.slow
def test_a_rank_that_runs_out_of_data_ends_the_training_of_all(measured: Measure) -> None:
    trial = measured("few", MODEL, batch_size=None)

    assert trial.failure
    assert trial.failure.rank == 1
    assert "ran out of data after" in trial.failure.message


@pytest.mark.slow
def test_nothing_is_left_of_ranks_whose_run_is_killed(tmp_path: Path) -> None:
    (tmp_path / "lb_ranks.py").write_text(TARGETS)
    run = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path)
    until_s = time.monotonic() + 120
    while not all((tmp_path / f"t-rank{rank}.log").exists() for rank in (0, 1)):
        assert time.monotonic() < until_s, "the ranks were not started"
        time.sleep(0.05)
    below = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGKILL)
    run.wait()

    _gone, alive = psutil.wait_procs(below, timeout=30)
    assert not alive


def _no_rank_lives() -> bool:
    """Whether no process of this one's has a rank's environment; a forked one shows it in its open logs alone."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, OSError):
            if "-rank" in str(Path(f"/proc/{child.pid}/fd/2").readlink()):
                return False
    return True


@pytest.mark.slow
@pytest.mark.timed  # the memory in /dev/shm is that of all processes
def test_ranks_share_one_cache_of_decoded_images(runner: TrialRunner, tmp_path: Path) -> None:
    files = []
    for number in range(24):
        Image.new("RGB", (256, 256), (number, 0, 0)).save(file := tmp_path / f"{number}.jpg")
        files.append((str(file), 0))
    suite = Suite.model_validate(
        {
            "dataset": {"image_cache": "shared_memory"},
            "measure": {"seconds": 0.5},
            "consumer": {"kind": "none"},
        }
    )
    shared = {}
    for ranks in (1, 2):
        planned = PlannedTrial(id=f"t{ranks}", role="sweep", config={"ranks": ranks, "batch_size": 4}, round=1)
        order = TrialOrder(planned, suite, tmp_path, tuple(files), "none", tmp_path / f"t{ranks}.log")
        trial = runner.run(order).trial
        assert trial.status == "completed", trial.failure
        shared[ranks] = trial.shm_peak_bytes or 0

    cached = 24 * 3 * 256 * 256
    assert shared[1] >= cached
    assert shared[2] < shared[1] + cached / 2
