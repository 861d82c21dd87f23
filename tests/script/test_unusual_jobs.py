"""Jobs whose ranks do not all do the same: each at its own rate, one that loads for all, or stages of a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from scripts import HEAD, TORCHRUN, call, profile, write

from loaderbench.result import load
from loaderbench.script.step_stages import IN_A_PIPELINE

pytestmark = pytest.mark.slow

TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
IN_EACH = (
    HEAD
    + """\
from torch import distributed, nn
from torch.utils.data import DistributedSampler

torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
"""
)

INFERENCE = (
    IN_EACH
    + """\
data = Slow(1200, 0.01 if rank == 1 else 0.0001)
for inputs, _ in DataLoader(data, batch_size=8, num_workers=1, sampler=DistributedSampler(data)):
    time.sleep(0.03)
distributed.barrier()
"""
)

SENT_BY_RANK_0 = (
    IN_EACH
    + """\
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = iter(DataLoader(Slow(800, 0.001), batch_size=8)) if rank == 0 else None
for step in range(100):
    inputs = next(batches)[0] if batches else torch.zeros(8, 8)
    distributed.broadcast(inputs, 0)
    model(inputs).sum().backward()
    optimizer.step()
os.write(1, f"trained {rank}\\n".encode())  # at once: torchrun runs Python without buffers
"""
)

PIPELINE = (
    IN_EACH
    + """\
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

stage = PipelineStage(nn.Linear(8, 8), rank, 2, torch.device("cpu"))
schedule = ScheduleGPipe(stage, 2, loss_fn=nn.functional.cross_entropy)
for inputs, labels in DataLoader(Slow(480, 0.0002), batch_size=8):
    schedule.step(inputs) if rank == 0 else schedule.step(target=labels)
"""
)


@pytest.mark.sleeping
@pytest.mark.parametrize("launcher", [["--", *TORCHRUN], TORCHRUN[1:]])
def test_ranks_without_collectives_hold_nobody_back(launcher: list[str], tmp_path: Path) -> None:
    """Also if the launcher is named as a module, without `--` before it."""
    write(tmp_path, INFERENCE)
    done = profile(tmp_path, "--out", "run", *launcher, "train.py")
    assert done.returncode == 0, done.stderr
    verdict = load(tmp_path / "run").verdict
    assert verdict.rank == 1
    assert verdict.headline.startswith("rank 1 loads more slowly than rank 0: ")
    assert verdict.evidence[-1].endswith("they do not wait for one another")


@pytest.mark.sleeping
def test_a_job_of_which_rank_0_loads_for_all_is_not_tuned_and_ends(tmp_path: Path) -> None:
    write(tmp_path, SENT_BY_RANK_0)
    done = call(tmp_path, "tune", "--budget", "8s", "--out", "run", "--", *TORCHRUN, "train.py")
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if "trained" in line) == ["trained 0", "trained 1"]
    assert "rank 1 took no batch of " in done.stderr
    assert "the script was not tuned" in done.stderr


@pytest.mark.skipif(TORCH < (2, 5), reason="older stages need examples of their inputs")
def test_the_stages_of_a_pipeline_are_not_compared_by_the_parts_of_their_steps(tmp_path: Path) -> None:
    write(tmp_path, PIPELINE)
    done = profile(tmp_path, "--out", "run", "--", *TORCHRUN, "train.py")
    assert done.returncode == 0, done.stderr
    run = load(tmp_path / "run")
    assert [one.rank for one in run.ranks] == [0, 1]
    assert {trial.not_measured.get("step_stages") for trial in run.record.rank_trials} == {IN_A_PIPELINE}
    assert "slow steps" not in run.verdict.headline
