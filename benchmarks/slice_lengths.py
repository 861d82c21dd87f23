"""Compare lengths of time slices, and their total for a trial, on equal, interleaved trials.

    uv run python -m benchmarks.slice_lengths [--rounds 8] [--slices 0.05,0.1,0.2] [--seconds 1] [--burner]

Each round has three trials of a plain image loader and three of a fast one, in slices of one length. A slice begins
with cold CPU caches, so short slices lower the rates; between long slices, the load of other programs changes. Prints a
table with the rates, the gain of the fast loader, the spread of this gain across pairs, and the duration of a round.
`--burner` runs a program that alternately uses one CPU and rests, for 0.7 s each on average.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, variance

from benchmarks.paired_trials import Trials, trials_of
from loaderbench.datasets.photos import cached_photos
from loaderbench.records import PlannedTrial
from loaderbench.runner import time_slices

PLAIN = {"batch_size": 32, "num_workers": 2}
FAST = {**PLAIN, "normalize": "device", "image_cache": "shared_memory", "presize": 256}
EQUAL_TRIALS = 3
BURNS_S = 0.7


@dataclass(frozen=True)
class Round:
    """Samples/s of the plain trials and of the fast trials, and the seconds that all took."""

    plain: Sequence[float]
    fast: Sequence[float]
    took_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--slices", type=numbers, default=(0.05, 0.1, 0.2))
    parser.add_argument("--seconds", type=numbers, default=(1.0,))
    parser.add_argument("--burner", action="store_true")
    asked = parser.parse_args()
    found: dict[tuple[float, float], list[Round]] = {of: [] for of in product(asked.slices, asked.seconds)}
    with tempfile.TemporaryDirectory() as folder, burning(asked.burner), trials_of(suite_in(Path(folder))) as trials:
        for number in range(asked.rounds):
            for slice_s, seconds in list(found)[:: 1 if number % 2 else -1]:
                measured = measured_round(trials, slice_s, seconds, f"{number}-{slice_s}-{seconds}")
                found[slice_s, seconds].append(measured)
    print("| slice | in total | plain, samples/s | fast, samples/s | gain | spread of a pair | a round |")
    print(f"|{' --: |' * 7}")
    for (slice_s, seconds), rounds in found.items():
        print(row(slice_s, seconds, rounds))


def numbers(text: str) -> tuple[float, ...]:
    """Read numbers that are separated by commas."""
    return tuple(map(float, text.split(",")))


def suite_in(folder: Path) -> Path:
    """Write a suite of generated images, with the loader of both kinds of trial."""
    dataset = {"kind": "image_folder", "root": str(cached_photos(images=512)), "transform": "imagenet_train"}
    described = {"name": "slices", "dataset": dataset, "loader": {"shuffle": True, "drop_last": True}}
    file = folder / "suite.yaml"
    file.write_text(json.dumps(described), encoding="utf-8")
    return file


def measured_round(trials: Trials, slice_s: float, seconds: float, name: str) -> Round:
    """Measure the plain trials and the fast trials, in slices of `slice_s` that add up to `seconds` for each."""
    time_slices.SHORTEST_SLICE_S = slice_s
    planned = [
        PlannedTrial(id=f"{name}-{kind}{number}", role="remedy", config=config, round=1)
        for number in range(EQUAL_TRIALS)
        for kind, config in (("plain", PLAIN), ("fast", FAST))
    ]
    began_s = time.monotonic()
    rates = {trial.id: trial.samples_per_s or math.nan for trial in trials.run(planned, seconds)}
    took_s = time.monotonic() - began_s
    plain, fast = ([rates[f"{name}-{kind}{number}"] for number in range(EQUAL_TRIALS)] for kind in ("plain", "fast"))
    return Round(plain, fast, took_s)


def row(slice_s: float, seconds: float, rounds: Sequence[Round]) -> str:
    """A table row: geometric means of rates, and the standard deviation of a pair's log ratio within rounds."""
    plain = [[math.log(rate) for rate in one.plain] for one in rounds]
    fast = [[math.log(rate) for rate in one.fast] for one in rounds]
    means = [fmean(fmean(rates) for rates in kind) for kind in (plain, fast)]
    spread = math.sqrt(sum(fmean(variance(rates) for rates in kind) for kind in (plain, fast)))
    said = [f"{math.exp(mean):,.0f}" for mean in means]
    gain = math.exp(means[1] - means[0])
    took_s = fmean(one.took_s for one in rounds)
    return (
        f"| {slice_s * 1000:.0f} ms | {seconds:g} s | {' | '.join(said)} | {gain:.2f} | {spread:.1%} | {took_s:.1f} s |"
    )


@contextmanager
def burning(asked: bool) -> Iterator[None]:
    """Run a program that uses one CPU intermittently."""
    if not asked:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", f"from {__spec__.name} import burn; burn()"]) as burner:
        try:
            yield
        finally:
            burner.kill()


def burn() -> None:
    """Alternate between using a CPU and resting, for random times."""
    while True:
        until_s = time.monotonic() + random.expovariate(1 / BURNS_S)
        while time.monotonic() < until_s:
            pass
        time.sleep(random.expovariate(1 / BURNS_S))


if __name__ == "__main__":
    main()
