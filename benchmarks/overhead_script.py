"""A training script that alternates blocks of batches between a recorded loader and an unrecorded one.

For `overhead_profile.py`. `python overhead_script.py ROWS WORKERS [DONE]` reads one order per line from stdin:

- a number of recorded steps. It writes the mean CPU seconds of the loop's thread and the mean wall seconds of these
  steps to stdout, then the same two of steps that are not recorded;
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

RECORDED_TURNS = 4
"""Recorded turns for each turn of the other loader. Some costs are a share of time, for example that of traced batches.

With as many turns of each, recorded steps would have twice that cost; now they have a quarter more.
"""


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
    """CPU and wall seconds per step of each kind, in short turns, over `steps` recorded ones."""
    taken_s, turns = {id(recorded): [0.0, 0.0], id(bare): [0.0, 0.0]}, [*[recorded] * RECORDED_TURNS, bare]
    for _ in range(steps // (TURN_STEPS * RECORDED_TURNS)):
        for batches in random.sample(turns, len(turns)):
            cpu_at_s, at_s = time.thread_time(), time.perf_counter()
            for batch in islice(batches, TURN_STEPS):
                step(batch)
            sums_s, count = taken_s[id(batches)], steps if batches is recorded else steps // RECORDED_TURNS
            sums_s[0] += (time.thread_time() - cpu_at_s) / count
            sums_s[1] += (time.perf_counter() - at_s) / count
    return *taken_s[id(recorded)], *taken_s[id(bare)]


def cpu_s(thread: threading.Thread) -> float:
    """CPU seconds of a thread of loaderbench; 0 for any other."""
    if thread.ident is None or not thread.name.startswith("loaderbench"):
        return 0.0
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


if __name__ == "__main__":
    main()
