"""Check that the arguments printed by `tune()` are the best: ten loaders of other libraries, against a grid of workers.

    uv run --group frameworks --group libraries python benchmarks/tuning.py [--only NAME,...] [--rounds 6] [--data DIR]

Each loader has torch's default arguments, and is tuned for a minute in a new process. Then every configuration of the
grid is measured twice, in random order, each time in a new process. The best configuration and the tuned one are then
compared in alternating pairs. Prints a table (Markdown): the ratio of the tuned rate to the best rate of the grid, over
pairs, with its 95% interval (Student's t). A loader passes within 3%, or if the interval contains 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from multiprocessing import get_context, set_start_method
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.utils.data import DataLoader
from tuning_loaders import LOADERS

from loaderbench.datasets.photos import cached_photos
from loaderbench.statistics.intervals import mean_interval

BUDGET_S, STEADY_S, WARM_UP_S = 60, 3.0, 1.0
WITHIN = 0.97
Arguments = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of loaders, with commas")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--data", type=Path, help="a folder of photos by class (default: generated ones)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(in_child(json.loads(asked.child))))
        return
    root = asked.data or cached_photos(images=256)
    print("| loader | tuned in | tuned | best of the grid | tuned/best | ok |")
    print("| --- | --: | --- | --- | --- | --- |", flush=True)
    for name in asked.only.split(",") if asked.only else LOADERS:
        with TemporaryDirectory() as work:
            print(row(name, {"name": name, "root": str(root), "work": work}, asked.rounds), flush=True)


def row(name: str, what: Arguments, rounds: int) -> str:
    """Tune a loader, and compare it with the best of the grid."""
    began_s = time.monotonic()
    tuned = without_defaults(in_process({**what, "tune": True}))
    took_s = time.monotonic() - began_s
    best = best_of_grid(what)
    if tuned == best:
        ratio, ok = "the same", "yes"
    else:
        pairs = [in_turn(what, tuned, best) for _ in range(rounds)]
        found = mean_interval([ours / theirs for ours, theirs in pairs])
        ok = "yes" if found.est >= WITHIN or (found.hi or 0.0) >= 1 else "NO"
        ratio = f"{found.est:.2f} ({found.lo:.2f} to {found.hi:.2f})"
    return f"| {name} | {took_s:.0f} s | {words(tuned)} | {words(best)} | {ratio} | {ok} |"


def without_defaults(arguments: Arguments) -> Arguments:
    """Arguments that differ from torch's defaults; equivalent sets of arguments compare equal."""
    known = {"num_workers": (0,), "prefetch_factor": (None, 2), "persistent_workers": (False,), "pin_memory": (False,)}
    changed = {name: value for name, value in arguments.items() if value not in known.get(name, ())}
    return {"num_workers": 0, **changed}


def best_of_grid(what: Arguments) -> Arguments:
    """The configuration with the highest mean rate of two."""
    grid = [{"num_workers": count} for count in range(2 * (os.cpu_count() or 1) + 1)]
    rates = [0.0] * len(grid)
    for _ in range(2):
        for place in random.sample(range(len(grid)), len(grid)):
            rates[place] += measured({**what, "arguments": grid[place]})
    return grid[rates.index(max(rates))]


def in_turn(what: Arguments, tuned: Arguments, best: Arguments) -> tuple[float, float]:
    """Measure both rates in random order."""
    rates = [0.0, 0.0]
    for place in random.sample((0, 1), 2):
        rates[place] = measured({**what, "arguments": (tuned, best)[place]})
    return rates[0], rates[1]


def words(config: Arguments) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items()) or "unchanged"


def measured(what: Arguments) -> float:
    """Measure the rate in a child of a fork server that has imported torch."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch", "tuning_loaders"])
    own, others = context.Pipe(duplex=False)
    child = context.Process(target=send_rate, args=(others, what))
    child.start()
    others.close()
    try:
        rate_per_s: float = own.recv()
    finally:
        child.join()
    return rate_per_s


def send_rate(pipe: Connection, what: Arguments) -> None:
    set_start_method("fork", force=True)  # for workers, as in the script that was tuned
    pipe.send(in_child(what))


def in_process(what: Arguments) -> Any:
    """The last line printed by a new process."""
    command = [sys.executable, __file__, "--child", json.dumps(what)]
    environment = {**os.environ, "XDG_CACHE_HOME": what["work"]} if what.get("tune") else None
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{what['name']}: {done.stderr[-1000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def in_child(what: Arguments) -> Any:
    """The tuned arguments of a loader, or its rate with given arguments."""
    loader = LOADERS[what["name"]](Path(what["root"]), Path(what["work"]))
    if what.get("tune"):
        import loaderbench

        return loaderbench.tune(loader, budget=BUDGET_S)
    return rate(loader, what["arguments"])


def rate(loader: DataLoader[Any], arguments: Arguments) -> float:
    """Batches per second in steady state."""
    shuffled = {} if isinstance(loader.dataset, torch.utils.data.IterableDataset) else {"shuffle": True}
    known = {"batch_size": loader.batch_size, **shuffled, **arguments}
    batches = iter(DataLoader(loader.dataset, **known))
    next(batches)
    ends_s = time.monotonic() + WARM_UP_S
    while time.monotonic() < ends_s:
        next(batches)
    began_s, count = time.monotonic(), 0
    while time.monotonic() - began_s < STEADY_S:
        next(batches)
        count += 1
    return count / (time.monotonic() - began_s)


if __name__ == "__main__":
    main()
