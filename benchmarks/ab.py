"""How often `loaderbench ab` decides, and how often wrongly, for equal code and a planted loss of 6%; the limit is 3%.

    uv run python benchmarks/ab.py [--repeats 50] [--budget 180] [--only equal|loss] [--burner] [--json FILE]
    uv run python benchmarks/ab.py --simulate

Each repeat runs the command as a user would, in a new git repository: a commit, and a working tree whose samples cost
1/0.94 as much (`loss`) or the same (`equal`). The work is a counted loop in one worker. Targets: of 50 comparisons of
equal code that take 3 minutes each, at most 1 fails and at most 5 are undecided; of 100 with a true loss of 6%, 95
fail.

`--simulate` replaces the machine with thousands of normally distributed values: pairs that vary by 1 to 10%, at most 45
of them. If the true change equals the limit, a decision is wrong at most as often as the interval misses on that side.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from tempfile import TemporaryDirectory

import numpy as np
from diagnosis.running import burner
from repeats import repeated, write_json
from scipy.special import stdtrit

from loaderbench.statistics.sequential import level_at_looks, planned_looks

LIMIT, LOSS = 0.03, 0.06
GATE = f"samples_per_s:-{LIMIT:.0%}"
TURNS = 100_000  # iterations of an empty loop: a few milliseconds of CPU time, far more than the rest of a sample
OUTCOMES = {0: "passed", 1: "failed", 4: "undecided"}
ASKED = {"equal": "at most 1 of 50 failed, 5 undecided", "loss": "95 of 100 failed"}
MOST_PAIRS, SIMULATED = 45, 20_000

SUITE = """\
dataset: {{kind: target, target: "known_work:make"}}
loader: {{batch_size: 4, num_workers: 1}}
measure: {{seconds: {seconds}}}
"""
CODE = """\
import torch

class KnownWork(torch.utils.data.Dataset):
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        for _ in range({turns}):
            pass
        return torch.tensor(index)

def make():
    return KnownWork()
"""


@dataclass(frozen=True)
class Found:
    """One comparison: outcome, ratio and duration. `log_spread` is the spread of its pairs' log ratios."""

    outcome: str
    ratio: float
    pairs: int
    took_s: float
    log_spread: float


def compare(loss: float, seconds: float, budget_s: float) -> Found:
    """Plant the loss in the working tree of a new repository, and run the command."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "suite.yaml").write_text(SUITE.format(seconds=seconds))
        (folder / "known_work.py").write_text(CODE.format(turns=TURNS))
        for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "before")):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=folder, check=True)
        (folder / "known_work.py").write_text(CODE.format(turns=round(TURNS / (1 - loss))))
        words = ["ab", "suite.yaml", "--fail-if", GATE, "--budget", f"{budget_s}s", "--out", "out", "-q"]
        began_s = time.monotonic()
        ended = subprocess.run(
            [sys.executable, "-m", "loaderbench", *words], cwd=folder, capture_output=True, check=False
        )
        if ended.returncode not in OUTCOMES:
            raise RuntimeError(ended.stderr.decode())
        run = json.loads((folder / "out" / "run.json").read_text())
        return _found(OUTCOMES[ended.returncode], run, time.monotonic() - began_s)


def _found(outcome: str, run: dict[str, object], took_s: float) -> Found:
    trials: list[dict[str, object]] = run["trials"]  # type: ignore[assignment]
    rates = {(t["round"], t["side"]): float(t["samples_per_s"]) for t in trials if t["samples_per_s"]}  # type: ignore[arg-type]
    both = [number for number, side in rates if side == "after" and (number, "before") in rates]
    logs = [math.log(rates[number, "after"] / rates[number, "before"]) for number in both]
    return Found(outcome, math.exp(fmean(logs)), len(logs), took_s, stdev(logs))


def row(name: str, found: Sequence[Found], *, burned: bool) -> str:
    """One line of the table."""
    answers = Counter(one.outcome for one in found)
    counts = ", ".join(f"{answers[outcome]} {outcome}" for outcome in OUTCOMES.values())
    what = "equal code" if name == "equal" else f"a true loss of {LOSS:.0%}"
    figures = (
        f"{median(one.ratio for one in found):.3f}",
        f"{median(one.pairs for one in found):.0f}",
        f"{median(one.took_s for one in found):.0f} s",
        f"{median(one.log_spread for one in found):.1%}",
    )
    return f"| {what}{', with a CPU burner' if burned else ''} | {ASKED[name]} | {counts} | {' | '.join(figures)} |"


def simulate() -> None:
    """Print how often a comparison fails or passes, by the true change and the variation of a pair."""
    print(f"| true change | one pair varies by | failed | passed | undecided after {MOST_PAIRS} pairs | mean pairs |")
    print("| --: | --: | --: | --: | --: | --: |")
    for change in (0.0, -LIMIT, -LOSS):
        for spread in (0.01, 0.03, 0.06, 0.1):
            failed, passed, pairs = _simulated(math.log(1 + change), spread)
            rest = 1 - failed - passed
            print(f"| {change:.0%} | {spread:.0%} | {failed:.1%} | {passed:.1%} | {rest:.1%} | {pairs:.1f} |")


def _simulated(true: float, spread: float) -> tuple[float, float, float]:
    """Return the shares that fail and that pass, and the mean number of pairs."""
    looks = planned_looks(MOST_PAIRS)
    level, limit = level_at_looks(looks), math.log(1 - LIMIT)
    values = true + spread * np.random.default_rng(0).standard_normal((SIMULATED, MOST_PAIRS))
    answer, pairs = np.zeros(SIMULATED, int), np.full(SIMULATED, MOST_PAIRS)
    for look in looks:
        seen = values[:, :look]
        half = stdtrit(look - 1, 0.5 + level / 2) * seen.std(axis=1, ddof=1) / math.sqrt(look)
        now = np.where(seen.mean(axis=1) + half < limit, -1, np.where(seen.mean(axis=1) - half >= limit, 1, 0))
        new = (answer == 0) & (now != 0)
        answer[new], pairs[new] = now[new], look
    return float((answer < 0).mean()), float((answer > 0).mean()), float(pairs.mean())


def main() -> int:
    """Run the requested experiments and print the table."""
    asked = _arguments()
    if asked.simulate:
        simulate()
        return 0

    def measure(name: str, _: int) -> Found:
        return compare(LOSS if name == "loss" else 0.0, asked.seconds, asked.budget)

    with burner(asked.burner):
        everything = repeated([asked.only] if asked.only else ASKED, asked.repeats, measure)
    print(f"| what, limit {LIMIT:.0%} | asked | got | ratio | pairs | time | one pair varies by |")
    print("| --- | --- | --- | --: | --: | --: | --: |")
    for name, found in everything.items():
        print(row(name, found, burned=asked.burner))
    write_json(asked.json, everything)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=3.0, help="steady state of a trial")
    parser.add_argument("--budget", type=float, default=180.0, help="seconds of a comparison")
    parser.add_argument("--only", choices=ASKED)
    parser.add_argument("--burner", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
