"""Check whether printed gains hold later, in other processes, by hand.

    uv run python -m benchmarks.repeated_gains [--runs 8] [--seed 0] [--turns 3] [--seconds 2] [--folder DIR]

Draws suites of one configuration at random, over generated images, and runs each as a user does, with its fixes. Then
applies every fix of every run by hand, as `benchmarks/by_hand.py` does. Prints a table, and how many printed intervals
contain the gain by hand. The folder keeps the runs, and existing runs are not repeated. It also keeps the gains, for
`benchmarks/between_times.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.between_times import Repeat, write_repeats
from benchmarks.by_hand import MadeByHand, made_by_hand, print_table
from loaderbench.datasets.photos import generate_photos
from loaderbench.result import load_concluded
from loaderbench.statistics.intervals import speed_sd

IMAGES, TIMES = 512, 4
"""The folder has four hard links to each generated image, which makes epochs longer."""

TRANSFORMS = ("imagenet_train", "imagenet_train_v2", "imagenet_eval")
DECODERS = ("pillow", "torchvision")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each program in each turn")
    parser.add_argument("--folder", type=Path, help="keeps images and runs; default: a temporary one")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        images = linked_images(folder / "images")
        draw = random.Random(asked.seed)
        runs = [run_of(suite_of(draw, images), folder / f"run{number}") for number in range(asked.runs)]
        made: list[MadeByHand] = []
        repeats: list[Repeat] = []
        for run in runs:
            new = made_by_hand(run, images, asked.turns, asked.seconds)
            made += new
            print(f"{run.name}: {len(made)} gains so far", file=sys.stderr, flush=True)
            repeats += repeats_of(run, new)
            write_repeats(folder, repeats)
        print_table(made)


def repeats_of(run: Path, made: Sequence[MadeByHand]) -> list[Repeat]:
    """The gains of a run by hand, without those that have no interval over rounds."""
    sd = speed_sd(load_concluded(run).record.trials) or 0.0
    return [
        Repeat(run.name, fix.title, found.est, found.lo, found.hi, fix.rounds, sd, fix.gain)
        for fix in made
        if (found := fix.of_rounds) is not None and found.lo is not None and found.hi is not None
    ]


def linked_images(folder: Path) -> Path:
    """A folder of classes, with several hard links to each image."""
    if folder.exists():
        return folder
    generated = folder.with_name("generated")
    generate_photos(generated, images=IMAGES)
    for path in generated.rglob("*.jpg"):
        for copy in range(TIMES):
            link = folder / path.parent.name / f"{path.stem}-{copy}.jpg"
            link.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, link)
    return folder


def suite_of(draw: random.Random, images: Path) -> str:
    """A randomly drawn suite of one configuration, as JSON, which is valid YAML."""
    described = {
        "name": "drawn",
        "dataset": {
            "kind": "image_folder",
            "root": str(images),
            "transform": draw.choice(TRANSFORMS),
            "decoder": draw.choice(DECODERS),
        },
        "loader": {"shuffle": True, "drop_last": True},
        "sweep": {"batch_size": [draw.choice((16, 32, 64))], "num_workers": [draw.choice((0, 1, 2, 3))]},
    }
    return json.dumps(described)


def run_of(suite: str, folder: Path) -> Path:
    """Measure a suite as a user does, with its fixes."""
    if not folder.exists():
        file = folder.with_suffix(".yaml")
        file.write_text(suite, encoding="utf-8")
        command = [sys.executable, "-m", "loaderbench", "run", str(file), "--out", str(folder), "--quiet"]
        subprocess.run(command, check=True)
    return folder


if __name__ == "__main__":
    main()
