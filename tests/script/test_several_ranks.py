"""Distributed trainings that torch's launcher starts: one verdict for all ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import HEAD, profile, write
from two_machines import ADDRESSES, possible, start_on, two_machines

from loaderbench.result import load

pytestmark = [pytest.mark.slow, pytest.mark.timed]

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]

TRAINING = (
    HEAD
    + """\
from torch import distributed, nn
from loaderbench import Profiler

SLOW = os.environ.get('SLOW', '1').split(',')

def main():
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
    data = Slow(8000, float(os.environ.get('SLOW_S', 0.005)) if str(rank) in SLOW else 0.0005)
    sampler = torch.utils.data.DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, num_workers=1, sampler=sampler)
    {before}
    for step, (inputs, labels) in enumerate({batches}):
        nn.functional.cross_entropy(model(inputs), labels).backward()
        time.sleep(0.01)
        if step == 120:
            break
    {after}
    distributed.destroy_process_group()

main()
"""
)

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

GATHER = """\
prof.stop()
    run = prof.gather()
    with open(f"rank{rank}.json", "w") as file:
        import json; json.dump(run.to_dict(), file)
"""


def started(script: Path) -> subprocess.CompletedProcess[str]:
    """Two ranks of the script, in its folder."""
    command = [*TORCHRUN, str(script)]
    return subprocess.run(command, cwd=script.parent, capture_output=True, text=True, timeout=300, check=False)


def training(**parts: str) -> str:
    found = TRAINING
    for name, text in parts.items():
        found = found.replace(f"{{{name}}}", text)
    return found


def test_rank_0_tunes_on_its_share_of_the_cpus_and_all_ranks_end(tmp_path: Path) -> None:
    write(tmp_path, TUNED)
    command = ["tune", "--budget", "20s", "--out", "run", "--", *TORCHRUN, "train.py"]
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


def test_the_ranks_of_a_profiled_script_become_one_run_that_names_the_slow_one(tmp_path: Path) -> None:
    write(tmp_path, training(before="", batches="loader", after=""))
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


def test_rank_0_gathers_what_all_ranks_recorded(tmp_path: Path) -> None:
    before = 'prof = Profiler("train", trace=True).start()'
    script = write(tmp_path, training(before=before, batches="prof.iter(loader)", after=GATHER))
    done = started(script)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert [one["rank"] for one in first["ranks"]] == [0, 1]
    assert (first["verdict"]["rank"], first["trials"][0]["rank"]) == (1, 1)
    assert first["ranks"][0]["rank_wait_share"] > 0.3
    assert (second["ranks"], [trial["rank"] for trial in second["trials"]]) == ([], [1])


def test_with_a_callback_in_each_rank_rank_0_writes_the_run_of_all(tmp_path: Path) -> None:
    begin = (
        "from loaderbench.script.in_process import LoaderRecording\n    own = LoaderRecording(out='run'); own.start()"
    )
    script = write(tmp_path, training(before=begin, batches="loader", after="own.finish()"))
    done = started(script)
    assert done.returncode == 0, done.stderr
    assert [place.parent.name for place in tmp_path.glob("*/run.json")] == ["run"]
    assert [one.rank for one in load(tmp_path / "run").ranks] == [0, 1]
    assert done.stderr.count("Report: run/report.html") == 1


def test_other_ranks_on_this_machine_are_no_other_programs(tmp_path: Path) -> None:
    """One rank asks what it and the others use, while the other one computes."""
    script = write(
        tmp_path,
        HEAD
        + """\
from loaderbench.monitors.machine import other_ranks, use_of_this_program
from torch import distributed

distributed.init_process_group("gloo")
rank, until_s = distributed.get_rank(), time.monotonic() + 2
distributed.barrier()
if rank == 1:
    while time.monotonic() < until_s:
        pass
distributed.barrier()
if rank == 0:
    assert len(other_ranks()) == 1
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cpus[:1])
    os.sched_setaffinity(other_ranks()[0], cpus[1:] or cpus)
    assert len(other_ranks()) == (len(cpus) < 2)
    os.sched_setaffinity(0, cpus)
    assert use_of_this_program().ranks == 2
    assert use_of_this_program().cpu_s - time.process_time() > 1.5
distributed.barrier()
distributed.destroy_process_group()
""",
    )
    done = started(script)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not possible(), reason="needs root and iproute2")
@pytest.mark.parametrize(
    ("slow", "named"),
    [
        ("3", "rank 3 on lb-b holds back the other 3 ranks"),
        ("2,3", " on lb-b hold"),  # one rank or both: the other may wait for it with its batch ready
    ],
    ids=["rank", "machine"],
)
def test_the_ranks_of_two_machines_become_one_run_on_the_first(tmp_path: Path, slow: str, named: str) -> None:
    write(tmp_path, training(before="", batches="loader", after=""))
    with two_machines() as machines:
        started = [
            start_on(machine, profile_of_machine(number), tmp_path, {"SLOW": slow, "SLOW_S": "0.02"})
            for number, machine in enumerate(machines)
        ]
        (_, first), (_, second) = (one.communicate(timeout=300) for one in started)
    assert [one.returncode for one in started] == [0, 0], first + second
    run = load(tmp_path / "run0")
    assert [(one.rank, one.host) for one in run.ranks] == [(0, "lb-a"), (1, "lb-a"), (2, "lb-b"), (3, "lb-b")]
    assert str(run.verdict.rank) in slow
    assert named in first
    assert run.ranks[0].rank_wait_share > max(0.3, run.ranks[3].rank_wait_share)
    assert "holds back" not in second
    assert f"the verdict of all ranks is printed by rank 0's machine, {ADDRESSES['lb-a']}" in second
    assert len(load(tmp_path / "run1").ranks) == 2


def profile_of_machine(number: int) -> list[str]:
    """Two ranks of four on one of two machines."""
    where = ["--nnodes", "2", "--node-rank", str(number), "--nproc-per-node", "2"]
    store = ["--master-addr", ADDRESSES["lb-a"], "--master-port", "29517"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *where, *store, "train.py"]
    return [sys.executable, "-m", "loaderbench", "profile", "--out", f"run{number}", "--", *torchrun]
