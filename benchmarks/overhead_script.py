"""A training script that takes one block of batches per line on stdin: for `overhead_profile.py`.

`python overhead_script.py ROWS WORKERS`: each line on stdin is a number of steps. Their CPU and wall seconds go to
stdout.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

import torch
from overhead_loop import Step
from overhead_pairs import spent
from torch.utils.data import DataLoader, Dataset


class Ready(Dataset[Any]):
    """The same batch over and over."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> Any:
        return self.batch


def main() -> None:
    rows, workers = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    step = Step(rows)
    loader = DataLoader(Ready(step.batch), batch_size=None, sampler=range(1 << 40), num_workers=workers)
    batches = iter(loader)
    for line in sys.stdin:
        taken = spent(lambda count=int(line): [step(batch) for batch in islice(batches, count)])  # type: ignore[misc]
        print(taken.cpu_s, taken.wall_s, flush=True)


if __name__ == "__main__":
    main()
