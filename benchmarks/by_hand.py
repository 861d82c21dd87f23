"""A run's first fix, made by hand: its program against that of the baseline, in turns, each in a process of its own.

    uv run python benchmarks/by_hand.py RUN --images DIR [--turns 4] [--seconds 2]

RUN is a run folder, and DIR the folder of images that it measured. Prints samples/s of both programs in each turn,
their ratio, and the gain of the report. The first batch of each epoch is excluded, as in trials. Epochs are not endless
as there, so some of the workers' start is left in the rate. Some programs write copies next to DIR.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from loaderbench.datasets import options_to_try
from loaderbench.remedies.program import python_program
from loaderbench.report import numbers
from loaderbench.result import load_concluded

PROGRAM = "program"
"""The argument with which this file runs one program, from stdin, and prints its samples/s."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--images", type=Path, required=True, help="folder of the images that it measured")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each program in each turn")
    asked = parser.parse_args()
    run = load_concluded(asked.run).record
    fix = run.recommendations[0]
    if fix.gain is None or fix.snippet is None:
        raise SystemExit(f"the first fix of {asked.run} has no gain or no program: {fix.title}")
    baseline = python_program(run.baseline.config, run.loader, options_to_try(run.section("dataset")))
    print(f"{fix.title}\n\n| turn | baseline | first fix | ratio |\n| --- | --: | --: | --: |")
    ratios = []
    for turn in range(1, asked.turns + 1):
        order = [("before", baseline), ("after", fix.snippet)]
        rates = {name: rate_of(code, asked.images, asked.seconds) for name, code in order[:: 1 if turn % 2 else -1]}
        ratios.append(rates["after"] / rates["before"])
        print(f"| {turn} | {rates['before']:,.0f} | {rates['after']:,.0f} | {ratios[-1]:.2f} |", flush=True)
    gain = numbers.gain(fix.gain.est, fix.gain.lo, fix.gain.hi).text
    print(f"\nby hand {geometric_mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); the report: {gain}")


def rate_of(code: str, images: Path, seconds: float) -> float:
    """Samples/s of a program in a new process."""
    command = [sys.executable, __file__, PROGRAM, str(images), str(seconds)]
    return float(subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout.split()[-1])


def measure(code: str, images: str, seconds: float) -> float:
    """Samples/s of the `loader` that a program makes, epoch after epoch."""
    scope: dict[str, Any] = {"root": images, "__name__": PROGRAM}
    exec(compile(code, "program.py", "exec"), scope)
    samples, took_s = 0, 0.0
    while took_s < seconds:
        batches = iter(scope["loader"])
        next(batches)
        began_s = time.perf_counter()
        samples += sum(len(images) for images, _ in batches)
        took_s += time.perf_counter() - began_s
    return samples / took_s


if __name__ == "__main__":
    if sys.argv[1:2] == [PROGRAM]:
        print(measure(sys.stdin.read(), sys.argv[2], float(sys.argv[3])))
    else:
        main()
