"""CPU time per sample of decoders when only a random crop is needed.

    uv run --group loaders --with pyvips-binary --with pyvips python benchmarks/crop_decoders.py [--data DIR]

Each decoder and transform of an image folder makes the same uint8 crops of 224 pixels, from the same seed, in one
process. There are three sizes: the photographs (generated ones without --data), and generated ones of 0.8 and 3.1
megapixels. Each round measures every pair once, in shuffled order. Ratios are relative to simplejpeg with transforms
v2, within a round, with their 95% interval. pyvips is not a decoder of loaderbench: it reads the file sequentially, to
the end of the crop. `psnr_db` compares the crops with those of Pillow and torchvision's v1 transforms.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from PIL import Image

from loaderbench.datasets import DatasetOrder, nvimagecodec
from loaderbench.datasets.folder_scan import scan_image_folder
from loaderbench.datasets.image_folder import ImageFolder
from loaderbench.datasets.image_samples import TRANSFORMS
from loaderbench.datasets.photos import cached_photos, photo_jpeg
from loaderbench.statistics.intervals import ratio_interval

BASE = "simplejpeg", "imagenet_train_v2"
PAIRS = (
    ("pillow", "imagenet_train"),
    ("torchvision", "imagenet_train_v2"),
    BASE,
    ("simplejpeg", "imagenet_train_region"),
    ("pillow_lazy", "imagenet_train_scaled"),
    ("nvimagecodec", "imagenet_train_v2"),
    ("nvimagecodec", "imagenet_train_region"),
)
VIPS = "pyvips", "imagenet_train_region"
LARGER = {(1024, 768): 32, (2048, 1536): 16}
"""Width and height of generated photographs, and their number."""

Crop = Callable[[int], Any]
"""Returns the crop of a file by number."""


class VipsRegions:
    """An image of pyvips from which `RegionResizedCrop` can take a crop."""

    def __init__(self, path: str) -> None:
        import pyvips

        self._image = pyvips.Image.new_from_file(path, access="sequential")
        self.shape = torch.Size((3, self._image.height, self._image.width))

    def __getitem__(self, place: tuple[slice, slice, slice]) -> torch.Tensor:
        rows, columns = place[1:]
        region = self._image.crop(columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start)
        pixels = torch.from_numpy(region.numpy())
        return pixels.expand(3, -1, -1) if pixels.ndim == 2 else pixels.permute(2, 0, 1)


def main() -> int:
    asked = _arguments()
    torch.set_num_threads(1)
    os.environ["VIPS_CONCURRENCY"] = "1"
    with TemporaryDirectory() as folder:
        for size, count in LARGER.items():
            _paint(Path(folder) / "x".join(map(str, size)), size, count)
        print("| megapixels | decoder | transform | CPU ms | of simplejpeg with v2 | PSNR dB |")
        print("| --: | --- | --- | --: | --: | --: |")
        for root in (asked.data or cached_photos(images=240), *sorted(Path(folder).iterdir())):
            _compare(root, asked.rounds)
    return 0


def _paint(folder: Path, size: tuple[int, int], count: int) -> None:
    (folder / "photos").mkdir(parents=True)
    for index in range(count):
        (folder / "photos" / f"{index:03d}.jpg").write_bytes(photo_jpeg(0, index, size))


def _compare(root: Path, rounds: int) -> None:
    samples = scan_image_folder(root, 120).samples
    megapixels = fmean(math.prod(Image.open(path).size) for path, _ in samples) / 1e6
    crops = dict(_crops(samples))
    numbers, order = range(len(samples)), random.Random(0)
    spent: dict[tuple[str, str], dict[int, float]] = {pair: {} for pair in crops}
    for turn in range(-1, rounds):  # the first turn fills caches
        for pair in order.sample([*crops], len(crops)):
            torch.manual_seed(turn)
            began_s = time.process_time()
            for number in numbers:
                crops[pair](number)
            spent[pair][turn] = (time.process_time() - began_s) / len(samples)
    for costs in spent.values():
        del costs[-1]
    for pair, costs in spent.items():
        ratio = ratio_interval(costs, spent[BASE])
        share = "-" if ratio is None or ratio.lo is None else f"{ratio.est:.2f} ({ratio.lo:.2f} to {ratio.hi:.2f})"
        psnr = _psnr_db(crops[PAIRS[0]], crops[pair], numbers)
        cost = f"{median(costs.values()) * 1e3:.2f}"
        print(f"| {megapixels:.2f} | {' | '.join(pair)} | {cost} | {share} | {psnr} |", flush=True)


def _crops(samples: Any) -> Iterator[tuple[tuple[str, str], Crop]]:
    """Yield crop functions by decoder and transform, as far as installed."""
    for decoder, transform in PAIRS:
        if decoder == nvimagecodec.DECODER and not nvimagecodec.is_installed():
            continue
        options = {"decoder": decoder, "transform": transform, "normalize": "device"}
        source = ImageFolder().build(DatasetOrder(samples, options, Path())).source
        yield (decoder, transform), lambda number, source=source: source[number][0]
    try:
        import pyvips
    except ImportError:
        return
    pyvips.cache_set_max(0)
    cut = TRANSFORMS[VIPS[1]](False)
    yield VIPS, lambda number: cut(VipsRegions(samples[number][0]))


def _psnr_db(one: Crop, other: Crop, numbers: range) -> str:
    errors = []
    for number in numbers:
        crops = []
        for crop in (one, other):
            torch.manual_seed(number)
            crops.append(crop(number).float())
        errors.append(float(((crops[0] - crops[1]) ** 2).mean()))
    return "equal" if not any(errors) else f"{10 * math.log10(255**2 / fmean(errors)):.1f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of photographs")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
