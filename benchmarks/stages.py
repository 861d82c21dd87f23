"""Compare stages measured by `Profiler(trace=True)` with the same transforms timed by hand, in the same run.

    uv run python benchmarks/stages.py [--data DIR] [--rounds 12]

A real training loop over photographs (generated ones without --data) is profiled. The same loop runs unprofiled over a
dataset that does the same with a clock around each call, as a user would write it by hand. Rounds of the two are
interleaved in random order. Figures are the median ratio, profiled over by hand, with the interquartile range. Target:
within 5%.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

from loaderbench import Profiler
from loaderbench.datasets.photos import cached_photos

STEPS = (
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
)
NAMES = ("read and decode", *(type(step).__name__ for step in STEPS))
BATCH = 16
Stages = dict[str, float]


class ByHand(ImageFolder):
    """An ImageFolder that also returns the seconds of each call with the sample."""

    def __getitem__(self, index: int) -> Any:
        path, label = self.samples[index]
        began_s = time.perf_counter()
        image = self.loader(path)
        took_s = [time.perf_counter() - began_s]
        for step in STEPS:
            began_s = time.perf_counter()
            image = step(image)
            took_s.append(time.perf_counter() - began_s)
        return image, label, torch.tensor(took_s, dtype=torch.float64)


def train(batches: Iterable[Any]) -> list[Any]:
    """Run a small training loop; return the batches' parts other than images and labels."""
    model = nn.Sequential(nn.Conv2d(3, 4, 7, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rest = []
    for images, _, *others in batches:
        optimizer.zero_grad()
        model(images).mean().backward()
        optimizer.step()
        rest += others
    return rest


def profiled(folder: Path, workers: int) -> Stages:
    """Seconds per sample of each stage, as measured by the profiler."""
    loader = DataLoader(ImageFolder(str(folder), transforms.Compose(list(STEPS))), BATCH, num_workers=workers)
    with Profiler(warmup=0, trace=True) as prof:
        train(prof.iter(loader))
    trial = prof.result.trials[0]
    found = {NAMES[0]: trial.stages["read"].wall_s + trial.stages["decode"].wall_s}
    return found | {name: trial.stage_parts[f"transform/{name}"].wall_s for name in NAMES[1:]}


def by_hand(folder: Path, workers: int) -> Stages:
    """Seconds per sample of each stage, timed by hand."""
    took_s = torch.cat(train(DataLoader(ByHand(str(folder)), BATCH, num_workers=workers)))
    return dict(zip(NAMES, took_s.mean(0).tolist(), strict=True))


def compare(folder: Path, workers: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """For each stage, seconds per sample as profiled and by hand, a pair for each round."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        ways = [profiled, by_hand]
        random.shuffle(ways)
        found = {way: way(folder, workers) for way in ways}
        for name in NAMES:
            pairs.setdefault(name, []).append((found[profiled][name], found[by_hand][name]))
    return pairs


def row(name: str, pairs: list[tuple[float, float]]) -> str:
    ratios = sorted(told / hand for told, hand in pairs)
    told_ms, hand_ms = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4)
    middle = statistics.median(ratios)
    verdict = "ok" if abs(middle - 1) <= 0.05 else "OFF"
    return f"| {name} | {told_ms:.3f} | {hand_ms:.3f} | {middle:.3f} ({low:.3f} to {high:.3f}) | {verdict} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # as in a worker: both loops then do the same work
    folder = arguments.data or cached_photos(images=240)
    by_hand(folder, 0)  # warms the page cache
    for workers in (0, 1):
        print(f"\nnum_workers = {workers}, {arguments.rounds} rounds\n")
        print("| stage | profiled, ms | by hand, ms | ratio | within 5% |\n| --- | --: | --: | --- | --- |")
        for name, pairs in compare(folder, workers, arguments.rounds).items():
            print(row(name, pairs))


if __name__ == "__main__":
    main()
