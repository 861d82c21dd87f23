"""Check the lines that `profile` names outside of a loader, against randomly drawn planted costs.

    uv run python benchmarks/loop_lines.py [--scripts 12] [--seconds 8] [--seed N]

Each script calls four functions of known cost in each step, and again between its epochs, with other costs and in
another order: Python code, a compiled function that holds the GIL, one that releases it, and a wait. It times every
call. If one function takes at least half of the time, the line must be in it, else in their caller. Prints a table
(Markdown), and how many lines are right; those where the largest share is within 5 points of a half are left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from loaderbench.records import LoopLine
from loaderbench.result import load

HALF, MARGIN = 0.5, 0.05
SCRIPT = """\
import json, random, sys, time, zlib
import torch
from torch.utils.data import DataLoader, TensorDataset

TEXT = random.Random(0).randbytes(1 << 18)
NUMBERS = [random.Random(0).random() for _ in range(1 << 18)]
now_s = time.perf_counter

def python_code(ends_s):
    found = 0
    while now_s() < ends_s:
        found = (found * 31 + 7) % 1000

def keeps_lock(ends_s):
    while now_s() < ends_s:
        max(NUMBERS[:2000])

def releases_lock(ends_s):
    while now_s() < ends_s:
        zlib.compress(TEXT[:8000], 1)

def waits(ends_s):
    time.sleep(max(0.0, ends_s - now_s()))

def work(costs_ms, took_s):
    for name, cost_ms in costs_ms:
        began_s = now_s()
        globals()[name](began_s + cost_ms / 1e3)
        took_s[name] += now_s() - began_s

workers, seconds, in_step, between = json.loads(sys.argv[1])
took = [dict.fromkeys(dict(in_step), 0.0) for _ in range(2)]
model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(480, 64)), 16, num_workers=workers, persistent_workers=workers > 0)
ends_s = now_s() + seconds
while now_s() < ends_s:
    for (inputs,) in loader:
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
        work(in_step, took[0])
    work(between, took[1])
print(json.dumps(took))
"""
FUNCTIONS = ("python_code", "keeps_lock", "releases_lock", "waits")
CALLER = "work"

Costs = list[tuple[str, float]]


@dataclass(frozen=True)
class Named:
    """The function of the line that was named, and the true shares of one part of one loop."""

    shares: dict[str, float]
    function: str

    @property
    def largest(self) -> str:
        """The function with the largest share."""
        return max(self.shares, key=lambda name: self.shares[name])

    @property
    def is_clear(self) -> bool:
        """Whether the largest share is clearly above or below a half."""
        return abs(self.shares[self.largest] - HALF) > MARGIN

    @property
    def is_right(self) -> bool:
        """Whether the line is in the function with at least half of the time, or else in the caller of all."""
        return self.function == (self.largest if self.shares[self.largest] >= HALF else CALLER)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw, found = random.Random(arguments.seed), []
    print("| workers | part | largest, share | named, stack samples |\n| --: | --- | --- | --- |")
    for number in range(arguments.scripts):
        workers = number % 3
        for part, named, looks in profiled(draw, workers, arguments.seconds):
            largest = f"{named.largest} {named.shares[named.largest]:.0%}"
            print(f"| {workers} | {part} | {largest} | {named.function or 'none'}, {looks} |", flush=True)
            found.append(named)
    clear = [named for named in found if named.is_clear]
    none = sum(not named.function for named in clear)
    print(f"\nright: {sum(named.is_right for named in clear)} of {len(clear)}; no line: {none}")


def profiled(draw: random.Random, workers: int, seconds: float) -> Iterator[tuple[str, Named, int]]:
    """Profile a drawn script. Yields each part of the loop with what was named, and the number of stack samples."""
    costs = drawn(draw, 1.0, 20.0), drawn(draw, 20.0, 200.0)
    with TemporaryDirectory() as folder:
        script, out = Path(folder) / "train.py", Path(folder) / "run"
        script.write_text(SCRIPT, encoding="utf-8")
        command = ["-m", "loaderbench", "profile", "-q", "--out", str(out), str(script)]
        planted = json.dumps([workers, seconds, *costs])
        done = subprocess.run([sys.executable, *command, planted], capture_output=True, text=True, check=True)
        (trial,) = load(out).trials
    lines = (trial.step_line, trial.epochs.between_line if trial.epochs else None)
    for part, line, took_s in zip(("step", "between"), lines, json.loads(done.stdout), strict=True):
        shares = {name: time_s / sum(took_s.values()) for name, time_s in took_s.items()}
        yield part, Named(shares, function_of(line)), line.looks if line else 0


def drawn(draw: random.Random, shortest_ms: float, longest_ms: float) -> Costs:
    """Draw a cost for each function, in random order. One cost may be raised to dominate the others."""
    costs = [(name, math.exp(draw.uniform(0, math.log(longest_ms / shortest_ms))) * shortest_ms) for name in FUNCTIONS]
    raised = draw.randrange(len(costs))
    costs[raised] = (costs[raised][0], costs[raised][1] * draw.choice((1, 8)))
    return draw.sample(costs, len(costs))


def function_of(line: LoopLine | None) -> str:
    """The function of the script that has a line; empty without one, or outside of all functions."""
    number = int(line.place.rpartition(":")[2]) if line else 0
    functions = (node for node in ast.walk(ast.parse(SCRIPT)) if isinstance(node, ast.FunctionDef))
    return next((node.name for node in functions if node.lineno <= number <= (node.end_lineno or 0)), "")


if __name__ == "__main__":
    main()
