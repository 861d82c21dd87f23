"""A training script that alternates blocks of batches between a recorded loader and an unrecorded one.

For `overhead_profile.py`. `python overhead_script.py ROWS WORKERS [DONE]` reads one order per line from stdin:

- a number of steps of each kind. It writes the CPU seconds of the loop's thread and the wall seconds of the recorded
  steps to stdout, then the same two of the others;
- `threads`: it writes the CPU seconds that all threads of loaderbench have used until now.

With `DONE`, it is one of several ranks: the first takes the orders, and makes this file at the end. The others take a
few steps a second until then.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from overhead_loop import Step
from torch.utils.data import DataLoader, Dataset

TURN_STEPS = 16  # shorter than typical disturbances by other programs


class Ready(Dataset[Any]):
    """A dataset that repeats one batch."""

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
    loaders = [
        DataLoader(Ready(step.batch), batch_size=None, sampler=range(1 << 40), num_workers=workers) for _ in range(2)
    ]
    recorded: Iterator[Any] = iter(loaders[0])
    bare = loaders[1]._get_iterator()  # hidden from the recorder
    while os.environ.get("RANK", "0") != "0" and done is not None and not done.exists():
        step(next(recorded))
        time.sleep(0.2)
    for line in sys.stdin if done is None or not done.exists() else ():
        if line.strip() == "threads":
            print(sum(map(cpu_s, threading.enumerate())), flush=True)
        else:
            print(*in_turns(step, recorded, bare, int(line)), flush=True)
    if done is not None:
        done.touch()


def in_turns(step: Step, recorded: Iterator[Any], bare: Iterator[Any], steps: int) -> tuple[float, ...]:
    """CPU and wall seconds of `steps` steps of each kind, in short alternating turns."""
    taken_s = {id(recorded): [0.0, 0.0], id(bare): [0.0, 0.0]}
    for _ in range(steps // TURN_STEPS):
        for batches in random.sample((recorded, bare), 2):
            cpu_at_s, at_s = time.thread_time(), time.perf_counter()
            for batch in islice(batches, TURN_STEPS):
                step(batch)
            sums_s = taken_s[id(batches)]
            sums_s[0] += time.thread_time() - cpu_at_s
            sums_s[1] += time.perf_counter() - at_s
    return *taken_s[id(recorded)], *taken_s[id(bare)]


def cpu_s(thread: threading.Thread) -> float:
    """CPU seconds of a thread of loaderbench; 0 for any other."""
    if thread.ident is None or not thread.name.startswith("loaderbench"):
        return 0.0
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


if __name__ == "__main__":
    main()
