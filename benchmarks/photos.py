"""Compare generated photos with photographs: decode time per pixel, bytes per pixel and size quantiles.

    python benchmarks/photos.py --photos DIR [--images N] [--rounds N]

Prints two tables. Each round decodes all files of both sides from memory in shuffled order, so a drift of the machine
affects both; the first round is discarded. Times are total time over total pixels. Targets: a ratio within 15% of 1,
and quantiles within 15% of the thousand photographs (30% for the outermost).
"""

from __future__ import annotations

import argparse
import io
import os
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.stats
from PIL import Image
from rich.console import Console
from rich.table import Table

from loaderbench.datasets.photo_statistics import IMAGENET_MEAN_BYTES_PER_PIXEL, IMAGENET_QUANTILES, LEVELS
from loaderbench.datasets.photos import generate_photos

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Photos:
    """The files of one side, in memory, and the sizes of their pictures."""

    files: list[bytes]
    width: Numbers
    height: Numbers

    @property
    def pixels(self) -> Numbers:
        """Pixels of each picture."""
        return self.width * self.height

    @property
    def file_bytes(self) -> Numbers:
        """Bytes of each file."""
        return np.array([len(file) for file in self.files], dtype=np.float64)

    @property
    def bytes_per_pixel(self) -> float:
        """Total bytes over total pixels."""
        return float(self.file_bytes.sum() / self.pixels.sum())

    def measures(self) -> dict[str, Numbers]:
        """The measures whose quantiles the statistics table lists, under the same names."""
        each = {"file_bytes": self.file_bytes, "pixels": self.pixels, "width": self.width, "height": self.height}
        return each | {"bytes_per_pixel": self.file_bytes / self.pixels}


def main() -> None:
    arguments = parse()
    console = Console()
    real = read(arguments.photos)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        generate_photos(Path(folder) / "photos", images=arguments.images, seed=arguments.seed)
        console.print(f"{arguments.images} photos generated in {time.perf_counter() - begin:.1f} s")
        generated = read(Path(folder) / "photos")
    per_pixel = decode_ns_per_pixel(real, generated, arguments.rounds)
    console.print(cost_table(real, generated, per_pixel))
    console.print(quantile_table(real, generated))


def parse() -> argparse.Namespace:
    beside = Path(__file__).resolve().parents[2] / "shared" / "photos"
    chosen = os.environ.get("LOADERBENCH_PHOTOS") or (beside if beside.is_dir() else None)
    parser = argparse.ArgumentParser(description="Holds generated photos against photographs.")
    parser.add_argument("--photos", type=Path, default=chosen, required=chosen is None, help="a folder of photographs")
    parser.add_argument("--images", type=int, default=512, help="photos to generate (default 512)")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of decoding, two or more (default 20)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def read(folder: Path) -> Photos:
    paths = sorted(path for path in Path(folder).rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"})
    files = [path.read_bytes() for path in paths]
    sizes = np.array([Image.open(io.BytesIO(file)).size for file in files], dtype=np.float64)
    return Photos(files, sizes[:, 0], sizes[:, 1])


def decode_ns_per_pixel(real: Photos, generated: Photos, rounds: int) -> Numbers:
    """One row per round: nanoseconds per pixel of the real photographs and of the generated ones."""
    order = [(side, file) for side, photos in enumerate((real, generated)) for file in photos.files]
    pixels = np.array([real.pixels.sum(), generated.pixels.sum()])
    seconds = np.zeros((rounds + 1, 2))
    for row in seconds:
        random.shuffle(order)
        for side, file in order:
            begin = time.perf_counter()
            Image.open(io.BytesIO(file)).convert("RGB")
            row[side] += time.perf_counter() - begin
    ns_per_pixel: Numbers = seconds[1:] * 1e9 / pixels
    return ns_per_pixel


def cost_table(real: Photos, generated: Photos, per_pixel: Numbers) -> Table:
    table = Table("", "real", "generated", "generated / real", title="Cost")
    medians, ratios = np.median(per_pixel, axis=0), per_pixel[:, 1] / per_pixel[:, 0]
    half = scipy.stats.t.ppf(0.975, len(ratios) - 1) * ratios.std(ddof=1) / len(ratios) ** 0.5
    ratio = f"{ratios.mean():.3f} ({ratios.mean() - half:.3f}-{ratios.mean() + half:.3f}), {len(ratios)} rounds"
    table.add_row("decode, ns per pixel", f"{medians[0]:.2f}", f"{medians[1]:.2f}", ratio)
    ours, theirs = generated.bytes_per_pixel, real.bytes_per_pixel
    share = f"{ours / theirs:.3f}; {ours / IMAGENET_MEAN_BYTES_PER_PIXEL:.3f} of the thousand"
    table.add_row("bytes per pixel", f"{theirs:.3f}", f"{ours:.3f}", share)
    per_byte = medians / np.array([theirs, ours])
    table.add_row("decode, ns per byte", *(f"{x:.2f}" for x in per_byte), f"{per_byte[1] / per_byte[0]:.3f}")
    return table


def quantile_table(real: Photos, generated: Photos) -> Table:
    table = Table("", "of", *(f"{level:.0%}" for level in LEVELS), title="Quantiles")
    sides = real.measures(), generated.measures()
    for name, expected in IMAGENET_QUANTILES.items():
        found = [np.quantile(side[name], LEVELS) for side in sides]
        for label, row in (("the thousand", expected), ("these photographs", found[0]), ("generated", found[1])):
            table.add_row(name if label == "the thousand" else "", label, *map(written, row))
        table.add_row(
            "", "generated / thousand", *(f"{x:.2f}" for x in found[1] / np.array(expected)), end_section=True
        )
    return table


def written(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3f}"


if __name__ == "__main__":
    main()
