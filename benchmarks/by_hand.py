"""Apply the fixes of a run by hand: each fix's program, interleaved with the program without the fix.

    uv run python -m benchmarks.by_hand RUN --images DIR [--turns 4] [--seconds 2]

RUN is a run folder, and DIR the folder of images that it measured. Each program runs in a new process. Prints samples/s
of both programs, the gain by hand, and the gain of the report. The first batches of each epoch, which workers prefetch,
are excluded. Short epochs still cost more than in trials, which run one endless epoch. Some programs write copies
alongside DIR.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from loaderbench.datasets import options_to_try
from loaderbench.records import Gain, Interval, Recommendation
from loaderbench.remedies.program import python_program
from loaderbench.report import numbers
from loaderbench.result import load_concluded
from loaderbench.statistics.configurations import ratio_of, rounds_of_both

PROGRAM = "program"
"""The argument with which this file runs one program from stdin and prints its samples/s."""


@dataclass(frozen=True)
class MadeByHand:
    """A fix, its gain in the report and by its `rounds` alone, and samples/s of each turn without and with the fix."""

    title: str
    printed: Gain
    of_rounds: Interval | None
    rounds: int
    before: Sequence[float]
    after: Sequence[float]

    @property
    def gain(self) -> float:
        """The gain by hand, as a factor."""
        return geometric_mean(with_it / without for without, with_it in zip(self.before, self.after, strict=True))

    @property
    def is_covered(self) -> bool:
        """Whether the printed interval contains the gain by hand."""
        return _holds(self.printed, self.gain)

    @property
    def is_covered_by_rounds(self) -> bool:
        """Whether the interval of the rounds alone contains the gain by hand."""
        return self.of_rounds is not None and _holds(self.of_rounds, self.gain)


def _holds(interval: Gain | Interval, value: float) -> bool:
    return interval.lo is not None and interval.hi is not None and interval.lo <= value <= interval.hi


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--images", type=Path, required=True, help="folder of the images that it measured")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each program in each turn")
    asked = parser.parse_args()
    print_table(made_by_hand(asked.run, asked.images, asked.turns, asked.seconds))


def made_by_hand(run: Path, images: Path, turns: int, seconds: float) -> list[MadeByHand]:
    """Apply every fix of the run that has a gain with an interval and a program, interleaved by configuration."""
    record = load_concluded(run).record
    options = options_to_try(record.section("dataset"))
    fixes_of: dict[str, list[tuple[Recommendation, Interval | None, int]]] = {}
    for fix in record.recommendations:
        if fix.gain is not None and fix.gain.lo is not None and fix.snippet is not None:
            without = fix.against or record.baseline.config
            own = [trial for trial in record.trials if trial.id in fix.trials]
            changed = {**without, **fix.change}
            found = fix, ratio_of(changed, without, own), rounds_of_both(changed, without, own)
            fixes_of.setdefault(python_program(without, record.loader, options), []).append(found)
    made = []
    for before, fixes in fixes_of.items():
        programs = [before, *(str(fix.snippet) for fix, *_ in fixes)]
        without_fix, *with_fix = zip(*rates_in_turns(programs, images, turns, seconds), strict=True)
        for (fix, of_rounds, rounds), rates in zip(fixes, with_fix, strict=True):
            assert fix.gain is not None
            made.append(MadeByHand(fix.title, fix.gain, of_rounds, rounds, without_fix, rates))
    return made


def rates_in_turns(programs: Sequence[str], images: Path, turns: int, seconds: float) -> Iterator[Sequence[float]]:
    """Yield samples/s of each program in each turn; every other turn has the reverse order."""
    for turn in range(turns):
        order = range(len(programs))
        rates = {at: rate_of(programs[at], images, seconds) for at in (reversed(order) if turn % 2 else order)}
        yield [rates[at] for at in order]


def rate_of(code: str, images: Path, seconds: float) -> float:
    """Samples/s of a program in a new process."""
    command = [sys.executable, "-m", "benchmarks.by_hand", PROGRAM, str(images), str(seconds)]
    return float(subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout.split()[-1])


def measure(code: str, images: str, seconds: float) -> float:
    """Samples/s of the `loader` that a program creates."""
    scope: dict[str, Any] = {"root": images, "__name__": PROGRAM}
    exec(compile(code, "program.py", "exec"), scope)
    samples, took_s = 0, 0.0
    for of_cycle, took in steady_cycles(scope["loader"]):
        samples, took_s = samples + of_cycle, took_s + took
        if took_s >= seconds:
            break
    return samples / took_s


def steady_cycles(loader: Any) -> Iterator[tuple[int, float]]:
    """Samples and seconds of each cycle, one batch of every worker, epoch after epoch, without prefetched batches."""
    cycle = max(1, getattr(loader, "num_workers", 1))  # DALI's has no workers
    prefetched = cycle * (getattr(loader, "prefetch_factor", None) or 1)
    while True:
        sizes = (len(batch) for batch, _ in loader)
        for _ in itertools.islice(sizes, prefetched):
            pass
        came_s = time.perf_counter()
        while len(of_cycle := list(itertools.islice(sizes, cycle))) == cycle:
            last_s, came_s = came_s, time.perf_counter()
            yield sum(of_cycle), came_s - last_s


def print_table(made: Sequence[MadeByHand]) -> None:
    """Print a row for each fix, and how many printed intervals contain the gain by hand."""
    print("| fix | without | with | by hand | report | in the interval |\n| --- | --: | --: | --: | --: | --- |")
    for fix in made:
        rates = [f"{geometric_mean(found):,.0f}" for found in (fix.before, fix.after)]
        printed = numbers.gain(fix.printed.est, fix.printed.lo, fix.printed.hi).text
        found = "yes" if fix.is_covered else "no"
        print(f"| {fix.title} | {' | '.join(rates)} | {fix.gain:.2f} | {printed} | {found} |")
    if not made:
        return
    covered, by_rounds = sum(fix.is_covered for fix in made), sum(fix.is_covered_by_rounds for fix in made)
    larger = geometric_mean(fix.gain / fix.printed.est for fix in made) - 1
    print(f"\n{covered} of {len(made)} gains by hand are in the printed interval, {by_rounds} in that of the rounds")
    print(f"By hand, gains are {larger:+.1%} larger on average")


if __name__ == "__main__":
    if sys.argv[1:2] == [PROGRAM]:
        print(measure(sys.stdin.read(), sys.argv[2], float(sys.argv[3])))
    else:
        main()
