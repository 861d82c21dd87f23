"""How often three, four or five pairs report a gain or a loss that does not exist, in a simulation.

    uv run python benchmarks/few_pairs.py [--repeats 4000] [--seed 0]

Rates of two equal configurations are drawn for each round and judged as in a run. The noise of a trial, as the
logarithm of its rate, is one of four kinds: normal with a spread of 5%; one trial in ten slower by 10% to 40%, as if
another program ran; heavy tails (Student's t, two degrees of freedom); or a machine speed that drifts in one direction,
with a random order in each pair. The last row is a true gain of 2, which a run should not miss.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable

from loaderbench.records import Config, Trial
from loaderbench.statistics.judging import judge

UNCHANGED: Config = {"batch_size": 32}
CHANGED: Config = {"batch_size": 64}
PAIRS = (3, 4, 5)
Pairs = list[tuple[float, float]]
Noise = Callable[[random.Random, int], Pairs]


def normal(chance: random.Random, pairs: int) -> Pairs:
    return [(chance.gauss(0, 0.05), chance.gauss(0, 0.05)) for _ in range(pairs)]


def disturbed(chance: random.Random, pairs: int) -> Pairs:
    def one() -> float:
        return chance.gauss(0, 0.03) - (chance.uniform(0.1, 0.4) if chance.random() < 0.1 else 0.0)

    return [(one(), one()) for _ in range(pairs)]


def heavy_tailed(chance: random.Random, pairs: int) -> Pairs:
    def one() -> float:
        return 0.03 * chance.gauss(0, 1) / math.sqrt(chance.expovariate(1))

    return [(one(), one()) for _ in range(pairs)]


def drifting(chance: random.Random, pairs: int) -> Pairs:
    drift, found = chance.gauss(0, 0.05), []
    for number in range(pairs):
        first, second = (2 * number * drift + part + chance.gauss(0, 0.02) for part in (0, drift))
        found.append((first, second) if chance.random() < 0.5 else (second, first))
    return found


NOISES: dict[str, Noise] = {
    "normal, 5%": normal,
    "1 trial in 10 slower by 10% to 40%": disturbed,
    "heavy tails": heavy_tailed,
    "drift in one direction": drifting,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    columns = [f"{pairs} pairs" for pairs in PAIRS]
    print(f"| noise | {' | '.join(columns)} |", f"| --- |{' --: |' * len(PAIRS)}", sep="\n")
    for name, noise in NOISES.items():
        called = [decided(noise, pairs, asked.repeats, asked.seed) for pairs in PAIRS]
        print(f"| {name} | {' | '.join(f'{share:.1%}' for share in called)} |")
    found = [decided(normal, pairs, asked.repeats, asked.seed, gain=2.0) for pairs in PAIRS]
    print(f"| a true gain of 2, normal | {' | '.join(f'{share:.1%}' for share in found)} |")


def decided(noise: Noise, pairs: int, repeats: int, seed: int, gain: float = 1.0) -> float:
    """The share of comparisons that report a gain or a loss."""
    chance = random.Random(seed)
    answers = [judge(CHANGED, UNCHANGED, trials_of(noise(chance, pairs), gain)).answer for _ in range(repeats)]
    return sum(answer in ("gain", "loss") for answer in answers) / repeats


def trials_of(logs: Pairs, gain: float) -> list[Trial]:
    """Return both trials of each round."""
    rates = [
        (number, config, 100 * times * math.exp(log))
        for number, pair in enumerate(logs, 1)
        for config, log, times in ((UNCHANGED, pair[0], 1.0), (CHANGED, pair[1], gain))
    ]
    return [
        Trial(
            id=f"r{number}-{config['batch_size']}",
            role="remedy",
            config=config,
            round=number,
            status="completed",
            samples_per_s=rate,
        )
        for number, config, rate in rates
    ]


if __name__ == "__main__":
    main()
