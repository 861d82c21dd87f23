"""Compare lengths of time slices on equal, interleaved trials.

    uv run python -m benchmarks.slice_lengths [--rounds 8] [--burner]

Each round has three trials of a plain image loader and three of a fast one, in slices of one length. A slice begins
with cold CPU caches, so short slices lower the rates; between long slices, the load of other programs changes. Prints a
table with the rates, the gain of the fast loader, and the spread of this gain across pairs. `--burner` runs a program
that alternately uses one CPU and rests, for 0.7 s each on average.
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
from pathlib import Path
from statistics import fmean, variance

from benchmarks.paired_trials import Trials, trials_of
from loaderbench.datasets.photos import cached_photos
from loaderbench.records import PlannedTrial
from loaderbench.runner import time_slices

LENGTHS_S = (0.05, 0.1, 0.2)
PLAIN = {"batch_size": 32, "num_workers": 2}
FAST = {**PLAIN, "normalize": "device", "image_cache": "shared_memory", "presize": 256}
EQUAL_TRIALS = 3
BURNS_S = 0.7
Rates = tuple[Sequence[float], Sequence[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--burner", action="store_true")
    asked = parser.parse_args()
    found: dict[float, list[Rates]] = {length_s: [] for length_s in LENGTHS_S}
    with tempfile.TemporaryDirectory() as folder, burning(asked.burner), trials_of(suite_in(Path(folder))) as trials:
        for number in range(asked.rounds):
            for length_s in LENGTHS_S[:: 1 if number % 2 else -1]:
                found[length_s].append(rates_in(trials, length_s, f"{number}-{length_s}"))
    print("| slice | plain, samples/s | fast, samples/s | gain | spread of a pair |\n| --: | --: | --: | --: | --: |")
    for length_s, rounds in found.items():
        print(row(length_s, rounds))


def suite_in(folder: Path) -> Path:
    """Write a suite of generated images, with the loader of both kinds of trial."""
    dataset = {"kind": "image_folder", "root": str(cached_photos(images=512)), "transform": "imagenet_train"}
    described = {"name": "slices", "dataset": dataset, "loader": {"shuffle": True, "drop_last": True}}
    file = folder / "suite.yaml"
    file.write_text(json.dumps(described), encoding="utf-8")
    return file


def rates_in(trials: Trials, length_s: float, name: str) -> Rates:
    """Samples/s of the plain trials and of the fast trials."""
    time_slices.SHORTEST_SLICE_S = length_s
    planned = [
        PlannedTrial(id=f"{name}-{kind}{number}", role="remedy", config=config, round=1)
        for number in range(EQUAL_TRIALS)
        for kind, config in (("plain", PLAIN), ("fast", FAST))
    ]
    rates = {trial.id: trial.samples_per_s or math.nan for trial in trials.run(planned)}
    plain, fast = ([rates[f"{name}-{kind}{number}"] for number in range(EQUAL_TRIALS)] for kind in ("plain", "fast"))
    return plain, fast


def row(length_s: float, rounds: Sequence[Rates]) -> str:
    """A table row: geometric means of rates, and the standard deviation of a pair's log ratio within rounds."""
    plain, fast = ([[math.log(rate) for rate in rates] for rates in kind] for kind in zip(*rounds, strict=True))
    means = [fmean(fmean(rates) for rates in kind) for kind in (plain, fast)]
    spread = math.sqrt(sum(fmean(variance(rates) for rates in kind) for kind in (plain, fast)))
    said = [f"{math.exp(mean):,.0f}" for mean in means]
    gain = math.exp(means[1] - means[0])
    return f"| {length_s * 1000:.0f} ms | {' | '.join(said)} | {gain:.2f} | {spread:.1%} |"


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
