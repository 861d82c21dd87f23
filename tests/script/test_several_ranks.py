"""Distributed trainings that torch's launcher starts: one verdict for all ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scripts import HEAD, TORCHRUN, profile, write
from two_machines import ADDRESSES, possible, start_on, two_machines

from loaderbench.result import load

pytestmark = pytest.mark.slow


TRAINING = (
    HEAD
    + """\
from torch import distributed, nn

SLOW = os.environ.get('SLOW', '1').split(',')

def main():
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
    data = Slow(8000, float(os.environ.get('SLOW_S', 0.005)) if str(rank) in SLOW else 0.0005)
    sampler = torch.utils.data.DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, num_workers=1, sampler=sampler)
    for step, (inputs, labels) in enumerate(loader):
        nn.functional.cross_entropy(model(inputs), labels).backward()
        time.sleep(0.01)
        if step == 80:
            break
    distributed.destroy_process_group()

main()
"""
)

SLOW_STEPS = (
    HEAD
    + """\
from torch import distributed, nn

class Model(nn.Linear):
    def forward(self, inputs):
        time.sleep(0.05 if distributed.get_rank() == 1 else 0.01)
        return super().forward(inputs)

torch.set_num_threads(1)
distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(Model(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = Slow(8000, 0.0001)
loader = DataLoader(data, batch_size=8, num_workers=1, sampler=torch.utils.data.DistributedSampler(data))
for step, (inputs, labels) in enumerate(loader):
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    if step == 60:
        break
distributed.destroy_process_group()
"""
)

NO_GPU = """\
import os, torch
torch.cuda.device_count = lambda: 1  # and an error as CUDA raises with one

if os.environ["LOCAL_RANK"] == "1":
    raise RuntimeError("CUDA error: invalid device ordinal")
"""

DDP = "nn.parallel.DistributedDataParallel(nn.Linear(8, 4))"
AVERAGED = """\
class Averaged(nn.Linear):
    # As DistributedDataParallel, whose import of torch._dynamo takes a rank as long as that of torch.
    def __init__(self, *sizes):
        super().__init__(*sizes)
        for one in self.parameters():
            one.register_post_accumulate_grad_hook(lambda one: distributed.all_reduce(one.grad))

"""


def averaged(training: str) -> str:
    """A training whose ranks wait for each other in every step, without what PyTorch needs to compile."""
    head, imports, rest = training.partition("from torch import distributed, nn\n")
    return head + imports + AVERAGED + rest.replace(DDP, "Averaged(8, 4)")


TUNED = """\
import os, time, torch
from torch import distributed, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

class Slow(Dataset):
    def __len__(self): return 8000
    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.zeros(8), index % 4

distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = Slow()
loader = DataLoader(data, batch_size=8, num_workers=0, sampler=DistributedSampler(data))
for inputs, labels in loader:
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
"""

ASKED_IN_EACH = (
    HEAD
    + """\
import json
from torch import distributed, nn
from loaderbench import Profiler
from loaderbench.monitors.machine import other_ranks, use_of_this_program
from loaderbench.script.in_process import LoaderRecording

torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))


def train(recorded):
    data = Slow(8000, 0.005 if rank == 1 else 0.0005)
    sampler = torch.utils.data.DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, num_workers=1, sampler=sampler)
    for step, (inputs, labels) in enumerate(recorded(loader)):
        nn.functional.cross_entropy(model(inputs), labels).backward()
        time.sleep(0.01)
        if step == 80:
            break


def gather():
    profiler = Profiler("train", trace=True).start()
    train(profiler.iter)
    profiler.stop()
    return profiler.gather().to_dict()


def record():
    own = LoaderRecording(out="run")
    own.start()
    train(iter)
    own.finish()


