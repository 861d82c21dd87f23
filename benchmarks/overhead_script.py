"""A training script that takes one block of batches per line on stdin: for `overhead_profile.py`.

`python overhead_script.py ROWS WORKERS [DONE]`: each line on stdin is a number of steps. Their CPU and wall seconds go
to stdout. With `DONE`, it is one of several ranks: the first takes the orders, and makes this file at the end. The
others take a few steps a second until then.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import islice
from pathlib import Path
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
    rows, workers, done = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    step = Step(rows)
    loader = DataLoader(Ready(step.batch), batch_size=None, sampler=range(1 << 40), num_workers=workers)
    batches = iter(loader)
    while os.environ.get("RANK", "0") != "0" and done is not None and not done.exists():
        step(next(batches))
        time.sleep(0.2)
    for line in sys.stdin if done is None or not done.exists() else ():
        taken = spent(lambda count=int(line): [step(batch) for batch in islice(batches, count)])  # type: ignore[misc]
        print(taken.cpu_s, taken.wall_s, flush=True)
    if done is not None:
        done.touch()


if __name__ == "__main__":
    main()
