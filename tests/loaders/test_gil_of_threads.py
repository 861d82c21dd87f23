"""Loading threads that wait for the GIL: the verdict names it, and processes are tried."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import loaderbench

from loaderbench.environment import cpus_allotted
from loaderbench.store import read_run

IN_PYTHON = """\
import torch

class Sums:
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        return torch.tensor(sum(number * index for number in range(20_000)) % 7)
"""


SUITE = """\
dataset: {kind: target, target: 'sums:Sums'}
loader: {loader: threads, batch_size: 4, shuffle: true, drop_last: true}
sweep: {threads: [2]}
consumer: {kind: none}
measure: {rounds: 1, seconds: 1, budget: 28s}
"""


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.skipif(cpus_allotted() < 2, reason="one CPU is full with one thread")
def test_threads_that_wait_for_the_gil_are_named_and_processes_are_tried(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(IN_PYTHON)
    (tmp_path / "small.yaml").write_text(SUITE)
    done = loaderbench("run", "small.yaml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path / "run")
    assert (run.verdict.stage, run.verdict.limit) == ("sample", "lock"), run.verdict
    (tried,) = (advice for advice in run.recommendations if advice.id == "process_loader")
    assert tried.basis == "measured"
    assert tried.change == {"loader": "torch", "num_workers": 2}