def look_at_the_others():
    # One rank asks what it and the others use, before and after the other one computes.
    before, own_s = use_of_this_program(), time.process_time()
    distributed.barrier()
    if rank == 1:
        until_s = time.process_time() + 1
        while time.process_time() < until_s:
            pass
    distributed.barrier()
    if rank == 1:
        return None
    cpus, others = sorted(os.sched_getaffinity(0)), other_ranks()
    of_others_s = use_of_this_program().cpu_s - before.cpu_s - (time.process_time() - own_s)
    os.sched_setaffinity(0, cpus[:1])
    os.sched_setaffinity(others[0], cpus[1:] or cpus)
    apart = other_ranks()
    for pid in (0, *others):
        os.sched_setaffinity(pid, cpus)
    return {
        "cpus": len(cpus), "others": len(others), "apart": len(apart), "ranks": before.ranks,
        "of_others_s": of_others_s,
    }


said = {"seen": look_at_the_others()}
distributed.barrier()
said["gathered"] = gather()
distributed.barrier()
record()
with open(f"rank{rank}.json", "w") as file:
    json.dump(said, file)
distributed.barrier()
distributed.destroy_process_group()
"""
)


@dataclass(frozen=True)
class Asked:
    """Results of two ranks started by torchrun: their folder, their output, and the answers that each rank saved."""

    folder: Path
    printed: str
    answers: list[dict[str, Any]]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Each rank looks at the other one, then records itself with a profiler, then with a callback."""
    place = tmp_path_factory.mktemp("asked")
    command = [*TORCHRUN, str(write(place, averaged(ASKED_IN_EACH)))]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return Asked(place, done.stderr, [json.loads((place / f"rank{rank}.json").read_text()) for rank in (0, 1)])


