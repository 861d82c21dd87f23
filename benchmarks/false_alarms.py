"""False alarms and misses of fix trials: A/A pairs, and a fix with a known gain of 10%.

    uv run python benchmarks/false_alarms.py [--repeats 100] [--burner] [--only aa|power] [--seconds 0.3] [--json FILE]

A/A: a configuration is tried as a fix of itself, so a gain or a loss is a false alarm (target: at most 5 of 100).
Power: the fix does 1 / 1.1 of the work of each sample, which is a true gain of 10% (target: 80 of 100 on a quiet
machine). Each repeat works as a run does: the same selection, the same trials, five pairs, and more while the interval
is wide. The work is a counted loop in one worker. `--burner` keeps one more core busy. The spread of the unchanged
configuration's rates across trials shows how quiet the machine was.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from diagnosis.running import burner
from paired_trials import Trials, trials_of
from repeats import repeated, write_json

from loaderbench.records import Candidate, Config, Trial
from loaderbench.search import StepwiseSelection
from loaderbench.statistics.judging import judge

TURNS = 100_000  # iterations of an empty loop: a few milliseconds of CPU time, far more than the rest of a sample
A_TENTH = 1 / 1.1

SUITE = """\
name: known_work
dataset: {{kind: target, target: "false_alarms:make"}}
loader: {{batch_size: 4, num_workers: 1}}
consumer: {{kind: none}}
measure: {{seconds: {seconds}}}
"""

EXPERIMENTS: dict[str, tuple[Config, Config]] = {
    "aa": ({"work": 1.0, "name": "unchanged"}, {"name": "changed"}),
    "power": ({"work": 1.0, "name": "unchanged"}, {"work": A_TENTH}),
}


class KnownWork(torch.utils.data.Dataset[torch.Tensor]):
    """Samples that cost `turns` iterations of a loop."""

    def __init__(self, turns: int) -> None:
        self._turns = turns

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> torch.Tensor:
        for _ in range(self._turns):
            pass
        return torch.tensor(index)


def make(work: float, name: str) -> KnownWork:  # noqa: ARG001 - A and A differ only in their name
    """Create the dataset of a trial."""
    return KnownWork(round(TURNS * work))


@dataclass(frozen=True)
class Found:
    """One repeat: its answer, ratio, number of pairs, duration and spread."""

    answer: str
    ratio: float
    pairs: int
    took_s: float
    log_spread: float


def repeat(trials: Trials, unchanged: Config, change: Config, seed: int) -> Found:
    """Offer the change as a fix, as a run does."""
    began_s, done = time.monotonic(), list[Trial]()
    candidates = [Candidate("offered", change, 1.1)]
    selection = StepwiseSelection(
        unchanged, unchanged, lambda config: candidates if config == unchanged else (), seed=seed
    )
    while planned := selection.next_round(done):
        done += trials.run(planned)
    found = judge({**unchanged, **change}, unchanged, done)
    logs = [math.log(t.samples_per_s) for t in done if t.config == unchanged and t.samples_per_s]
    ratio = found.ratio.est if found.ratio else math.nan
    return Found(found.answer, ratio, found.pairs, time.monotonic() - began_s, statistics.stdev(logs))


def row(name: str, found: Sequence[Found], *, burned: bool) -> str:
    """One line of the table."""
    answers = Counter(one.answer for one in found)
    told = ", ".join(
        f"{answers[answer]} {answer}" for answer in ("gain", "loss", "no gain", "undecided") if answers[answer]
    )
    wrong = answers["gain"] + answers["loss"] if name == "aa" else answers["gain"]
    asked = "at most 5 of 100" if name == "aa" else "at least 80 of 100"
    spread = statistics.median(one.log_spread for one in found) * 100
    pairs, ratio = statistics.mean(one.pairs for one in found), statistics.median(one.ratio for one in found)
    what = "A/A: called a gain or a loss" if name == "aa" else "a true tenth: called a gain"
    beside = " beside a burner" if burned else ""
    return (
        f"| {what}{beside} | {asked} | {wrong} of {len(found)} | {told} | {ratio:.3f} | {pairs:.1f} | {spread:.1f}% |"
    )


def main() -> int:
    """Run the requested experiments and print the table."""
    asked = _arguments()
    with TemporaryDirectory() as folder, burner(asked.burner):
        suite = Path(folder) / "suite.yaml"
        suite.write_text(SUITE.format(seconds=asked.seconds))
        with trials_of(suite) as trials:
            names = [asked.only] if asked.only else EXPERIMENTS
            everything = repeated(names, asked.repeats, lambda name, seed: repeat(trials, *EXPERIMENTS[name], seed))
    print("| what | asked | got | answers | median ratio | pairs | spread of one trial |")
    print("| --- | --- | --- | --- | --: | --: | --: |")
    for name, found in everything.items():
        print(row(name, found, burned=asked.burner))
    write_json(asked.json, everything)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.3, help="steady state of a trial; a run has 1")
    parser.add_argument("--only", choices=EXPERIMENTS)
    parser.add_argument("--burner", action="store_true")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
