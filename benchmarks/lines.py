"""Check that `hotspots` gives lines of code their share of loading time, against randomly drawn planted costs.

    python benchmarks/lines.py [--loaders 12] [--seconds 12] [--seed N] [--workers 0 1 2] [--longest-ms 0.05 4]

Each loader has four functions of known cost in a random order: Python code, a compiled function that holds the GIL, one
that releases it, and a wait. Their longest possible cost is drawn for each loader, by default between 50 µs and 4 ms.
The dataset times every call. Prints a table (Markdown), and how many shares are within 5 percentage points of the
dataset's clocks: in all loaders, and in those with long and short calls.
"""

from __future__ import annotations

import argparse
import math
import random
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench import Profiler

WITHIN = 0.05
BATCH = 8
SHORT_MS = 0.3  # loaders below and above are counted separately, too
LEAST = 0.05  # cost of a function in a sample, at least, as a share of the loader's longest possible cost
TEXT = random.Random(0).randbytes(1 << 18)
NUMBERS = [random.Random(0).random() for _ in range(1 << 18)]


def python_code(units: int) -> None:
    found = 0
    for unit in range(units):
        found = (found * 31 + unit) % 1000


def keeps_lock(units: int) -> None:
    max(NUMBERS[:units])


def releases_lock(units: int) -> None:
    zlib.compress(TEXT[:units], 1)


def waits(units: int) -> None:
    time.sleep(units / 1e6)


Work = Callable[[int], None]
WORK: tuple[Work, ...] = (python_code, keeps_lock, releases_lock, waits)


@dataclass(frozen=True)
class Share:
    """The share of one function in one loader: by the dataset's clocks, and by stacks."""

    function: str
    longest_ms: float
    true: float
    found: float

    @property
    def off(self) -> float:
        """The error of the share by stacks."""
        return self.found - self.true


class Planted(Dataset[Any]):
    """Samples that contain the seconds of the calls that made them."""

    def __init__(self, units: dict[Work, int]) -> None:
        self.units = units

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Any:
        took_s = dict.fromkeys(WORK, 0.0)
        for work, units in self.units.items():
            began_s = time.perf_counter()
            work(units)
            took_s[work] = time.perf_counter() - began_s
        return torch.tensor(list(took_s.values()), dtype=torch.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loaders", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--longest-ms", type=float, nargs=2, default=(0.05, 4.0), metavar=("FROM", "TO"))
    arguments = parser.parse_args()
    unit_s = {work: seconds_per_unit(work) for work in WORK}
    draw, found = random.Random(arguments.seed), []
    print(
        "| workers | longest, ms | function | true | found | points off |",
        "| --: | --: | --- | --: | --: | --: |",
        sep="\n",
    )
    for number in range(arguments.loaders):
        workers = arguments.workers[number % len(arguments.workers)]
        longest_ms = math.exp(draw.uniform(*map(math.log, arguments.longest_ms)))
        dataset = Planted(drawn(draw, unit_s, longest_ms / 1e3))
        for share in shares(dataset, longest_ms, workers, arguments.seconds):
            columns = f"{share.function} | {share.true:.1%} | {share.found:.1%} | {100 * share.off:+.1f}"
            print(f"| {workers} | {longest_ms:.2f} | {columns} |", flush=True)
            found.append(share)
    print(*summary(found), sep="\n")


def drawn(draw: random.Random, unit_s: Mapping[Work, float], longest_s: float) -> dict[Work, int]:
    """Draw the units of each function, in a random order."""
    order = draw.sample(WORK, len(WORK))
    return {work: max(1, round(draw.uniform(LEAST, 1) * longest_s / unit_s[work])) for work in order}


def seconds_per_unit(work: Work, units: int = 10_000) -> float:
    """The minimum of several calls."""
    took_s = []
    for _ in range(9):
        began_s = time.perf_counter()
        work(units)
        took_s.append(time.perf_counter() - began_s)
    return min(took_s) / units


def shares(dataset: Planted, longest_ms: float, workers: int, seconds: float) -> Iterator[Share]:
    """Yield the shares of the four functions, relative to each other."""
    took_s, ends_s = torch.zeros(len(WORK), dtype=torch.float64), time.monotonic() + seconds
    with Profiler("lines", warmup=2, trace=True) as profiler:
        for batch in profiler.iter(DataLoader(dataset, BATCH, num_workers=workers)):
            took_s += batch.sum(0)
            if time.monotonic() > ends_s:
                break
    found = dict.fromkeys((work.__name__ for work in WORK), 0.0)
    for line in profiler.result.hotspots:
        if line.function in found:
            found[line.function] += line.share
    for work, true in zip(WORK, (took_s / took_s.sum()).tolist(), strict=True):
        yield Share(work.__name__, longest_ms, true, found[work.__name__] / (sum(found.values()) or 1.0))


def summary(found: list[Share]) -> Iterator[str]:
    """Report how many shares are right, and the mean error of each kind."""
    yield ""
    for which, some in (
        ("all", found),
        (f"longest at least {SHORT_MS} ms", [share for share in found if share.longest_ms >= SHORT_MS]),
        (f"longest below {SHORT_MS} ms", [share for share in found if share.longest_ms < SHORT_MS]),
    ):
        off = [abs(share.off) for share in some]
        right = sum(one <= WITHIN for one in off)
        yield f"{which}: within 5 points: {right} of {len(off)}; most off: {100 * max(off, default=0.0):.1f} points"
    for work in WORK:
        mean = fmean(share.off for share in found if share.function == work.__name__)
        yield f"{work.__name__}: {100 * mean:+.1f} points in the mean"


if __name__ == "__main__":
    main()
