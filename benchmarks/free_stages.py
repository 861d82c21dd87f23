"""Compare the predicted gain of a free stage with loaders from which the stage's cost was really removed.

    uv run python benchmarks/free_stages.py [--seeds 10] [--rounds 3] [--stages 3] [--seconds 0.5]

Each seed draws a loader: megabytes to read, work in decode, in two named transforms and in collate, small tensors to
transfer, one worker or two. Work is a counted loop, so nothing depends on a clock. For some of the stages, each round
measures three loaders in time slices: unchanged, with the stage made free, and without the stage's cost. Targets: the
gain without the cost is inside the predicted interval in 90% of cases, and the median error is 5%.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from paired_trials import Trials, trials_of
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Compose

from loaderbench.diagnosis.bottlenecks import gain_in_words
from loaderbench.freeing import Freeing
from loaderbench.records import Interval, PlannedTrial, Trial
from loaderbench.statistics.intervals import ratio_interval

FILES, BATCH, KEPT = 24, 8, 16
STAGES = ("read", "decode", "transform", "transform/First", "collate", "transport")
TURNS_PER_MS = 20_000

SUITE = """\
name: planted
dataset: {{kind: target, target: "free_stages:make"}}
consumer: {{kind: none}}
measure: {{seconds: {seconds}}}
"""


def work(ms: float) -> None:
    """Use the CPU for about `ms` milliseconds."""
    for _ in range(round(ms * TURNS_PER_MS)):
        pass


class First:
    """A transform with a name and a cost."""

    def __init__(self, ms: float) -> None:
        self._ms = ms

    def __call__(self, pixels: Any) -> Any:
        work(self._ms)
        return pixels + 1


class Second(First):
    """Another transform with a name and a cost."""


class Planted(Dataset[Any]):
    """A dataset like an image folder: `loader` reads and decodes, `transform` is composed, a sample has many parts."""

    def __init__(self, paths: list[str], costs: dict[str, Any], gone: str) -> None:
        self._paths, self._costs, self._gone = paths, costs, gone
        self._in_memory = Path(paths[0]).read_bytes() if gone == "read" else b""
        named = {"First": First(costs["first"]), "Second": Second(costs["second"])}
        for name in list(named) if gone == "transform" else [gone.partition("/")[2]]:
            named.pop(name, None)
        self.loader, self.transform = self._load, Compose(list(named.values()))

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.loader(self._paths[index]))

    def _load(self, path: str) -> torch.Tensor:
        content = self._in_memory
        if not content:
            with open(path, "rb") as file:  # noqa: PTH123 - as users write it
                content = file.read()
        if self._gone != "decode":
            work(self._costs["decode"])
        return torch.full((256,), float(content[0]))


class Collate:
    """Stack samples, and add a drawn number of small tensors to each batch."""

    def __init__(self, costs: dict[str, Any], gone: str) -> None:
        self._costs, self._gone = costs, gone
        self._made = torch.zeros(BATCH, 256)

    def __call__(self, samples: list[torch.Tensor]) -> Any:
        if self._gone == "collate":
            return [self._made, *(torch.zeros(4) for _ in range(self._costs["pieces"]))]
        work(self._costs["collate"])
        found = [torch.stack(samples), *(torch.zeros(4) for _ in range(self._costs["pieces"]))]
        return torch.zeros(BATCH, 1) if self._gone == "transport" else found


def make(folder: str, seed: int, gone: str) -> DataLoader[Any]:
    """Create the loader of a trial."""
    costs = drawn(seed)
    paths = [str(path) for path in sorted(Path(folder).glob("*.bin"))]
    collate = Collate(costs, gone)
    return DataLoader(
        Planted(paths, costs, gone), BATCH, shuffle=True, num_workers=costs["workers"], collate_fn=collate,
        drop_last=True, persistent_workers=True,
    )  # fmt: skip


def drawn(seed: int) -> dict[str, Any]:
    """Draw the costs of a loader: milliseconds, megabytes, and counts."""
    draw = random.Random(seed)
    return {
        "megabytes": draw.choice([1, 2, 4, 8]), "decode": draw.uniform(0.5, 5), "first": draw.uniform(0.3, 3),
        "second": draw.uniform(0.3, 3), "collate": draw.uniform(1, 16), "pieces": draw.choice([2, 10, 40]),
        "workers": draw.choice([1, 2]),
    }  # fmt: skip


def compare(trials: Trials, folder: str, seed: int, stages: list[str], rounds: int) -> dict[str, tuple[Any, Any]]:
    """Return, by stage, the predicted ratio and the true one, with their intervals."""
    done: list[Trial] = []
    unchanged = {"folder": folder, "seed": seed, "gone": "nothing"}
    for number in range(1, rounds + 1):
        each = [("present", unchanged, None)]
        each += [(f"free-{stage}", unchanged, stage) for stage in stages]
        each += [(f"gone-{stage}", {**unchanged, "gone": stage}, None) for stage in stages]
        planned = [
            PlannedTrial(id=f"{seed}-{number}-{name}".replace("/", "-"), role="freed", config=config, round=number,
                         freed=freed)
            for name, config, freed in each
        ]  # fmt: skip
        random.Random(seed + number).shuffle(planned)
        done += trials.run(planned)
    return {stage: (_ratio(done, stage, "nothing"), _ratio(done, None, stage)) for stage in stages}


def _ratio(done: list[Trial], freed: str | None, gone: str) -> Interval:
    def rates(freed: str | None, gone: str) -> dict[int, float]:
        return {t.round: t.samples_per_s or 0.0 for t in done if (t.freed, t.config["gone"]) == (freed, gone)}

    found = ratio_interval(rates(freed, gone), rates(None, "nothing"))
    assert found is not None
    return found


def main() -> int:
    """Run the seeds and print the table."""
    asked = _arguments()
    rows, errors, inside = list[str](), list[float](), 0
    print("| seed | stage | predicted | without the cost | error | within |\n| --: | --- | --- | --- | --: | --- |")
    with TemporaryDirectory() as place:
        for seed in range(asked.first, asked.first + asked.seeds):
            folder = Path(place) / str(seed)
            folder.mkdir()
            for number in range(FILES):
                (folder / f"{number:02}.bin").write_bytes(bytes([number + 1]) * (drawn(seed)["megabytes"] << 20))
            suite = folder / "suite.yaml"
            suite.write_text(SUITE.format(seconds=0.2))
            stages = random.Random(seed).sample(STAGES, asked.stages)
            freeing = Freeing(None, KEPT)
            with trials_of(suite, seconds=asked.seconds, freeing=freeing) as trials:
                found = compare(trials, str(folder), seed, stages, asked.rounds)
            for stage, (predicted, true) in found.items():
                error = abs(predicted.est / true.est - 1)
                within = (predicted.lo or 0) <= true.est <= (predicted.hi or 0)
                inside, errors = inside + within, [*errors, error]
                rows.append(
                    f"| {seed} | {stage} | {gain_in_words(predicted)} {predicted.est:.3f} "
                    f"({predicted.lo:.3f} to {predicted.hi:.3f}) | {true.est:.3f} ({true.lo:.3f} to {true.hi:.3f}) "
                    f"| {error:.1%} | {'yes' if within else 'NO'} |"
                )
                print(rows[-1], flush=True)
    print(f"\nwithin the interval: {inside} of {len(errors)}; median error {statistics.median(errors):.1%}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", type=int, default=3, help="of each loader")
    parser.add_argument("--seconds", type=float, default=0.5, help="of time slices for each trial")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