def test_rank_0_tunes_on_its_share_of_the_cpus_and_all_ranks_end(tmp_path: Path) -> None:
    write(tmp_path, TUNED)
    command = ["tune", "--budget", "8s", "--out", "run", "--", *TORCHRUN, "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "loaderbench", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("loaderbench: tuning loader") == 1
    assert "Tuned loader: " in done.stderr
    tuned = load(tmp_path / "run").record
    cpus = len(os.sched_getaffinity(0))
    assert tuned.environment.cpus_allotted == max(1, cpus // 2)
    assert [one.rank for one in load(tmp_path / "run" / "script").ranks] == [0, 1]
    assert "CPU affinity" not in done.stderr


@pytest.mark.sleeping
def test_the_ranks_of_a_profiled_script_become_one_run_that_names_the_slow_one(tmp_path: Path) -> None:
    write(tmp_path, TRAINING)
    done = profile(tmp_path, "--out", "run", "--", *TORCHRUN, "train.py")
    assert done.returncode == 0, done.stderr
    assert [line[:22] for line in done.stderr.splitlines() if line.startswith("Loader:")] == ["Loader: rank 1: loader"]
    run = load(tmp_path / "run")
    assert run.verdict.rank == 1
    assert "rank 1 holds back rank 0" in done.stderr
    assert list((tmp_path / "run").glob("*/run.json")) == []
    fast, slow = run.ranks
    assert (fast.rank, slow.rank) == (0, 1)
    assert slow.data_wait_share > 0.5 > fast.data_wait_share
    assert fast.rank_wait_share > 0.3 > slow.rank_wait_share


@pytest.mark.sleeping
def test_a_rank_with_slow_steps_is_named_and_the_others_wait_for_it(tmp_path: Path) -> None:
    write(tmp_path, SLOW_STEPS)
    done = profile(tmp_path, "--out", "run", "--", *TORCHRUN, "train.py")
    assert done.returncode == 0, done.stderr
    run = load(tmp_path / "run")
    assert (run.verdict.bound, run.verdict.rank) == ("compute", 1)
    assert "rank 0 waits for the slow steps of rank 1" in done.stderr
    fast, slow = run.ranks
    assert slow.step_parts["forward"] > 0.5 > fast.step_parts["forward"]
    assert fast.step_parts["backward"] > 0.3 > slow.step_parts["backward"]


def test_machines_that_nobody_joins_are_one_line_after_the_launchers_own_words(tmp_path: Path) -> None:
    write(tmp_path, TRAINING)
    place = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-conf", "join_timeout=3"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", *place]
    done = profile(tmp_path, "--out", "run", "--", *torchrun, "train.py")
    assert done.returncode == 1
    assert "RendezvousTimeoutError" in done.stderr
    ours = [line for line in done.stderr.splitlines() if line.startswith("loaderbench: ")]
    assert [line.partition(";")[0] for line in ours] == [
        "loaderbench: no rank started: the other machines did not join in time"
    ]


def test_more_ranks_than_gpus_are_one_line(tmp_path: Path) -> None:
    write(tmp_path, NO_GPU)
    done = profile(tmp_path, "--out", "run", "--", *TORCHRUN, "train.py")
    assert done.returncode == 1
    ours = [line for line in done.stderr.splitlines() if line.startswith("loaderbench: ")]
    assert ours == [
        "loaderbench: a rank got no GPU: 2 ranks on a machine with 1 GPU; start one rank per GPU (--nproc-per-node 1)"
    ]


@pytest.mark.sleeping
def test_rank_0_gathers_what_all_ranks_recorded(asked: Asked) -> None:
    first, second = (answers["gathered"] for answers in asked.answers)
    assert [one["rank"] for one in first["ranks"]] == [0, 1]
    assert (first["verdict"]["rank"], first["trials"][0]["rank"]) == (1, 1)
    assert first["ranks"][0]["rank_wait_share"] > 0.3
    assert (second["ranks"], [trial["rank"] for trial in second["trials"]]) == ([], [1])


@pytest.mark.sleeping
def test_with_a_callback_in_each_rank_rank_0_writes_the_run_of_all(asked: Asked) -> None:
    assert [place.parent.name for place in asked.folder.glob("*/run.json")] == ["run"]
    assert [one.rank for one in load(asked.folder / "run").ranks] == [0, 1]
    assert asked.printed.count("Report: run/report.html") == 1


@pytest.mark.sleeping
def test_other_ranks_on_this_machine_are_no_other_programs(asked: Asked) -> None:
    seen = asked.answers[0]["seen"]
    assert (seen["others"], seen["ranks"]) == (1, 2)
    assert seen["apart"] == (1 if seen["cpus"] < 2 else 0), "a rank with CPUs of its own takes none of these"
    assert seen["of_others_s"] > 0.8


@pytest.mark.timed
@pytest.mark.skipif(not possible(), reason="needs root and iproute2")
def test_the_ranks_of_two_machines_become_one_run_on_the_first(tmp_path: Path) -> None:
    write(tmp_path, averaged(TRAINING))
    with two_machines() as machines:
        started = [
            start_on(machine, profile_of_machine(number), tmp_path, {"SLOW": "3", "SLOW_S": "0.02"})
            for number, machine in enumerate(machines)
        ]
        (_, first), (_, second) = (one.communicate(timeout=300) for one in started)
    assert [one.returncode for one in started] == [0, 0], first + second
    run = load(tmp_path / "run0")
    assert [(one.rank, one.host) for one in run.ranks] == [(0, "lb-a"), (1, "lb-a"), (2, "lb-b"), (3, "lb-b")]
    assert [(one.host, one.ranks) for one in run.record.hosts] == [("lb-a", 2), ("lb-b", 2)]
    assert run.record.all_hosts is not None
    assert (run.record.all_hosts.read_bytes_per_s or 0) > 0
    assert run.verdict.rank == 3
    assert "rank 3 on lb-b holds back the other 3 ranks" in first
    assert run.ranks[0].rank_wait_share > max(0.3, run.ranks[3].rank_wait_share)
    assert "holds back" not in second
    assert f"verdict for all ranks: on the machine of rank 0, {ADDRESSES['lb-a']}" in second
    assert len(load(tmp_path / "run1").ranks) == 2


def profile_of_machine(number: int) -> list[str]:
    """Two ranks of four on one of two machines."""
    where = ["--nnodes", "2", "--node-rank", str(number), "--nproc-per-node", "2"]
    store = ["--master-addr", ADDRESSES["lb-a"], "--master-port", "29517"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *where, *store, "train.py"]
    return [sys.executable, "-m", "loaderbench", "profile", "--out", f"run{number}", "--", *torchrun]
