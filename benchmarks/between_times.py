"""Estimate how much gains vary between two times, from sets of `benchmarks/repeated_gains.py`.

    uv run python -m benchmarks.between_times FOLDER [FOLDER ...]

Each FOLDER is the `--folder` of one set. Prints the share of the machine's variation in speed with the largest
likelihood for all gains by hand (`SHARE_OF_SPEED_SD`). Then, for each set, the share that the other sets give, and how
many of the set's own gains its intervals would contain.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy.stats import norm, t

from loaderbench.records import Interval
from loaderbench.statistics.intervals import LEAST_SD, LEVEL, REPEATED_ROUNDS, at_another_time

REPEATS_FILE = "by_hand.json"
SHARES = [step / 50 for step in range(76)]


@dataclass(frozen=True)
class Repeat:
    """A gain of a report, with its interval over `rounds`, and by hand. `speed_sd` is that of the machine's speed."""

    run: str
    title: str
    report: float
    lo: float
    hi: float
    rounds: int
    speed_sd: float
    by_hand: float

    def sd_at(self, share: float) -> float:
        """The standard deviation of the log ratio between two times, for a share of the machine's."""
        return max(LEAST_SD, share * self.speed_sd)

    def log_likelihood(self, share: float) -> float:
        """The log density of the gain by hand, if it differs from the report's by noise of both and between times."""
        half = math.log(self.hi / self.lo) / 2
        sd_of_mean = half / float(t.ppf(0.5 + LEVEL / 2, self.rounds - 1))
        sd_of_rounds = sd_of_mean * math.sqrt(1 + self.rounds / REPEATED_ROUNDS)
        return float(norm.logpdf(math.log(self.by_hand / self.report), 0, math.hypot(sd_of_rounds, self.sd_at(share))))

    def is_covered_at(self, share: float) -> bool:
        """Whether the interval for another time would contain the gain by hand."""
        found = at_another_time(Interval(self.report, self.lo, self.hi), self.rounds, self.sd_at(share))
        return (found.lo or 0.0) <= self.by_hand <= (found.hi or math.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="--folder of a set of repeated gains")
    sets = {folder: read_repeats(folder) for folder in parser.parse_args().folders}
    every = [repeat for repeats in sets.values() for repeat in repeats]
    share = likeliest_share(every)
    print(f"{len(every)} gains: share {share:.2f}; {_covered(every, share)} in the intervals")
    if len(sets) > 1:
        print("\n| set | share by the others | in the intervals |\n| --- | --: | --: |")
        for folder, own in sets.items():
            others = likeliest_share([repeat for repeat in every if repeat not in own])
            print(f"| {folder.name} | {others:.2f} | {_covered(own, others)} |")


def likeliest_share(repeats: Sequence[Repeat]) -> float:
    """The share with the largest likelihood."""
    return max(SHARES, key=lambda share: sum(repeat.log_likelihood(share) for repeat in repeats))


def _covered(repeats: Sequence[Repeat], share: float) -> str:
    covered = sum(repeat.is_covered_at(share) for repeat in repeats)
    return f"{covered} of {len(repeats)} ({covered / len(repeats):.0%})"


def read_repeats(folder: Path) -> list[Repeat]:
    """The gains of a set."""
    return [Repeat(**found) for found in json.loads((folder / REPEATS_FILE).read_text(encoding="utf-8"))]


def write_repeats(folder: Path, repeats: Sequence[Repeat]) -> None:
    """Keep the gains of a set in its folder."""
    found = [asdict(repeat) for repeat in repeats]
    (folder / REPEATS_FILE).write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
